/*
 * firewall.c: requests, and the jobs that they share.
 *
 *   request --> waiting --> riding on a script --> done
 *                              ^        |
 *                              +-- a difference failed: the whole table again
 *
 * Invariants:
 *  (1) one job runs at a time. Requests that come meanwhile wait, and share the next script.
 *  (2) a failed difference may have met a table that another program changed: the whole table is
 *      tried once before the failure is reported.
 *  (3) the host is read before the first script, and when its routes change.
 */
#include "backend/net/firewall.h"

#include "backend/net/firewall_job.h"
#include "backend/net/firewall_state.h"
#include "backend/net/firewall_watch.h"
#include "base/limits_backend.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/uuid.h"

#include <assert.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { INSTANCE_QUOTED_MAX = 8 };

struct agx_firewall_op {
    struct agx_list_node node;
    agx_done_fn done; /* NULL: abandoned */
    void *user;
};

struct agx_firewall {
    struct agx_loop *loop;
    struct agx_pool *pool;
    struct agx_firewall_job *job;
    struct agx_firewall_watch *watch;
    uv_timer_t retry;
    agx_done_fn restored;
    void *restored_user;

    struct agx_firewall_state state;
    struct agx_list waiting, riding; /* for the next script; on the present one */
    bool running, closing;
    bool synced;     /* the first sync was requested */
    bool asked;      /* there is work that no request waits for */
    bool stale;      /* the host must be read first */
    bool pass_stale; /* the rules in an engine's filter must be checked */
    bool restoring;  /* another program changed the table */
    unsigned n_open; /* open handles that close waits for */

    agx_done_fn closed;
    void *closed_user;
};

static void kick(struct agx_firewall *f);

/* ---- requests ---- */

static struct agx_firewall_op *pop(struct agx_list *list)
{
    return AGX_LIST_TAKE(list, struct agx_firewall_op, node);
}

/* Tells all that rode on the script. They may ask for more meanwhile, or close the firewall. */
static void firewall_tell(struct agx_list *list, const struct agx_error *error)
{
    struct agx_firewall_op *op;

    while ((op = pop(list))) {
        if (op->done)
            op->done(op->user, error ? agx_error_dup(error) : NULL);
        free(op);
    }
}

static void start_job(struct agx_firewall *f)
{
    struct agx_error *err = NULL;
    int r;

    f->running = true;
    r = agx_job_start(&f->job->job, f->pool, &err);
    assert(r == 0); /* one job at a time, and the pool stops only with us */
    (void)r;
    agx_error_free(err);
}

static void start_script(struct agx_firewall *f)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    f->asked = false;
    agx_list_move(&f->riding, &f->waiting);
    f->job->read_host = false;
    if (agx_firewall_state_script(&f->state, &text, &f->job->failed) == 0) {
        f->job->script = agx_buf_take_cstr(&text);
        if (!f->job->script)
            (void)agx_error_no_memory(&f->job->failed);
    }
    f->job->pass_mark =
        f->state.routed && (f->pass_stale || f->state.flying_whole) ? f->state.table : NULL;
    f->job->pass_wanted = f->state.flying_some;
    f->pass_stale = false;
    start_job(f);
}

/* Starts the next job, if there is any work. */
static void kick(struct agx_firewall *f)
{
    bool waits = !agx_list_is_empty(&f->waiting) || !agx_list_is_empty(&f->riding);

    if (f->running || f->closing || !f->synced)
        return;
    if (f->stale && agx_firewall_state_any(&f->state)) {
        f->job->read_host = true;
        start_job(f);
    } else if (waits || f->asked) {
        start_script(f);
    }
}

static void on_host_read(struct agx_firewall *f, struct agx_error *error)
{
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    int r = -AGX_INTERNAL;

    if (!error)
        r = agx_firewall_text_host(&f->job->host, &words, &error);
    agx_firewall_host_done(&f->job->host);
    f->stale = false;
    agx_error_free(error);
    if (r < 0)
        return; /* the last known state of the host stays in use */
    f->asked = agx_firewall_state_set_host(&f->state, &words) || f->asked;
}

static void on_retry(uv_timer_t *t)
{
    struct agx_firewall *f = t->data;

    f->asked = true;
    kick(f);
}

/* A whole table failed, or a script succeeded. Do not touch `f` after the last call. */
static void conclude(struct agx_firewall *f, struct agx_error *error)
{
    struct agx_list list = { 0 };
    bool again = !error && f->state.whole && agx_firewall_state_any(&f->state);
    agx_done_fn restored = f->restoring && !again ? f->restored : NULL;
    void *user = f->restored_user;

    agx_list_move(&list, &f->riding);
    if (error && f->restoring)
        (void)uv_timer_start(&f->retry, on_retry, AGX_FIREWALL_RETRY_MS, 0);
    f->restoring = f->restoring && (error || again); /* it was changed again meanwhile */
    kick(f);
    firewall_tell(&list, error);
    if (restored)
        restored(user, error ? agx_error_dup(error) : NULL);
    agx_error_free(error);
}

static void on_job_done(struct agx_job *job, struct agx_error *error)
{
    struct agx_firewall_job *j = container_of(job, struct agx_firewall_job, job);
    struct agx_firewall *f = j->firewall;

    f->running = false;
    free(j->script);
    j->script = NULL;
    if (f->closing) {
        agx_error_free(error);
    } else if (j->read_host) {
        on_host_read(f, error);
        kick(f);
    } else if (!error) {
        agx_firewall_state_landed(&f->state);
        conclude(f, NULL);
    } else if (!f->state.flying_whole) {
        agx_error_free(error); /* invariant 2: its requests get another try */
        f->state.whole = f->asked = true;
        if (agx_list_is_empty(&f->riding))
            f->restoring = true; /* it was for news: nobody else asks again */
        kick(f);
    } else {
        f->state.whole = true;
        conclude(f, error);
    }
}

/* ---- news ---- */

static void on_table_news(void *user)
{
    struct agx_firewall *f = user;

    if (!f->synced || !agx_firewall_state_any(&f->state))
        return;
    f->state.whole = f->restoring = f->asked = true;
    kick(f);
}

static void on_route_news(void *user)
{
    struct agx_firewall *f = user;

    f->stale = true;
    kick(f);
}

static void on_pass_news(void *user)
{
    struct agx_firewall *f = user;

    if (!f->state.routed || !f->synced || !agx_firewall_state_any(&f->state))
        return;
    f->pass_stale = f->asked = true;
    kick(f);
}

/* ---- the interface ---- */

int agx_firewall_allowed(struct agx_error **err)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
    char path[4096];
    ssize_t n;

    if (syscall(SYS_capget, &head, data) < 0)
        return agx_error_errno(err, errno, "ask for our capabilities");
    if (data[0].effective & (1U << CAP_NET_ADMIN))
        return 0;
    n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return agx_error_set(
        err, AGX_FAILED_PRECONDITION,
        "the sandboxes' packet filter needs CAP_NET_ADMIN, which this process does "
        "not have: run it as root, or once 'sudo setcap cap_net_admin+ep %s'",
        path);
}

static const struct agx_job_kind job_kind = {
    .name = "firewall",
    .run = agx_firewall_job_run,
    .done = on_job_done,
};

static const struct agx_firewall_watch_ops watch_ops = {
    .table = on_table_news,
    .routes = on_route_news,
    .pass = on_pass_news,
};

static int check_instance(const char *instance, struct agx_error **err)
{
    if (!instance || strspn(instance, "0123456789abcdef") < INSTANCE_QUOTED_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "an instance begins with %d hexadecimal digits, not '%s'",
                             INSTANCE_QUOTED_MAX, instance ? instance : "");
    return 0;
}

static void firewall_end(struct agx_firewall *f);

static void on_timer_closed(uv_handle_t *h)
{
    firewall_end(h->data);
}

int agx_firewall_open(struct agx_loop *l, const struct agx_firewall_config *config,
                      struct agx_firewall **ret_firewall, struct agx_error **err)
{
    const struct agx_pool_config pool = { AGX_FIREWALL_THREAD, 1, 1 };
    struct agx_firewall_watch_config watch = { .thread = AGX_FIREWALL_THREAD,
                                               .net_fd = config->net_fd,
                                               .ops = &watch_ops };
    struct agx_siphash_key seed;
    struct agx_firewall *f;
    int r = check_instance(config->instance, err);

    if (r < 0 || (r = agx_random_bytes(&seed, sizeof(seed), err)) < 0)
        return r;
    f = agx_new(struct agx_firewall);
    f->loop = l;
    f->restored = config->restored;
    f->restored_user = config->restored_user;
    f->stale = true;
    agx_firewall_state_init(&f->state, config->instance, config->lan_blocked, seed);
    f->state.routed = config->routed;
    (void)uv_timer_init(agx_loop_uv(l), &f->retry);
    uv_unref((uv_handle_t *)&f->retry);
    f->retry.data = f;
    f->n_open = 1;
    f->job = agx_new(struct agx_firewall_job);
    f->job->job.kind = &job_kind;
    f->job->firewall = f;
    f->job->net_fd = config->net_fd;
    agx_firewall_job_open(f->job);
    watch.table = f->state.table;
    watch.user = f;
    r = agx_firewall_watch_open(l, &watch, &f->watch, err);
    if (r == 0)
        r = agx_pool_open(l, &pool, &f->pool, err);
    if (r < 0) {
        agx_firewall_close(f, NULL, NULL);
        return r;
    }
    *ret_firewall = f;
    return 0;
}

static void wait_for(struct agx_firewall *f, agx_done_fn done, void *user,
                     struct agx_firewall_op **ret_op)
{
    struct agx_firewall_op *op = agx_new(struct agx_firewall_op);

    op->done = done;
    op->user = user;
    agx_list_push_back(&f->waiting, &op->node);
    if (ret_op)
        *ret_op = op;
    kick(f);
}

int agx_firewall_sync(struct agx_firewall *f, const struct agx_firewall_member *members, size_t n,
                      agx_done_fn done, void *user, struct agx_firewall_op **ret_op,
                      struct agx_error **err)
{
    agx_loop_assert(f->loop);
    for (size_t i = 0; i < n; i++) {
        int r = agx_firewall_state_set(&f->state, &members[i], err);

        if (r < 0)
            return r;
    }
    f->synced = f->state.whole = true;
    wait_for(f, done, user, ret_op);
    return 0;
}

int agx_firewall_put(struct agx_firewall *f, const struct agx_firewall_member *member,
                     agx_done_fn done, void *user, struct agx_firewall_op **ret_op,
                     struct agx_error **err)
{
    int r;

    agx_loop_assert(f->loop);
    if (!f->synced)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the packet filter does not match the running sandboxes yet");
    r = agx_firewall_state_set(&f->state, member, err);
    if (r == 0)
        wait_for(f, done, user, ret_op);
    return r;
}

int agx_firewall_remove(struct agx_firewall *f, const char *sandbox_id, agx_done_fn done,
                        void *user, struct agx_firewall_op **ret_op, struct agx_error **err)
{
    agx_loop_assert(f->loop);
    if (!f->synced)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the packet filter does not match the running sandboxes yet");
    agx_firewall_state_remove(&f->state, sandbox_id);
    wait_for(f, done, user, ret_op);
    return 0;
}

void agx_firewall_abandon(struct agx_firewall_op *op)
{
    op->done = NULL;
}

/* ---- the end ---- */

static void free_ops(struct agx_list *list)
{
    struct agx_firewall_op *op;

    while ((op = pop(list)))
        free(op);
}

static void firewall_end(struct agx_firewall *f)
{
    agx_done_fn closed = f->closed;
    void *user = f->closed_user;

    if (--f->n_open > 0)
        return;
    agx_firewall_state_done(&f->state);
    free_ops(&f->waiting);
    free_ops(&f->riding);
    agx_firewall_job_free(f->job);
    free(f);
    if (closed)
        closed(user, NULL);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_firewall *f = user;

    if (error)
        f->job = NULL; /* the kernel does not answer: the thread may still use it */
    agx_error_free(error);
    firewall_end(f);
}

void agx_firewall_close(struct agx_firewall *f, agx_done_fn closed, void *user)
{
    f->closing = true;
    f->closed = closed;
    f->closed_user = user;
    f->watch = agx_firewall_watch_close(f->watch);
    if (f->pool) {
        f->n_open++;
        agx_pool_stop(f->pool, AGX_FIREWALL_STOP_MS, on_pool_stopped, f);
    }
    uv_close((uv_handle_t *)&f->retry, on_timer_closed);
}

/*
 * pasta.c: decides when pasta is started; pasta_make.c starts it.
 *
 *     await, need, its end, changes of the host's network, a failure
 *         --> a job: makes one that fits the host as it is now --> waiting calls are answered
 *
 * Invariant: while the job runs, `maker` belongs to it; otherwise to the loop, which then watches
 * an existing process.
 */
#include "backend/native/net/pasta.h"

#include "backend/native/net/pasta_make.h"
#include "base/limits_native.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"
#include "loop/uverr.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { NEWS_BYTES = 16 << 10, NEWS_TURN = 64 };

struct agx_pasta_op {
    struct agx_list_node node;
    agx_done_fn done; /* NULL: abandoned */
    void *user;
};

struct work {
    struct agx_job job;
    struct agx_pasta *pasta;
    struct agx_pasta_maker *maker;
};

/* A running process, until its end. */
struct held {
    uv_poll_t poll;
    int pidfd;
    struct agx_pasta *pasta;
};

struct agx_pasta {
    struct agx_loop *loop;
    struct agx_pool *pool;
    struct agx_pasta_maker *maker;
    struct agx_list waiting; /* of struct agx_pasta_op */
    struct held *held;       /* NULL: none, or the job works */
    uv_poll_t news;
    int news_fd;
    uv_timer_t later;
    bool needed, working, again, failing, closing;
    bool stale;      /* the host's network may have changed since the job began */
    unsigned n_open; /* open handles that close waits for */
    agx_done_fn closed;
    void *closed_user;
};

static void work(struct agx_pasta *p);
static void pasta_tell(struct agx_pasta *p, const struct agx_error *error);

/* ---- the process ---- */

static void on_held_closed(uv_handle_t *h)
{
    struct held *held = h->data;

    (void)close(held->pidfd);
    free(held);
}

static void let_go(struct agx_pasta *p)
{
    if (p->held)
        uv_close((uv_handle_t *)&AGX_TAKE_PTR(p->held)->poll, on_held_closed);
}

static void on_later(uv_timer_t *t)
{
    struct agx_pasta *p = t->data;

    if (p->held && !p->stale)
        pasta_tell(p, NULL);
    else if (p->needed || !agx_list_is_empty(&p->waiting))
        work(p);
}

/* The earliest of several requests decides when. */
static void work_later(struct agx_pasta *p, uint64_t ms)
{
    if (p->closing ||
        (uv_is_active((uv_handle_t *)&p->later) && uv_timer_get_due_in(&p->later) <= ms))
        return;
    (void)uv_timer_start(&p->later, on_later, ms, 0);
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
    struct held *held = poll->data;
    struct agx_pasta *p = held->pasta;

    (void)status;
    (void)events;
    (void)waitid(P_PIDFD, (id_t)held->pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
    let_go(p);
    if (!p->needed)
        return;
    AGX_LOG(AGX_LOG_WARN, "native.pasta_ended",
            AGX_F_STR("msg", "the network of the sandboxes ended, and is started again"));
    work_later(p, AGX_PASTA_AGAIN_MS);
}

static int pasta_hold(struct agx_pasta *p, struct agx_error **err)
{
    struct held *h = agx_new(struct held);
    int r;

    h->pasta = p;
    h->pidfd = fcntl(p->maker->pidfd, F_DUPFD_CLOEXEC, 0);
    r = h->pidfd < 0 ? agx_error_errno(err, errno, "open the process of pasta") : 0;
    if (r == 0 && (r = uv_poll_init(agx_loop_uv(p->loop), &h->poll, h->pidfd)) < 0) {
        r = agx_uverr_set(err, r, "watch pasta");
        (void)close(h->pidfd);
    }
    if (r < 0) {
        free(h);
        return r;
    }
    h->poll.data = h;
    (void)uv_poll_start(&h->poll, UV_READABLE, on_ended);
    uv_unref((uv_handle_t *)&h->poll);
    p->held = h;
    return 0;
}

/* ---- the job ---- */

static void pasta_tell(struct agx_pasta *p, const struct agx_error *error)
{
    struct agx_list told = { 0 };
    struct agx_pasta_op *op;

    agx_list_move(&told, &p->waiting);
    while ((op = AGX_LIST_TAKE(&told, struct agx_pasta_op, node))) {
        if (op->done)
            op->done(op->user, error ? agx_error_dup(error) : NULL);
        free(op);
    }
}

static void note_failure(struct agx_pasta *p, const struct agx_error *error)
{
    if (error && !p->failing)
        AGX_LOG(AGX_LOG_WARN, "native.no_way_out", AGX_F_ERR(error), AGX_F_BOOL("ignored", true));
    p->failing = error != NULL;
    if (error && p->needed)
        work_later(p, AGX_PASTA_RETRY_MS);
}

static int run_work(struct agx_job *j, struct agx_error **err)
{
    return agx_pasta_make(container_of(j, struct work, job)->maker, err);
}

static void work_done(struct agx_job *j, struct agx_error *error)
{
    struct work *w = container_of(j, struct work, job);
    struct agx_pasta *p = w->pasta;

    free(w);
    p->working = false;
    if (p->closing) {
        agx_error_free(error);
        return;
    }
    if (!error && p->maker->pidfd >= 0)
        (void)pasta_hold(p, &error);
    p->needed = p->needed || (!error && !agx_list_is_empty(&p->waiting));
    note_failure(p, error);
    pasta_tell(p, error);
    agx_error_free(error);
    if (p->again)
        work_later(p, 0);
    p->again = false;
}

static void cancel_work(struct agx_job *j)
{
    atomic_store(&container_of(j, struct work, job)->maker->stop, true);
}

static const struct agx_job_kind work_kind = {
    .name = "pasta", .run = run_work, .done = work_done, .cancel = cancel_work
};

static void work(struct agx_pasta *p)
{
    struct agx_error *error = NULL;
    struct work *w;

    if (p->working || p->closing) {
        p->again = true;
        return;
    }
    let_go(p);
    p->stale = false;
    w = agx_new(struct work);
    *w = (struct work){ .job = { .kind = &work_kind }, .pasta = p, .maker = p->maker };
    p->working = agx_job_start(&w->job, p->pool, &error) == 0;
    if (p->working)
        return;
    free(w);
    note_failure(p, error);
    pasta_tell(p, error);
    agx_error_free(error);
}

/* ---- who needs it ---- */

void agx_pasta_need(struct agx_pasta *p)
{
    agx_loop_assert(p->loop);
    p->needed = true;
    work_later(p, 0);
}

int agx_pasta_await(struct agx_pasta *p, agx_done_fn done, void *user, struct agx_pasta_op **ret_op,
                    struct agx_error **err)
{
    struct agx_pasta_op *op;

    agx_loop_assert(p->loop);
    if (p->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "the daemon is ending");
    op = agx_new(struct agx_pasta_op);
    *op = (struct agx_pasta_op){ .done = done, .user = user };
    agx_list_push_back(&p->waiting, &op->node);
    if (!p->working)
        work_later(p, 0);
    *ret_op = op;
    return 0;
}

void agx_pasta_abandon(struct agx_pasta_op *op)
{
    op->done = NULL;
}

/* ---- news of the host's network ---- */

static void on_news(uv_poll_t *poll, int status, int events)
{
    struct agx_pasta *p = poll->data;
    char bytes[NEWS_BYTES];

    (void)events;
    if (status < 0) /* messages were lost: that stops the handle and is cleared by reading */
        (void)uv_poll_start(poll, UV_READABLE, on_news);
    for (int i = 0; i < NEWS_TURN; i++) {
        if (recv(p->news_fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 && errno == EAGAIN)
            break;
    }
    p->stale = true;
    if (p->working)
        p->again = true;
    else
        work_later(p, AGX_PASTA_NEWS_MS);
}

static int listen_to_host(struct agx_pasta *p, struct agx_error **err)
{
    struct sockaddr_nl at = { .nl_family = AF_NETLINK,
                              .nl_groups =
                                  RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_RULE };
    _cleanup_close_ int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    int r;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        return agx_error_errno(err, errno, "listen for changes of the host's network");
    r = uv_poll_init(agx_loop_uv(p->loop), &p->news, fd);
    if (r < 0)
        return agx_uverr_set(err, r, "listen for changes of the host's network");
    p->news.data = p;
    p->news_fd = AGX_TAKE_FD(fd);
    (void)uv_poll_start(&p->news, UV_READABLE, on_news);
    uv_unref((uv_handle_t *)&p->news);
    return 0;
}

/* ---- open and close ---- */

static void pasta_free(struct agx_pasta *p)
{
    if (p->maker) {
        agx_pasta_maker_done(p->maker);
        free(p->maker);
    }
    agx_closep(&p->news_fd);
    free(p);
}

static void part_closed(struct agx_pasta *p)
{
    agx_done_fn closed = p->closed;
    void *user = p->closed_user;

    if (--p->n_open > 0)
        return;
    pasta_free(p);
    if (closed)
        closed(user, NULL);
}

static void on_handle_closed(uv_handle_t *h)
{
    part_closed(h->data);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_pasta *p = user;

    if (error)
        p->maker = NULL; /* the kernel does not answer: the thread may still use it */
    agx_error_free(error);
    part_closed(p);
}

void agx_pasta_close(struct agx_pasta *p, agx_done_fn closed, void *user)
{
    struct agx_pasta_op *op;

    agx_loop_assert(p->loop);
    p->closing = true;
    p->closed = closed;
    p->closed_user = user;
    while ((op = AGX_LIST_TAKE(&p->waiting, struct agx_pasta_op, node)))
        free(op);
    let_go(p);
    p->n_open = 3;
    uv_close((uv_handle_t *)&p->later, on_handle_closed);
    uv_close((uv_handle_t *)&p->news, on_handle_closed);
    agx_pool_stop(p->pool, AGX_NATIVE_POOL_STOP_MS, on_pool_stopped, p);
}

static int open_parts(struct agx_pasta *p, const struct agx_pasta_config *c, struct agx_error **err)
{
    static const struct agx_pool_config pool = { "agx-pasta", 1, 1 };
    int r = agx_pasta_maker_init(p->maker, c->init_path, err);

    if (r == 0)
        r = agx_pool_open(p->loop, &pool, &p->pool, err);
    if (r == 0 && (r = listen_to_host(p, err)) < 0)
        agx_pool_stop(p->pool, 0, NULL, NULL);
    return r;
}

int agx_pasta_open(struct agx_loop *l, const struct agx_pasta_config *config,
                   struct agx_pasta **ret_pasta, struct agx_error **err)
{
    struct agx_pasta *p = agx_new(struct agx_pasta);
    int r;

    agx_loop_assert(l);
    p->loop = l;
    p->news_fd = -1;
    p->maker = agx_new(struct agx_pasta_maker);
    p->maker->net_fd = config->net_fd;
    p->maker->dir_fd = config->dir_fd;
    p->maker->pidfd = -1;
    r = open_parts(p, config, err);
    if (r < 0) {
        pasta_free(p);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(l), &p->later);
    p->later.data = p;
    *ret_pasta = p;
    return 0;
}

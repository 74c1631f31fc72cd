/*
 * box.c: a known sandbox, and the processes of its parts.
 *
 * Each PID 1 is held by a pidfd that the loop watches; only that decides whether a part runs. The
 * init client has its own descriptor, and reads init's last messages from its channel.
 */
#include "backend/native/native_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/banned.h"

/* Lives until libuv has closed its handle. */
struct agx_native_watch {
    uv_poll_t poll;
    int pidfd;
    struct agx_native_part *part; /* NULL: no longer waited for */
    struct agx_native *native;
};

char *agx_native_group(const char *sandbox_id, size_t part, char out[AGX_NATIVE_GROUP_SIZE])
{
    if (part == 0)
        (void)snprintf(out, AGX_NATIVE_GROUP_SIZE, "%s", sandbox_id);
    else /* ids contain no dot, so the name is not another sandbox's */
        (void)snprintf(out, AGX_NATIVE_GROUP_SIZE, "%s.%zu", sandbox_id, part);
    return out;
}

/* Wakes the operation that waits for a change of the box; false: there is none. */
static bool box_wake(struct agx_native_box *box)
{
    if (box->downing)
        agx_native_down_hear(box->downing);
    else if (box->task)
        agx_op_wake(&box->task->op);
    return box->downing || box->task;
}

/* ---- processes ---- */

static void on_watch_closed(uv_handle_t *h)
{
    struct agx_native_watch *w = container_of((uv_poll_t *)h, struct agx_native_watch, poll);
    struct agx_native *n = w->native;

    free(w);
    agx_native_released(n);
}

static void watch_close(struct agx_native_watch *w)
{
    w->part = NULL;
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    agx_closep(&w->pidfd);
}

/* One that an earlier daemon started is not our child, so its exit status cannot be known. */
static int box_reap(int pidfd)
{
    siginfo_t info = { 0 };

    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | __WALL) < 0 ||
        info.si_pid == 0)
        return -1;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static bool ran_out_of_memory(const struct agx_native_part *p, size_t part)
{
    char name[AGX_NATIVE_GROUP_SIZE];
    struct agx_cgroup_stats stats = { 0 };

    if (p->exit_code != -1 && p->exit_code != 128 + SIGKILL)
        return false;
    agx_native_group(p->box->id, part, name);
    return agx_cgroups_stats(p->box->native->cgroups, name, &stats, NULL) == 0 &&
           stats.oom_kills > 0;
}

static void on_ended(uv_poll_t *h, int status, int events)
{
    struct agx_native_watch *w = container_of(h, struct agx_native_watch, poll);
    struct agx_native_part *p = w->part;
    struct agx_native_box *box = p->box;
    const size_t i = (size_t)(p - box->parts);

    (void)status;
    (void)events;
    p->exit_code = box_reap(w->pidfd);
    p->watch = NULL;
    box->state.parts[i].init.pid = 0;
    box->state.parts[i].oom = ran_out_of_memory(p, i);
    watch_close(w);
    AGX_LOG(AGX_LOG_DEBUG, "native.ended", AGX_F_STR("sandbox", box->id),
            AGX_F_INT("part", (int64_t)i), AGX_F_INT("exit_code", p->exit_code),
            AGX_F_BOOL("oom", box->state.parts[i].oom));
    box->unheard = true;
    if (!box_wake(box))
        agx_native_box_tell(box);
}

void agx_native_box_tell(struct agx_native_box *box)
{
    struct agx_backend *b = &box->native->base;

    if (!box->unheard || box->task || box->downing || b->closing)
        return;
    box->unheard = false;
    if (b->news)
        b->news(b->news_user, box->id);
}

void agx_native_part_watch(struct agx_native_part *p, int pidfd)
{
    struct agx_native_watch *w = agx_new(struct agx_native_watch);

    w->native = p->box->native;
    w->pidfd = pidfd;
    w->part = p;
    (void)uv_poll_init(agx_loop_uv(w->native->base.loop), &w->poll, pidfd);
    (void)uv_poll_start(&w->poll, UV_READABLE, on_ended);
    w->native->n_open++;
    p->watch = w;
    p->exit_code = -1;
}

void agx_native_part_signal(struct agx_native_part *p, int signo)
{
    if (p->watch)
        (void)syscall(SYS_pidfd_send_signal, p->watch->pidfd, signo, NULL, 0);
}

int agx_native_part_pidfd(const struct agx_native_part *p)
{
    return p->watch ? p->watch->pidfd : -1;
}

bool agx_native_box_runs(const struct agx_native_box *box)
{
    for (size_t i = 0; box->known && i < box->state.n_parts; i++) {
        if (box->parts[i].watch)
            return true;
    }
    return false;
}

void agx_native_box_unforward(struct agx_native_box *box)
{
    box->ports = agx_forward_stop(box->ports);
    box->unnoted = false;
    for (size_t i = 0; box->known && i < box->state.n_parts; i++)
        box->parts[i].names = agx_forward_stop(box->parts[i].names);
}

/* ---- commands ---- */

static void on_ready(void *user)
{
    (void)box_wake(user);
}

static void on_init_client_ended(void *user, struct agx_error *error)
{
    struct agx_native_box *box = user;

    agx_error_free(error);
    box->init_is_up = false;
    (void)box_wake(box);
}

int agx_native_box_init_client(struct agx_native_box *box, struct agx_error **err)
{
    const struct agx_native_part_state *s = &box->state.parts[0];
    int r = agx_init_client_set_defaults(box->init_client, s->user, s->cwd, err);

    if (r == 0)
        r = agx_init_client_up_pidfd(box->init_client, agx_native_part_pidfd(&box->parts[0]), err);
    box->init_is_up = r == 0;
    return r;
}

void agx_native_box_down(struct agx_native_box *box, struct agx_error *error)
{
    box->init_is_up = false;
    agx_init_client_down(box->init_client, error);
}

/* ---- what there is ---- */

void agx_native_box_know(struct agx_native_box *box, struct agx_native_state *take_state)
{
    agx_native_box_forget(box);
    box->state = *take_state;
    *take_state = (struct agx_native_state){ 0 };
    box->parts = agx_alloc(box->state.n_parts * sizeof(*box->parts));
    for (size_t i = 0; i < box->state.n_parts; i++)
        box->parts[i] = (struct agx_native_part){ .box = box, .exit_code = -1 };
    box->known = true;
}

void agx_native_box_forget(struct agx_native_box *box)
{
    if (!box->known)
        return;
    for (size_t i = 0; i < box->state.n_parts; i++) {
        struct agx_native_part *p = &box->parts[i];

        if (p->watch)
            watch_close(AGX_TAKE_PTR(p->watch));
        p->image = agx_image_unpin(p->image);
        if (box->native->nssets && box->state.parts[i].id_base != 0)
            agx_nsset_pool_release(box->native->nssets, box->state.parts[i].id_base);
    }
    free(box->parts);
    box->parts = NULL;
    agx_native_state_done(&box->state);
    box->known = false;
}

/* ---- the box ---- */

void agx_native_box_close(struct agx_native_box *box)
{
    for (size_t i = 0; box->known && i < box->state.n_parts; i++) {
        if (box->parts[i].watch)
            watch_close(AGX_TAKE_PTR(box->parts[i].watch));
        box->parts[i].names = agx_forward_free(box->parts[i].names);
        box->parts[i].image = agx_image_unpin(box->parts[i].image);
    }
    box->egress_dns = agx_resolve_stop(box->egress_dns);
    box->ports = agx_forward_free(box->ports);
    box->nsset = agx_nsset_free(box->nsset);
    if (box->init_client)
        agx_init_client_close(AGX_TAKE_PTR(box->init_client), agx_native_on_closed, box->native);
}

void agx_native_box_free(struct agx_native_box *box)
{
    agx_native_box_close(box);
    if (box->known) {
        free(box->parts);
        agx_native_state_done(&box->state);
    }
    free(box->id);
    free(box);
}

void agx_native_box_drop(struct agx_native_box *box)
{
    (void)agx_map_remove(&box->native->boxes, agx_str_from(box->id));
    agx_post_starts_cancel(&box->afters);
    agx_native_box_forget(box);
    agx_native_box_down(box, NULL);
    agx_native_box_free(box);
}

struct agx_native_box *agx_native_box_find(const struct agx_native *n, const char *sandbox_id)
{
    return agx_map_get(&n->boxes, agx_str_from(sandbox_id));
}

/* A sandbox that was not found at the start does not run: its init client begins as down. */
static void begin_down(struct agx_native_box *box)
{
    struct agx_error *why = NULL;

    (void)agx_error_set(&why, AGX_NOT_FOUND, "there is no sandbox '%s'", box->id);
    agx_native_box_down(box, why);
}

int agx_native_box_get(struct agx_native *n, const char *sandbox_id,
                       struct agx_native_box **ret_box, struct agx_error **err)
{
    struct agx_native_box *box = agx_native_box_find(n, sandbox_id);
    struct agx_init_client_config c = { .backend = &n->base,
                                        .sandbox_id = sandbox_id,
                                        .ready = on_ready,
                                        .ended = on_init_client_ended };
    int r;

    *ret_box = box;
    if (box)
        return 0;
    box = agx_new(struct agx_native_box);
    box->native = n;
    c.user = box;
    r = agx_text_set(&box->id, sandbox_id, err);
    if (r == 0)
        r = agx_map_put(&n->boxes, agx_str_from(sandbox_id), box, NULL);
    if (r == 0)
        r = agx_init_client_open(&c, &box->init_client, err);
    if (r < 0) {
        (void)agx_map_remove(&n->boxes, agx_str_from(sandbox_id));
        free(box->id);
        free(box);
        return r;
    }
    n->n_open++;
    if (n->loaded)
        begin_down(box);
    *ret_box = box;
    return 0;
}

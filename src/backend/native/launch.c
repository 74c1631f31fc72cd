/*
 * launch.c: see launch.h.
 *
 * The child and the handle of the report socket end independently; memory is freed when both have.
 */
#include "backend/native/launch.h"

#include "backend/native/net/initsock.h"
#include "backend/native/plan_build.h"
#include "base/fd.h"
#include "base/fdpass.h"
#include "base/mem.h"
#include "loop/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/banned.h"

struct agx_launch {
    struct agx_launch_ops ops;
    void *user;
    struct agx_child *child; /* NULL: it has ended */
    int socket;
    uv_poll_t poll;
    bool polls; /* the handle is open */
    bool closing;
    void (*closed)(void *user);
    void *closed_user;
};

/* ---- the end ---- */

static void launch_settle(struct agx_launch *x)
{
    if (!x->closing || x->child || x->polls)
        return;
    if (x->closed)
        x->closed(x->closed_user);
    free(x);
}

static void on_poll_closed(uv_handle_t *h)
{
    struct agx_launch *x = container_of((uv_poll_t *)h, struct agx_launch, poll);

    x->polls = false;
    launch_settle(x);
}

static void hang_up(struct agx_launch *x)
{
    if (x->socket < 0)
        return;
    uv_close((uv_handle_t *)&x->poll, on_poll_closed);
    (void)close(AGX_TAKE_FD(x->socket));
}

struct agx_launch *agx_launch_close(struct agx_launch *x, void (*closed)(void *user), void *user)
{
    if (!x)
        return NULL;
    x->closing = true;
    x->closed = closed;
    x->closed_user = user;
    if (x->child)
        agx_child_kill(x->child, SIGKILL);
    hang_up(x);
    return NULL;
}

/* Takes the error. */
static void launch_fail(struct agx_launch *x, struct agx_error *error)
{
    hang_up(x);
    x->ops.failed(x->user, error);
}

/* Its reports say what went wrong; an end without a report is noticed on the socket. */
static void on_child_exit(void *user, const struct agx_child_status *status)
{
    struct agx_launch *x = user;

    (void)status;
    x->child = NULL;
    launch_settle(x);
}

/* ---- reports ---- */

/* 1: a packet, and what it is about as a descriptor, or -1; 0: not now; negative: there will be
 * none. */
static int launch_receive(struct agx_launch *x, uint8_t buf[AGX_PLAN_REPORT_MAX],
                          struct agx_plan_report *ret, int *ret_fd, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    struct agx_fdpass in = { .fds = &fd, .max = 1 };
    ssize_t n = agx_fdpass_receive(x->socket, buf, AGX_PLAN_REPORT_MAX, MSG_DONTWAIT, &in);
    int r;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return agx_error_set(err, AGX_INTERNAL, "agentix-init ended without a report");
    r = agx_plan_report_decode(agx_str_bytes(buf, (size_t)n), ret, err);
    if (r < 0)
        return agx_error_wrap(err, r, "read a report of agentix-init");
    *ret_fd = AGX_TAKE_FD(fd);
    return 1;
}

static void on_readable(uv_poll_t *h, int status, int events)
{
    struct agx_launch *x = container_of(h, struct agx_launch, poll);
    uint8_t buf[AGX_PLAN_REPORT_MAX];
    struct agx_plan_report report = { 0 };
    struct agx_error *error = NULL;
    int fd = -1;
    int r = launch_receive(x, buf, &report, &fd, &error);

    (void)status;
    (void)events;
    if (r == 0)
        return;
    if (r > 0 && report.kind == AGX_PLAN_FAILED)
        r = agx_plan_failed(&report, &error);
    else if (r > 0 && (report.kind == AGX_PLAN_CLONED) != (fd >= 0))
        r = agx_error_set(&error, AGX_INTERNAL, "agentix-init cloned nothing");
    if (r < 0) {
        agx_closep(&fd);
        launch_fail(x, error);
        return;
    }
    x->ops.told(x->user, report.kind, fd, (pid_t)report.pid);
}

int agx_launch_go(struct agx_launch *x, struct agx_error **err)
{
    int r;

    if (x->socket < 0) /* ops->failed was called already */
        return agx_error_set(err, AGX_INTERNAL, "agentix-init has ended");
    r = agx_initsock_go(x->socket, err);
    return r < 0 ? r : 0;
}

/* ---- start ---- */

static int make_memfd(const struct agx_buf *plan, struct agx_error **err)
{
    _cleanup_close_ int fd = memfd_create("agentix-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "make a memfd");
    r = agx_fd_write_all(fd, agx_buf_peek(plan), err);
    if (r == 0 &&
        (lseek(fd, 0, SEEK_SET) < 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0))
        r = agx_error_errno(err, errno, "seal the plan");
    return r < 0 ? r : AGX_TAKE_FD(fd);
}

/* Lists the descriptors of the new process; returns how many. */
static size_t list_fds(const struct agx_launch_params *p, const int report_plan[2],
                       struct agx_child_fd *out)
{
    const struct agx_cgroup_entry *c = p->cgroup;
    size_t n = 0;

    out[n++] = (struct agx_child_fd){ report_plan[0], AGX_PLAN_BUILD_FD_REPORT };
    out[n++] = (struct agx_child_fd){ report_plan[1], AGX_PLAN_BUILD_FD_PLAN };
    out[n++] = (struct agx_child_fd){ p->user_fd, AGX_PLAN_BUILD_FD_USER };
    out[n++] = (struct agx_child_fd){ p->net_fd, AGX_PLAN_BUILD_FD_NET };
    if (c->dir_fd >= 0)
        out[n++] = (struct agx_child_fd){ c->dir_fd, AGX_PLAN_BUILD_FD_CGROUP };
    for (size_t i = 0; i < c->n_tasks; i++)
        out[n++] = (struct agx_child_fd){ c->tasks_fds[i], AGX_PLAN_BUILD_FD_CGROUP + (int)i };
    for (size_t i = 0; p->binds && i < p->binds->len; i++)
        out[n++] =
            (struct agx_child_fd){ p->binds->items[i].from.fd, (int)agx_plan_build_bind_fd(c, i) };
    return n;
}

static int launch_spawn(struct agx_launch *x, struct agx_loop *l, const struct agx_launch_params *p,
                        const int report_plan[2], struct agx_error **err)
{
    const size_t most = AGX_CGROUP_TASKS_MAX + 5 + (p->binds ? p->binds->len : 0);
    _cleanup_free_ struct agx_child_fd *fds = agx_alloc(most * sizeof(*fds));
    char number[16];
    const char *const argv[] = { p->init_path, "--plan", number, NULL };
    const struct agx_child_params params = { .file = p->init_path,
                                             .argv = argv,
                                             .fds = fds,
                                             .n_fds = list_fds(p, report_plan, fds),
                                             .group = AGX_CHILD_NEW_SESSION };

    (void)snprintf(number, sizeof(number), "%d", AGX_PLAN_BUILD_FD_PLAN);
    return agx_child_start(l, &params, on_child_exit, x, &x->child, err);
}

int agx_launch_start(struct agx_loop *l, const struct agx_launch_params *p,
                     const struct agx_launch_ops *ops, void *user, struct agx_launch **ret_launch,
                     struct agx_error **err)
{
    struct agx_launch *x = agx_new(struct agx_launch);
    _cleanup_close_ int plan = make_memfd(p->plan, err), theirs = -1, ours = -1;
    int pair[2];
    int r = plan < 0 ? plan : 0;

    x->ops = *ops;
    x->user = user;
    x->socket = -1;
    if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        r = agx_error_errno(err, errno, "make a pair of sockets");
    if (r == 0) {
        ours = pair[0];
        theirs = pair[1];
        r = launch_spawn(x, l, p, (const int[]){ theirs, plan }, err);
    }
    if (r < 0) {
        free(x);
        return r;
    }
    x->socket = AGX_TAKE_FD(ours);
    (void)uv_poll_init(agx_loop_uv(l), &x->poll, x->socket);
    x->polls = true;
    (void)uv_poll_start(&x->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    *ret_launch = x;
    return 0;
}

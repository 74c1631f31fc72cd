/*
 * up_copy.c: makes the copies into a new sandbox, one after the other, before its main process
 * starts.
 *
 *     STAT --> UNPACK --> STAT of the next ... --> MADE --> GO
 *
 * PID 1 is in its finished root and waits, so nothing of the sandbox runs meanwhile. What the image
 * has at a target decides where the content goes. agentix-unpack enters the sandbox and unpacks the
 * tar that backend/files/copies.h makes. Files of builtin tools come last, as one complete tar
 * (up_files.c).
 */
#include "backend/native/op_up.h"

#include "base/fd.h"
#include "base/mem.h"
#include "loop/child.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { PUMP_BYTES = 64 << 10, COMPLAINT_MAX = 1024, USER_FD = 3, MOUNT_FD = 4 };

/* NULL: the tools' files. */
static const struct agx_copy *copy_of(const struct agx_native_up *up)
{
    const struct agx_spec *spec = &up->task.sandbox.spec;

    return up->copy < spec->copies_len ? &spec->copies[up->copy] : NULL;
}

/* ---- what is at the target ---- */

struct stat_job {
    struct agx_job job;
    struct agx_native_up *up;
    pid_t pid; /* it waits for us, so its pid cannot be reused */
    char *path;
    enum agx_copies_target there;
};

/* Resolved as inside the sandbox: a link to /x leads to the sandbox's /x. */
static int run_stat(struct agx_job *j, struct agx_error **err)
{
    struct stat_job *x = container_of(j, struct stat_job, job);
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
    _cleanup_close_ int root = -1, fd = -1;
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)x->pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return agx_error_errno(err, errno, "open the root of the sandbox");
    fd = (int)syscall(SYS_openat2, root, x->path, &how, sizeof(how));
    if (fd < 0 && errno != ENOENT)
        return agx_error_errno(err, errno, "look at '%s' in the sandbox", x->path);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "look at '%s' in the sandbox", x->path);
    x->there = fd < 0                ? AGX_COPIES_MISSING
               : S_ISDIR(st.st_mode) ? AGX_COPIES_DIRECTORY
                                     : AGX_COPIES_OTHER;
    return 0;
}

static void stat_free(struct stat_job *x)
{
    free(x->path);
    free(x);
}

static void stat_done(struct agx_job *j, struct agx_error *error)
{
    struct stat_job *x = container_of(j, struct stat_job, job);
    struct agx_native_up *up = x->up;

    up->copy_target = x->there;
    stat_free(x);
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static const struct agx_job_kind stat_kind = { .name = "stat", .run = run_stat, .done = stat_done };

static int look_at_target(struct agx_native_up *up, struct agx_error **err)
{
    struct stat_job *x = agx_new(struct stat_job);
    int r;

    x->job.kind = &stat_kind;
    x->up = up;
    x->pid = up->box->state.parts[0].init.pid;
    r = agx_text_set(&x->path, copy_of(up)->target, err);
    if (r == 0)
        r = agx_job_start(&x->job, up->native->disk_pool, err);
    if (r < 0)
        stat_free(x);
    else
        agx_op_hold(&up->task.op);
    return r;
}

int agx_native_up_enter_stat(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    int r;

    if (up->copy >= agx_native_up_copies(up))
        return agx_op_wait(&up->task.op, 0, UP_MADE, err);
    r = copy_of(up) ? look_at_target(up, err) : agx_native_up_pack_files(up, err);
    return agx_op_wait(&up->task.op, r, UP_UNPACK, err);
}

/* ---- unpacking ---- */

/* One run of agentix-unpack; lives until its child and its handle are gone. */
struct agx_native_unpack {
    struct agx_native_up *up; /* NULL: abandoned */
    struct agx_native *native;
    struct agx_child *child;
    struct agx_copies *copies; /* NULL: unpacks `tar` */
    struct agx_buf tar;
    size_t tar_at;
    struct agx_error *error;
    int tar_fd, complaint_fd;
    uv_poll_t poll;
    bool polls;
    size_t len, at; /* of the bytes to be written */
    uint8_t buf[PUMP_BYTES];
};

static void unpack_free(struct agx_native_unpack *x)
{
    agx_tool_files_wipe(&x->tar);
    explicit_bzero(x->buf, sizeof(x->buf));
    free(x);
}

static void up_copy_settle(struct agx_native_unpack *x)
{
    if (x->child || x->polls)
        return;
    agx_error_free(x->error);
    agx_closep(&x->complaint_fd);
    agx_native_released(x->native);
    unpack_free(x);
}

static void on_poll_closed(uv_handle_t *h)
{
    struct agx_native_unpack *x = container_of((uv_poll_t *)h, struct agx_native_unpack, poll);

    x->polls = false;
    up_copy_settle(x);
}

/* The stream has ended, or its reader has. */
static void hang_up(struct agx_native_unpack *x)
{
    x->copies = agx_copies_close(x->copies);
    if (x->tar_fd < 0)
        return;
    uv_close((uv_handle_t *)&x->poll, on_poll_closed);
    agx_closep(&x->tar_fd);
    x->tar_fd = -1;
}

static void on_writable(uv_poll_t *h, int status, int events);

/* Like agx_copies_read(). */
static ssize_t next_bytes(struct agx_native_unpack *x)
{
    const struct agx_str left = agx_str_skip(agx_buf_peek(&x->tar), x->tar_at);
    const size_t n = AGX_MIN(left.len, sizeof(x->buf));

    if (x->copies)
        return agx_copies_read(x->copies, x->buf, sizeof(x->buf));
    if (n > 0)
        memcpy(x->buf, left.ptr, n);
    x->tar_at += n;
    return (ssize_t)n;
}

/* Moves bytes from the source to the program, as fast as both allow. */
static void up_copy_pump(struct agx_native_unpack *x)
{
    while (x->tar_fd >= 0) {
        ssize_t n;

        if (x->at == x->len) {
            n = next_bytes(x);
            if (n == -AGX_UNAVAILABLE) {
                (void)uv_poll_stop(&x->poll);
                return;
            }
            if (n < 0)
                x->error = agx_copies_take_error(x->copies);
            if (n < 0)
                agx_child_kill(x->child, SIGKILL);
            if (n <= 0) {
                hang_up(x);
                return;
            }
            x->at = 0;
            x->len = (size_t)n;
        }
        n = write(x->tar_fd, x->buf + x->at, x->len - x->at);
        if (n < 0 && errno == EAGAIN) {
            (void)uv_poll_start(&x->poll, UV_WRITABLE, on_writable);
            return;
        }
        if (n < 0) { /* it has ended, and reports why */
            hang_up(x);
            return;
        }
        x->at += (size_t)n;
    }
}

static void on_writable(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    up_copy_pump(container_of(h, struct agx_native_unpack, poll));
}

static void on_more(void *user)
{
    up_copy_pump(user);
}

/* The source's error explains more than what the program says about half a stream. */
static void explain(struct agx_native_unpack *x, const struct agx_child_status *status)
{
    char text[COMPLAINT_MAX];
    ssize_t n;

    if (x->error || (status->code == 0 && status->signo == 0))
        return;
    n = read(x->complaint_fd, text, sizeof(text) - 1);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = '\0';
    (void)agx_error_set(&x->error,
                        status->code > 0 && status->code <= AGX_UNAUTHENTICATED
                            ? (enum agx_code)status->code
                            : AGX_INTERNAL,
                        "%s", n > 0 ? text : "agentix-unpack was killed");
}

static void on_unpacked(void *user, const struct agx_child_status *status)
{
    struct agx_native_unpack *x = user;
    struct agx_native_up *up = x->up;

    x->child = NULL;
    if (up) {
        const struct agx_copy *c = copy_of(up);

        explain(x, status);
        if (x->error && c)
            (void)agx_error_wrap(&x->error, -(int)x->error->code, "copy '%s' to '%s'", c->source,
                                 c->target);
        else if (x->error)
            (void)agx_error_wrap(&x->error, -(int)x->error->code, "copy files of builtin tools");
        up->unpack = NULL;
        up->copy++;
        agx_op_fail(&up->task.op, &x->error);
    }
    hang_up(x);
    up_copy_settle(x);
    if (up)
        agx_op_arrive(&up->task.op);
}

static int open_mounts(pid_t pid, struct agx_error **err)
{
    char path[48];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : agx_error_errno(err, errno, "open '%s'", path);
}

static int up_copy_spawn(struct agx_native_unpack *x, int tar, int complaint,
                         struct agx_error **err)
{
    struct agx_native_up *up = x->up;
    const struct agx_native_box *box = up->box;
    const struct agx_copy *c = copy_of(up);
    _cleanup_close_ int mounts = open_mounts(box->state.parts[0].init.pid, err);
    const struct agx_child_fd fds[] = { { tar, STDIN_FILENO },
                                        { complaint, STDERR_FILENO },
                                        { box->nsset->members[0].user_fd, USER_FD },
                                        { mounts, MOUNT_FD } };
    char user_fd[8], mount_fd[8];
    const char *const argv[] = { x->native->unpack_path,
                                 "--user-ns",
                                 user_fd,
                                 "--mnt-ns",
                                 mount_fd,
                                 "--into",
                                 c ? agx_copies_unpack_at(c, up->copy_target) : "/",
                                 NULL };
    const struct agx_child_params p = { .file = x->native->unpack_path,
                                        .argv = argv,
                                        .fds = fds,
                                        .n_fds = AGX_ARRAY_LEN(fds),
                                        .group = AGX_CHILD_NEW_SESSION };

    if (mounts < 0)
        return mounts;
    (void)snprintf(user_fd, sizeof(user_fd), "%d", USER_FD);
    (void)snprintf(mount_fd, sizeof(mount_fd), "%d", MOUNT_FD);
    return agx_child_start(x->native->base.loop, &p, on_unpacked, x, &x->child, err);
}

static int open_bytes(struct agx_native_unpack *x, struct agx_error **err)
{
    const struct agx_copies_request q = { .copy = copy_of(x->up),
                                          .there = x->up->copy_target,
                                          .pipe_bytes = AGX_NATIVE_COPY_PIPE,
                                          .more = on_more,
                                          .asker = { x->native->host.sources,
                                                     (uid_t)x->up->task.sandbox.owner_uid } };

    if (q.copy)
        return agx_copies_open(x->native->base.loop, x->native->copies_pool, &q, x, &x->copies,
                               err);
    x->tar = x->up->tar;
    x->up->tar = (struct agx_buf){ 0 };
    return 0;
}

static int up_copy_begin(struct agx_native_unpack *x, struct agx_error **err)
{
    _cleanup_close_ int tar = -1, complaint = -1;
    int tars[2], complaints[2];
    int r;

    if (pipe2(tars, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe");
    tar = tars[0];
    x->tar_fd = tars[1];
    if (pipe2(complaints, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe");
    complaint = complaints[1];
    x->complaint_fd = complaints[0];
    if ((r = agx_fd_set_nonblock(x->complaint_fd, true, err)) < 0 ||
        (r = agx_fd_set_nonblock(x->tar_fd, true, err)) < 0 || (r = open_bytes(x, err)) < 0)
        return r;
    return up_copy_spawn(x, tar, complaint, err);
}

int agx_native_up_enter_unpack(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    struct agx_native_unpack *x = agx_new(struct agx_native_unpack);
    int r;

    x->up = up;
    x->native = up->native;
    x->tar_fd = x->complaint_fd = -1;
    r = up_copy_begin(x, err);
    if (r < 0) {
        agx_copies_close(x->copies);
        agx_closep(&x->tar_fd);
        agx_closep(&x->complaint_fd);
        unpack_free(x);
        return agx_op_wait(&up->task.op, r, UP_STAT, err);
    }
    (void)uv_poll_init(agx_loop_uv(x->native->base.loop), &x->poll, x->tar_fd);
    x->polls = true;
    x->native->n_open++;
    up->unpack = x;
    agx_op_hold(&up->task.op);
    up_copy_pump(x);
    return agx_op_wait(&up->task.op, 0, UP_STAT, err);
}

void agx_native_up_cancel_unpack(struct agx_native_up *up)
{
    struct agx_native_unpack *x = AGX_TAKE_PTR(up->unpack);

    if (!x)
        return;
    x->up = NULL;
    agx_child_kill(x->child, SIGKILL);
    hang_up(x);
    agx_op_arrive(&up->task.op);
}

/* ---- it is whole: its main process may start ---- */

int agx_native_up_enter_made(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    struct agx_native_state *s = &up->box->state;
    int r = 0;

    if (!s->made) {
        s->made = true;
        r = agx_native_up_record(up, err);
    }
    return agx_op_wait(&up->task.op, r, UP_GO, err);
}

int agx_native_up_enter_go(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    struct agx_native_up_part *p = &up->parts[0];
    int r = 0;

    if (p->waits && p->failed) {
        *err = AGX_TAKE_PTR(p->failed);
        r = -(int)(*err)->code;
    } else if (p->waits) {
        p->waits = false;
        agx_op_hold(&up->task.op); /* until it runs */
        r = agx_launch_go(p->launch, err);
    }
    return agx_op_wait(&up->task.op, r, UP_FORWARD, err);
}

/*
 * init_client_pid.c: PID 1 of a container, found without a race.
 *
 * The number that the engine reported may already be another process when we look. So we open a
 * pidfd first, then inspect /proc, and then check that the process is still alive: if it is, the
 * number was its own all the time, and /proc showed that process.
 */
#include "backend/exec/init_client_internal.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { CGROUP_MAX = 64 << 10 }; /* of the file: one line per hierarchy, each with a path */

static int no_process(pid_t pid, int fault, const char *what, struct agx_error **err)
{
    if (fault == ESRCH || fault == ENOENT || fault == EINVAL)
        return agx_error_set(err, AGX_NOT_FOUND, "process %d is gone", (int)pid);
    if (fault == EACCES || fault == EPERM)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "look at %s of process %d: that needs the right to trace it", what,
                             (int)pid);
    return agx_error_errno(err, fault, "look at %s of process %d", what, (int)pid);
}

static int open_proc(pid_t pid, struct agx_error **err)
{
    char path[32];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : no_process(pid, errno, "/proc", err);
}

static int check_program(int proc_fd, const struct agx_init_client_pid *want,
                         struct agx_error **err)
{
    struct stat st;

    if (fstatat(proc_fd, "exe", &st, 0) < 0)
        return no_process(want->pid, errno, "the program", err);
    if (st.st_dev != want->init_dev || st.st_ino != want->init_ino)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "process %d is not agentix-init",
                             (int)want->pid);
    return 0;
}

static int check_cgroup(int proc_fd, const struct agx_init_client_pid *want, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(CGROUP_MAX);
    struct agx_error *fault = NULL;
    int r = agx_fd_read_file(proc_fd, "cgroup", &text, &fault);

    if (r < 0) {
        r = no_process(want->pid, fault->sys_errno ? fault->sys_errno : EIO, "the cgroup", err);
        agx_error_free(fault);
        return r;
    }
    if (!memmem(text.data, text.len, want->container_id, strlen(want->container_id)))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "process %d is not in container '%s'",
                             (int)want->pid, want->container_id);
    return 0;
}

int agx_init_client_pidfd(const struct agx_init_client_pid *want, struct agx_error **err)
{
    _cleanup_close_ int pidfd = -1;
    _cleanup_close_ int proc_fd = -1;
    int r;

    if (want->pid <= 0)
        return agx_error_set(err, AGX_NOT_FOUND, "there is no process");
    pidfd = (int)syscall(SYS_pidfd_open, want->pid, 0);
    if (pidfd < 0)
        return no_process(want->pid, errno, "the state", err);
    proc_fd = open_proc(want->pid, err);
    if (proc_fd < 0)
        return proc_fd;
    r = check_program(proc_fd, want, err);
    if (r == 0)
        r = check_cgroup(proc_fd, want, err);
    if (r < 0)
        return r;
    if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno != EPERM)
        return no_process(want->pid, errno, "the state", err);
    return AGX_TAKE_FD(pidfd);
}

/* ---- until it has become init ---- */

void agx_init_client_seek_stop(struct agx_init_client *a)
{
    struct agx_init_client_seek *s = &a->seek;

    if (!s->want.container_id)
        return;
    free((char *)s->want.container_id);
    s->want.container_id = NULL;
    (void)uv_timer_stop(&s->timer);
}

static void on_seek(uv_timer_t *t)
{
    struct agx_init_client *a = container_of(t, struct agx_init_client, seek.timer);
    struct agx_error *error = NULL;
    _cleanup_close_ int pidfd = agx_init_client_pidfd(&a->seek.want, &error);
    int r = pidfd;

    if (r == -AGX_FAILED_PRECONDITION && uv_now(t->loop) < a->seek.deadline_ms) {
        agx_error_free(error);
        (void)uv_timer_start(t, on_seek, AGX_INITLINK_RETRY_MS, 0);
        return;
    }
    agx_init_client_seek_stop(a);
    if (pidfd >= 0)
        r = agx_init_client_up_pidfd(a, pidfd, &error);
    if (r < 0)
        agx_init_client_lose(a, error, r == -AGX_NOT_FOUND);
}

int agx_init_client_up_pid(struct agx_init_client *a, const struct agx_init_client_pid *want,
                           struct agx_error **err)
{
    char *id = agx_str_dup(agx_str_from(want->container_id));

    if (!id)
        return agx_error_no_memory(err);
    if (a->link)
        agx_init_client_down(a, NULL);
    agx_init_client_seek_stop(a);
    agx_init_client_expect(a);
    a->seek.want = *want;
    a->seek.want.container_id = id;
    a->seek.deadline_ms = uv_now(a->seek.timer.loop) + AGX_INITLINK_CONNECT_MS;
    (void)uv_timer_start(&a->seek.timer, on_seek, 0, 0);
    return 0;
}

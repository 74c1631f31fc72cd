/*
 * proc.c: see proc.h.
 *
 * A pidfd is opened, then /proc is read, then the process is checked to be alive: if it is, the pid
 * was its own all the time. init_client_pid.c does the same for containers.
 */
#include "backend/proc.h"

#include "base/fd.h"
#include "base/limits_native.h"
#include "base/path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { STAT_MAX = 4096, START_FIELD = 22 };

static int gone(pid_t pid, struct agx_error **err)
{
    return agx_error_set(err, AGX_NOT_FOUND, "process %d is gone", (int)pid);
}

/* The name in the second field may contain anything, even blanks and parentheses: fields are
 * counted from the last parenthesis on. */
static bool parse_start(struct agx_str stat, uint64_t *ret)
{
    const char *end = memrchr(stat.ptr, ')', stat.len);
    struct agx_str rest, field = { 0 };

    if (!end)
        return false;
    rest = (struct agx_str){ end + 2, stat.len - AGX_MIN(stat.len, (size_t)(end + 2 - stat.ptr)) };
    for (int i = 3; i <= START_FIELD; i++) {
        if (!agx_str_split(&rest, ' ', &field))
            return false;
    }
    return agx_parse_u64(field, INT64_MAX, ret);
}

static int read_start(pid_t pid, uint64_t *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(STAT_MAX);
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (agx_fd_read_file(AT_FDCWD, path, &text, NULL) < 0 || !parse_start(agx_buf_peek(&text), ret))
        return gone(pid, err);
    return 0;
}

static int read_boot(char out[AGX_UUID_TEXT_SIZE], struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(STAT_MAX);
    int r = agx_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, err);

    if (r == 0)
        (void)snprintf(out, AGX_UUID_TEXT_SIZE, "%.*s",
                       AGX_STR_ARG(agx_str_trim(agx_buf_peek(&text))));
    return r;
}

/* Also for an end that was not reaped yet. */
static bool has_ended(int pidfd)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };

    return poll(&p, 1, 0) != 0;
}

int agx_native_proc_note(struct agx_native_proc *ret, pid_t pid, struct agx_error **err)
{
    struct agx_native_proc p = { .pid = pid };
    int r = read_start(pid, &p.start, err);

    if (r == 0)
        r = read_boot(p.boot, err);
    if (r == 0)
        *ret = p;
    return r;
}

int agx_native_proc_open(const struct agx_native_proc *p, struct agx_error **err)
{
    _cleanup_close_ int pidfd = -1;
    char boot[AGX_UUID_TEXT_SIZE];
    uint64_t start;
    int r;

    if (p->pid <= 0)
        return gone(p->pid, err);
    r = read_boot(boot, err);
    if (r < 0)
        return r;
    if (strcmp(boot, p->boot) != 0)
        return gone(p->pid, err);
    pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (pidfd < 0)
        return errno == ESRCH ? gone(p->pid, err)
                              : agx_error_errno(err, errno, "open process %d", (int)p->pid);
    r = read_start(p->pid, &start, err);
    if (r < 0)
        return r;
    if (start != p->start || has_ended(pidfd))
        return gone(p->pid, err);
    return AGX_TAKE_FD(pidfd);
}

/* ---- records: "PID START BOOT", then the line about it ---- */

int agx_native_proc_save(int dir_fd, const char *file, const struct agx_native_proc *p,
                         struct agx_str about, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_NATIVE_PROC_MAX);
    int r = agx_buf_printf(&text, "%d %" PRIu64 " %s\n%.*s\n", (int)p->pid, p->start, p->boot,
                           AGX_STR_ARG(about));

    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the record '%s' is too long", file);
    return agx_path_write_file(dir_fd, file, agx_buf_peek(&text), 0600, err);
}

static bool parse_proc(struct agx_str line, struct agx_native_proc *ret)
{
    struct agx_str pid = { 0 }, start = { 0 };
    uint64_t number;

    if (!agx_str_split(&line, ' ', &pid) || !agx_str_split(&line, ' ', &start) ||
        !agx_parse_u64(pid, INT32_MAX, &number) || !agx_parse_u64(start, INT64_MAX, &ret->start) ||
        line.len >= sizeof(ret->boot))
        return false;
    ret->pid = (pid_t)number;
    (void)snprintf(ret->boot, sizeof(ret->boot), "%.*s", AGX_STR_ARG(line));
    return true;
}

bool agx_native_proc_load(int dir_fd, const char *file, struct agx_native_proc *ret,
                          struct agx_buf *about)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_NATIVE_PROC_MAX);
    struct agx_str rest, line = { 0 };

    if (agx_fd_read_file(dir_fd, file, &text, NULL) < 0)
        return false;
    rest = agx_buf_peek(&text);
    if (!agx_str_split(&rest, '\n', &line) || !parse_proc(line, ret))
        return false;
    if (!about)
        return true;
    rest.len = agx_str_find(rest, '\n');
    return agx_buf_append(about, rest) == 0;
}

void agx_native_proc_end(int pidfd)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };

    (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0); /* it may have ended already */
    while (poll(&p, 1, AGX_NATIVE_PROC_END_MS) < 0 && errno == EINTR)
        continue;
    /* ECHILD for another process's child, which we cannot wait for. */
    (void)waitid(P_PIDFD, (id_t)pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
    (void)close(pidfd);
}

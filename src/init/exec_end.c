/*
 * exec_end.c: how commands end.
 *
 * A command is over when no process of its session is left. The session and the process group have
 * the number of its first process, and the kernel does not reuse that number while either exists.
 * One question about that number therefore tells whether a process is left, without reading /proc:
 * fcntl(F_SETOWN) answers it.
 */
#include "init/pid1.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/banned.h"

/* Is the number in use as a process, group or session? */
static bool number_in_use(const struct agx_pid1 *p, pid_t pid)
{
    bool used = fcntl(p->notify_fd[0], F_SETOWN, pid) == 0 || errno != ESRCH;

    (void)fcntl(p->notify_fd[0], F_SETOWN, 0);
    return used;
}

struct dirent_raw {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

static void signal_if_ours(const struct agx_pid1_run *j, struct agx_str name, int signo)
{
    uint64_t pid;

    if (agx_parse_u64(name, INT32_MAX, &pid) && (pid_t)pid != j->pid &&
        getsid((pid_t)pid) == j->pid && getpgid((pid_t)pid) != j->pid)
        (void)kill((pid_t)pid, signo);
}

/* To the group at once, and one by one to those of its session that are in other groups. */
static void signal_session(struct agx_pid1 *p, const struct agx_pid1_run *j, int signo)
{
    char room[4096] __attribute__((aligned(8)));
    long n;

    if (kill(-j->pid, signo) < 0 && !j->reaped)
        (void)kill(j->pid, signo); /* it has no group of its own yet */
    if (p->proc_fd < 0 || lseek(p->proc_fd, 0, SEEK_SET) < 0)
        return;
    while ((n = syscall(SYS_getdents64, p->proc_fd, room, sizeof(room))) > 0) {
        const struct dirent_raw *d;

        for (long at = 0; at < n; at += d->len) {
            d = (const struct dirent_raw *)(const void *)(room + at);
            signal_if_ours(j, agx_str_from(d->name), signo);
        }
    }
}

void agx_pid1_exec_kill(struct agx_pid1 *p, struct agx_pid1_exec *c, uint64_t grace_ms)
{
    struct agx_pid1_run *j = agx_pid1_exec_run(p, c);
    uint64_t now_ms = agx_clock_ms(), at_ms = now_ms + AGX_MIN(grace_ms, UINT32_MAX);

    if (j->kill_at_ms == 0 && grace_ms > 0) {
        signal_session(p, j, SIGTERM);
        signal_session(p, j, SIGCONT); /* stopped processes would not see the signal */
    }
    j->kill_at_ms = j->kill_at_ms ? AGX_MIN(j->kill_at_ms, at_ms) : at_ms;
    agx_pid1_execs_look(p, now_ms);
}

/* True for one of whose session somebody may be left although its first process is not. */
static bool is_lingering(const struct agx_pid1_run *j)
{
    return j->used && j->exec && j->reaped &&
           (j->exec->state == EXEC_ENDING || j->exec->state == EXEC_REFUSING);
}

static bool may_be_killed(const struct agx_pid1_run *j)
{
    return j->used && j->exec && j->kill_at_ms > 0 &&
           (j->exec->state < EXEC_FLUSHING || j->exec->state == EXEC_REFUSING);
}

/* Nobody is left: the logs can be completed. */
static void look_at(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    if (!is_lingering(j) || number_in_use(p, j->pid))
        return;
    if (j->exec->state == EXEC_ENDING)
        j->exec->state = EXEC_FLUSHING;
    agx_pid1_exec_close_input(p, j);
    agx_log_pump_finish(&j->log_pump);
}

void agx_pid1_execs_look(struct agx_pid1 *p, uint64_t now_ms)
{
    for (unsigned i = 0; i < p->jobs_high; i++) {
        struct agx_pid1_run *j = &p->runs[i];

        if (may_be_killed(j) && now_ms >= j->kill_at_ms) {
            signal_session(p, j, SIGKILL);
            j->kill_at_ms = now_ms + PID1_LOOK_MS; /* repeated while processes are left */
        }
        look_at(p, j);
    }
    if (p->main_kill_at_ms > 0 && now_ms >= p->main_kill_at_ms && p->main_pid > 0)
        (void)kill(p->main_pid, SIGKILL);
}

int agx_pid1_execs_wait_ms(const struct agx_pid1 *p, uint64_t now_ms)
{
    uint64_t due = UINT64_MAX;

    if (p->main_kill_at_ms > 0)
        due = p->main_kill_at_ms;
    for (unsigned i = 0; i < p->jobs_high; i++) {
        const struct agx_pid1_run *j = &p->runs[i];

        if (is_lingering(j))
            due = AGX_MIN(due, now_ms + PID1_LOOK_MS);
        if (may_be_killed(j))
            due = AGX_MIN(due, j->kill_at_ms);
    }
    if (due == UINT64_MAX)
        return -1;
    return due <= now_ms ? 0 : (int)AGX_MIN(due - now_ms, INT32_MAX);
}

bool agx_pid1_execs_busy(const struct agx_pid1 *p)
{
    for (unsigned i = 0; i < p->jobs_high; i++) {
        const struct agx_pid1_run *j = &p->runs[i];

        if (j->used &&
            (!j->exec || (j->exec->state != EXEC_EXITED && j->exec->state != EXEC_REFUSED)))
            return true;
    }
    return false;
}

static uint64_t microseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void agx_pid1_exec_reaped(struct agx_pid1 *p, pid_t pid, int status, const struct rusage *usage)
{
    for (unsigned i = 0; i < p->jobs_high; i++) {
        struct agx_pid1_run *j = &p->runs[i];
        struct agx_pid1_exec *c = j->exec;

        if (!j->used || !c || j->reaped || j->pid != pid)
            continue;
        if (j->report_fd >= 0)
            agx_pid1_exec_reported(p, j); /* read its report before its end */
        j->reaped = true;
        c->signo = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
        c->exit_code = c->signo ? 128 + (int)c->signo : WEXITSTATUS(status);
        if (p->ending && c->signo == SIGKILL)
            c->exit_code = AGX_INIT_EXIT_LOST;
        c->usage =
            (struct agx_init_usage){ microseconds(usage->ru_utime), microseconds(usage->ru_stime),
                                     (uint64_t)usage->ru_maxrss };
        if (c->state != EXEC_REFUSING)
            c->state = EXEC_ENDING;
        look_at(p, j);
        return;
    }
}

/* Pipes that somebody outside of the session holds stay open, so that he is not killed by them. */
static void keep_leftovers(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    if (j->tty)
        return; /* processes on a terminal can handle its hangup */
    agx_leftover_keep(p, AGX_TAKE_FD(j->out_fd));
    agx_leftover_keep(p, AGX_TAKE_FD(j->err_fd));
}

static void complete(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    struct agx_pid1_exec *c = j->exec;
    bool asked = j->kill_at_ms > 0;

    keep_leftovers(p, j);
    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS && !p->channel.stdio; i++)
        j->log_pump.streams[i].data_fd = j->log_pump.streams[i].index_fd = -1; /* closed by the log
                                                                          * pump */
    if (!c) {
        agx_pid1_run_release(p, j);
        return;
    }
    if (c->state == EXEC_REFUSING) {
        c->state = EXEC_REFUSED;
        agx_dispatch_owe(p, c, EXEC_OWES_REFUSED | (asked ? EXEC_OWES_GONE : 0));
        if (!c->queued)
            agx_pid1_exec_forget(p, c); /* no daemon is connected: the next one tries again */
        return;
    }
    c->state = EXEC_EXITED;
    if (!p->channel.stdio)
        agx_pid1_run_release(p, j);
    else
        agx_dispatch_owe(p, c, EXEC_OWES_OUTPUT);
    agx_dispatch_owe(p, c, EXEC_OWES_EXITED | (asked ? EXEC_OWES_GONE : 0));
}

void agx_pid1_exec_moved(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    atomic_store(&j->log_pump.news, false);
    if (!j->used)
        return;
    if (atomic_load(&j->log_pump.done)) {
        if (!j->exec || j->exec->state == EXEC_FLUSHING || j->exec->state == EXEC_REFUSING)
            complete(p, j);
    } else if (j->exec && p->channel.stdio) {
        agx_dispatch_owe(p, j->exec, EXEC_OWES_OUTPUT);
    }
}

/*
 * pid1.h: PID 1 of a sandbox: what its parts share. docs/design/init.md
 *
 *     main.c      options, the main process, the loop
 *     mainlog.c   output of the main process
 *     channel.c   bytes to and from the daemon
 *     dispatch.c  requests of the daemon, and the messages to it
 *     exec.h      commands, and the files that implement them
 *     log_pump.c  the log pump: a thread for each command's output
 *     spawn.c     a process becomes a command
 *     suid.h      calls that would set the setuid or setgid bit
 *     plan.h      the way into a sandbox without an engine; nsset_server.h: its namespaces
 *
 * Everything except the log pumps and suid.c belongs to the main thread. It waits only in
 * epoll_wait(), opens no path once user code may run, and allocates nothing: every table has a
 * fixed size.
 */
#ifndef AGX_INIT_PID1_H
#define AGX_INIT_PID1_H

#include "init/channel.h"
#include "init/exec.h"
#include "init/log_pump.h"
#include "init/plan.h"

enum {
    PID1_RECS_MAX = 4096,    /* remembered commands: running, or not forgotten yet */
    PID1_JOBS_MAX = 1024,    /* commands that run, or whose output is kept here */
    PID1_LEFTOVERS_MAX = 64, /* pipes that are still written to after their command's end */
    PID1_BUCKETS = 1024,
    PID1_NONE = 0xffff,
    PID1_LOOK_MS = 100, /* how often we check for ends that are not reported to us */
};

struct agx_pid1 {
    int epoll_fd, signal_fd;
    int notify_fd[2]; /* log pumps write, we read */
    int null_fd, pts_fd, proc_fd;
    int report_fd; /* of the current plan; 0: none */
    char **base_env;
    struct agx_str groups;   /* of every command, besides those of its user */
    uint64_t users_until_ms; /* until then the main process may still be adding users */
    bool more_dead;          /* more than were reaped in one turn */
    pid_t main_pid;          /* 0: none, init itself idles */
    uint64_t main_kill_at_ms;
    struct agx_log_pump main_log_pump;
    bool main_moves; /* it was started */
    bool ending;     /* the sandbox has ended, only clean-up is left */
    int exit_code;
    uint64_t ending_until_ms;

    uint32_t epoch; /* counts HELLOs */
    struct agx_channel channel;
    struct agx_reply reply;
    uint16_t owing_head, owing_tail;

    unsigned cmds_max, n_cmds, n_jobs;
    uint16_t exec_free, job_free;
    uint16_t buckets[PID1_BUCKETS];
    struct agx_pid1_exec execs[PID1_RECS_MAX];
    struct agx_pid1_run runs[PID1_JOBS_MAX];
    unsigned cmds_high, jobs_high; /* nothing at this place or behind it was ever used */
    uint8_t inputs[PID1_JOBS_MAX][AGX_INIT_DATA_MAX];
    int leftovers[PID1_LEFTOVERS_MAX];
    unsigned leftover_next;
};

/* What the loop waits for: the upper half of epoll's data; the lower half is an index. */
enum agx_source {
    SOURCE_SIGNAL,
    SOURCE_CHANNEL,
    SOURCE_CHANNEL_OUT, /* stdio */
    SOURCE_SPARE,
    SOURCE_NOTIFY,
    SOURCE_REPORT,
    SOURCE_INPUT,
    SOURCE_LEFTOVER,
};

/* main.c */
bool agx_pid1_watch(struct agx_pid1 *p, int fd, uint32_t events, enum agx_source source,
                    unsigned index);
/* The sandbox has ended: kills everything, completes logs and reports, and exits. */
void agx_pid1_end(struct agx_pid1 *p, int exit_code);
/* The main process may start, unless it already runs. */
void agx_pid1_go(struct agx_pid1 *p);
void agx_pid1_kill_main_in(struct agx_pid1 *p, uint64_t grace_ms);

/* mainlog.c */
/* The descriptor that the main process writes to, or -1: no log. */
int agx_mainlog_start(struct agx_pid1 *p, const struct agx_planned *planned);
void agx_mainlog_finish(struct agx_pid1 *p);
/* The log is not complete yet. */
bool agx_mainlog_busy(const struct agx_pid1 *p);

/* dispatch.c */
/* Descriptors that were not taken remain the caller's to close: those that are not -1. */
void agx_dispatch(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds);
void agx_dispatch_refuse(struct agx_pid1 *p, struct agx_str id, enum agx_code code,
                         const char *why);
/* Sends the messages that are due, as far as there is room. */
void agx_dispatch_flush(struct agx_pid1 *p);
bool agx_dispatch_can_send(const struct agx_pid1 *p);
void agx_dispatch_owe(struct agx_pid1 *p, struct agx_pid1_exec *c, unsigned what);

static inline void agx_close_fd(int *fd)
{
    agx_closep(fd);
    *fd = -1;
}

#endif

/*
 * pid1.h: PID 1 of a sandbox: what its parts share. docs/design/init.md
 *
 *     main.c      options, the main process, the loop
 *     channel.c   bytes to and from the daemon
 *     dispatch.c  what the daemon asks for, and what it is told
 *     cmd.c       commands: records, start
 *     cmd_end.c   ... their end: reaping, killing, when nothing is left
 *     cmd_io.c    ... input, terminal, output
 *     mover.c     a thread for each command's output
 *     spawn.c     a process becomes a command
 *     user.c      passwd and group
 *
 * Everything but the movers is the main thread's. It never waits for anything but epoll_wait(),
 * opens no path once user code may run, and allocates nothing: every table has a fixed size.
 */
#ifndef AGX_INIT_PID1_H
#define AGX_INIT_PID1_H

#include "init/channel.h"
#include "init/mover.h"
#include "init/spawn.h"

#include <sys/resource.h>
#include <sys/types.h>

enum {
    PID1_RECS_MAX = 4096,    /* commands known: those that run and those not yet forgotten */
    PID1_JOBS_MAX = 1024,    /* commands that run, or whose output is kept here */
    PID1_LEFTOVERS_MAX = 64, /* pipes that somebody still writes to after his command's end */
    PID1_BUCKETS = 1024,
    PID1_NONE = 0xffff,
    PID1_LOOK_MS = 100, /* how often we look at what ends without telling us */
};

/*
 *     FREE -> STARTING -> RUNNING -> ENDING -> FLUSHING -> EXITED -> FREE
 *                |
 *                +-> REFUSING -> REFUSED -> FREE
 *
 * ENDING: its first process is reaped, others are left. FLUSHING: none is left, the logs are not
 * complete yet. REFUSING: the same of a process that did not become the command.
 */
enum agx_cmd_state {
    CMD_FREE,
    CMD_STARTING,
    CMD_RUNNING,
    CMD_ENDING,
    CMD_FLUSHING,
    CMD_EXITED,
    CMD_REFUSING,
    CMD_REFUSED,
};

/* Messages that are owed to the daemon; sent in this order. */
#define CMD_OWES_STARTED 1u
#define CMD_OWES_REFUSED 2u
#define CMD_OWES_TAKEN 4u
#define CMD_OWES_OUTPUT 8u
#define CMD_OWES_EXITED 16u
#define CMD_OWES_GONE 32u

/* A command, until it is forgotten. */
struct agx_cmd {
    char id[AGX_INIT_ID_MAX + 1];
    uint8_t id_len;
    uint8_t state; /* enum agx_cmd_state */
    uint8_t owes;
    bool queued;        /* among those that owe something */
    bool forget;        /* once it owes nothing */
    uint16_t job;       /* or PID1_NONE */
    uint16_t hash_next; /* the next of its bucket, or of the free ones */
    uint16_t owing_next;
    uint32_t epoch; /* of the connection on which it was asked for: others get no news of it */
    uint32_t taken_code;
    int32_t exit_code;
    uint32_t signo;
    struct agx_init_usage usage;
};

/* What a command needs while it runs. */
struct agx_job {
    bool used;
    struct agx_cmd *cmd; /* NULL: it could not be started after all */
    uint16_t next_free;
    bool reaped, tty;
    pid_t pid; /* also its session and process group */
    int in_fd; /* our end of its input; of a terminal, a duplicate of out_fd */
    int out_fd, err_fd;
    int report_fd;       /* -1: it has become the command, or said why not */
    uint64_t kill_at_ms; /* when TERM becomes KILL; 0: nobody asked */
    struct agx_mover mover;
    struct agx_spawn_report report;
    size_t input_at, input_len; /* in `inputs`: what the command has not read yet */
    bool input_eof, input_watched;
    /* Where init keeps the logs: what of them the daemon was sent. */
    uint64_t sent[AGX_MOVER_STREAMS];
    bool sent_eof[AGX_MOVER_STREAMS];
};

struct agx_pid1 {
    int epoll_fd, signal_fd;
    int notify_fd[2]; /* movers write, we read */
    int null_fd, pts_fd, proc_fd;
    char **base_env;
    bool more_dead; /* than were reaped in one turn */
    pid_t main_pid; /* 0: none, init itself idles */
    uint64_t main_kill_at_ms;
    bool ending; /* the sandbox is over, only clean-up is left */
    int exit_code;
    uint64_t ending_until_ms;

    uint32_t epoch; /* counts HELLOs */
    struct agx_channel channel;
    struct agx_reply reply;
    uint16_t owing_head, owing_tail;

    unsigned cmds_max, n_cmds, n_jobs;
    uint16_t cmd_free, job_free;
    uint16_t buckets[PID1_BUCKETS];
    struct agx_cmd cmds[PID1_RECS_MAX];
    struct agx_job jobs[PID1_JOBS_MAX];
    unsigned jobs_high; /* no job at this place or behind it was ever used */
    uint8_t inputs[PID1_JOBS_MAX][AGX_INIT_DATA_MAX];
    int leftovers[PID1_LEFTOVERS_MAX];
    unsigned leftover_next;
};

/* What the loop waits for: the upper half of epoll's data; the lower one is an index. */
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
/* The sandbox is over: everything is killed, logs and reports are completed, and init exits. */
void agx_pid1_end(struct agx_pid1 *p, int exit_code);
void agx_pid1_kill_main_in(struct agx_pid1 *p, uint64_t grace_ms);

/* dispatch.c */
/* Descriptors that nobody took are the caller's to close: those that are not -1 then. */
void agx_dispatch(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds);
void agx_dispatch_refuse(struct agx_pid1 *p, struct agx_str id, enum agx_code code,
                         const char *why);
/* Sends what is owed, as far as there is room. */
void agx_dispatch_flush(struct agx_pid1 *p);
bool agx_dispatch_can_send(const struct agx_pid1 *p);
void agx_dispatch_owe(struct agx_pid1 *p, struct agx_cmd *c, unsigned what);

/* cmd.c */
void agx_cmds_init(struct agx_pid1 *p, unsigned max);
struct agx_cmd *agx_cmd_find(struct agx_pid1 *p, struct agx_str id);
/* False: a code and why in `ret_text`; nothing was started and nothing is remembered. */
bool agx_cmd_start(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds,
                   uint32_t *ret_code, char ret_text[AGX_INIT_TEXT_MAX]);
void agx_cmd_reported(struct agx_pid1 *p, struct agx_job *j);
void agx_cmd_forget(struct agx_pid1 *p, struct agx_cmd *c);
struct agx_job *agx_cmd_job(struct agx_pid1 *p, const struct agx_cmd *c);
void agx_job_release(struct agx_pid1 *p, struct agx_job *j);

/* cmd_end.c */
void agx_cmd_reaped(struct agx_pid1 *p, pid_t pid, int status, const struct rusage *usage);
/* Looks at those whose first process is gone, and at those that are to be killed. */
void agx_cmds_look(struct agx_pid1 *p, uint64_t now_ms);
void agx_cmd_kill(struct agx_pid1 *p, struct agx_cmd *c, uint64_t grace_ms);
void agx_cmd_moved(struct agx_pid1 *p, struct agx_job *j);
/* Milliseconds until agx_cmds_look() is due; -1: not before something happens. */
int agx_cmds_wait_ms(const struct agx_pid1 *p, uint64_t now_ms);
/* True while a process of a command may be left, or a log is not complete. */
bool agx_cmds_busy(const struct agx_pid1 *p);

/* cmd_io.c */
void agx_cmd_input(struct agx_pid1 *p, struct agx_cmd *c, const struct agx_init_msg *m);
void agx_cmd_feed(struct agx_pid1 *p, struct agx_job *j);
void agx_cmd_resize(struct agx_pid1 *p, struct agx_cmd *c, uint32_t rows, uint32_t cols);
/* Where init keeps the logs: sends a piece of what the daemon has not had. */
enum agx_push {
    PUSH_DONE,
    PUSH_MORE,
    PUSH_BLOCKED
} agx_cmd_push(struct agx_pid1 *p, struct agx_cmd *c);
void agx_cmd_close_input(struct agx_pid1 *p, struct agx_job *j);
void agx_leftover_keep(struct agx_pid1 *p, int fd);
void agx_leftover_read(struct agx_pid1 *p, unsigned index);

static inline void agx_close_fd(int *fd)
{
    agx_closep(fd);
    *fd = -1;
}

#endif

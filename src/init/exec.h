/*
 * exec.h: the commands that PID 1 runs for the daemon.
 *
 *     exec.c       records, start
 *     exec_end.c   their end: reaping, killing, when no process is left
 *     exec_io.c    input, terminal, output
 *
 * A command is remembered until the daemon says that it may be forgotten. What it needs only while
 * it runs, descriptors and a thread, is its run. Both are in tables of fixed size: init/pid1.h.
 */
#ifndef AGX_INIT_EXEC_H
#define AGX_INIT_EXEC_H

#include "init/log_pump.h"
#include "init/spawn.h"

#include <sys/resource.h>
#include <sys/types.h>

struct agx_pid1;

/*
 *     FREE -> STARTING -> RUNNING -> ENDING -> FLUSHING -> EXITED -> FREE
 *                |
 *                +-> REFUSING -> REFUSED -> FREE
 *
 * ENDING: its first process is reaped, others are left. FLUSHING: none is left, but the logs are
 * not complete. REFUSING: both of these for a process that did not become the command.
 */
enum agx_pid1_exec_state {
    EXEC_FREE,
    EXEC_STARTING,
    EXEC_RUNNING,
    EXEC_ENDING,
    EXEC_FLUSHING,
    EXEC_EXITED,
    EXEC_REFUSING,
    EXEC_REFUSED,
};

/* Messages that init owes the daemon; sent in this order. */
#define EXEC_OWES_STARTED 1u
#define EXEC_OWES_REFUSED 2u
#define EXEC_OWES_TAKEN 4u
#define EXEC_OWES_OUTPUT 8u
#define EXEC_OWES_EXITED 16u
#define EXEC_OWES_GONE 32u

/* The record of a command, until FORGET. */
struct agx_pid1_exec {
    char id[AGX_INIT_ID_MAX + 1];
    uint8_t id_len;
    uint8_t state; /* enum agx_pid1_exec_state */
    uint8_t owes;
    bool queued;        /* in the queue of commands that owe messages */
    bool forget;        /* to be forgotten when it owes no message */
    uint16_t run;       /* or PID1_NONE */
    uint16_t hash_next; /* the next record in its bucket or in the free list */
    uint16_t owing_next;
    uint32_t epoch; /* of the connection that requested it: others get no news */
    uint32_t taken_code;
    int32_t exit_code;
    uint32_t signo;
    struct agx_init_usage usage;
};

/* What a command needs while it runs. */
struct agx_pid1_run {
    bool used;
    struct agx_pid1_exec *exec; /* NULL: the command could not be started after all */
    uint16_t next_free;
    bool reaped, tty;
    pid_t pid; /* also its session and process group */
    int in_fd; /* init's end of its input; for a terminal, a duplicate of out_fd */
    int out_fd, err_fd;
    int report_fd;       /* -1: it has become the command, or has reported why not */
    uint64_t kill_at_ms; /* when SIGTERM becomes SIGKILL; 0: no kill requested */
    struct agx_log_pump log_pump;
    struct agx_spawn_report report;
    size_t input_at, input_len; /* in `inputs` of agx_pid1: unread bytes */
    bool input_eof, input_watched;
    /* If init keeps the logs: how much of them was sent to the daemon. */
    uint64_t sent[AGX_LOG_PUMP_STREAMS];
    bool sent_eof[AGX_LOG_PUMP_STREAMS];
};

/* exec.c */
void agx_pid1_execs_init(struct agx_pid1 *p, unsigned max);
struct agx_pid1_exec *agx_pid1_exec_find(struct agx_pid1 *p, struct agx_str id);
/* False: *ret_code and the reason in `ret_text`; nothing was started and nothing is remembered. */
bool agx_pid1_exec_start(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds,
                         uint32_t *ret_code, char ret_text[AGX_INIT_TEXT_MAX]);
void agx_pid1_exec_reported(struct agx_pid1 *p, struct agx_pid1_run *j);
void agx_pid1_exec_forget(struct agx_pid1 *p, struct agx_pid1_exec *c);
struct agx_pid1_run *agx_pid1_exec_run(struct agx_pid1 *p, const struct agx_pid1_exec *c);
void agx_pid1_run_release(struct agx_pid1 *p, struct agx_pid1_run *j);

/* exec_end.c */
void agx_pid1_exec_reaped(struct agx_pid1 *p, pid_t pid, int status, const struct rusage *usage);
/* Checks commands whose first process has ended, and those that are being killed. */
void agx_pid1_execs_look(struct agx_pid1 *p, uint64_t now_ms);
void agx_pid1_exec_kill(struct agx_pid1 *p, struct agx_pid1_exec *c, uint64_t grace_ms);
void agx_pid1_exec_moved(struct agx_pid1 *p, struct agx_pid1_run *j);
/* Milliseconds until agx_pid1_execs_look() is due; -1: not before something happens. */
int agx_pid1_execs_wait_ms(const struct agx_pid1 *p, uint64_t now_ms);
/* True while a process of a command may be left, or a log is incomplete. */
bool agx_pid1_execs_busy(const struct agx_pid1 *p);

/* exec_io.c */
enum agx_push { PUSH_DONE, PUSH_MORE, PUSH_BLOCKED };
void agx_pid1_exec_input(struct agx_pid1 *p, struct agx_pid1_exec *c, const struct agx_init_msg *m);
void agx_pid1_exec_feed(struct agx_pid1 *p, struct agx_pid1_run *j);
void agx_pid1_exec_resize(struct agx_pid1 *p, struct agx_pid1_exec *c, uint32_t rows,
                          uint32_t cols);
/* If init keeps the logs: sends the next piece that the daemon lacks. */
enum agx_push agx_pid1_exec_push(struct agx_pid1 *p, struct agx_pid1_exec *c);
void agx_pid1_exec_close_input(struct agx_pid1 *p, struct agx_pid1_run *j);
void agx_leftover_keep(struct agx_pid1 *p, int fd);
void agx_leftover_read(struct agx_pid1 *p, unsigned index);

#endif

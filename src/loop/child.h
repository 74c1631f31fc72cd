/*
 * child.h: child processes, held by pidfd.
 *
 * No SIGCHLD handler and no race for process ids: the pidfd reports the exit, and signals are sent
 * through it. SIGCHLD must not be ignored in this process (agx_signals_open() ensures that), or the
 * kernel discards exit statuses.
 */
#ifndef AGX_LOOP_CHILD_H
#define AGX_LOOP_CHILD_H

#include "base/error.h"

#include <sys/types.h>

struct agx_loop;
struct agx_child;

/* Our descriptor `ours` becomes the child's `theirs`. `ours` stays open here. */
struct agx_child_fd {
    int ours, theirs;
};

struct agx_child_params {
    const char *file;        /* path of the program, from `cwd` if relative; PATH is not used */
    const char *const *argv; /* ends with NULL; NULL: just `file` */
    const char *const *env;  /* the whole environment, ends with NULL; NULL: an empty one */
    const char *cwd;         /* NULL: ours */
    const struct agx_child_fd *fds;
    size_t n_fds; /* 0, 1 and 2 are /dev/null unless listed; nothing else is open in the child */
    enum {
        AGX_CHILD_OUR_GROUP, /* the terminal's signals reach it */
        AGX_CHILD_NEW_GROUP,
        AGX_CHILD_NEW_SESSION, /* which is also a new group */
    } group;
    bool end_group; /* when it ends, kill the rest of its group */
};

struct agx_child_status {
    int code;  /* exit code; -1: ended by a signal, or unknown */
    int signo; /* the signal that ended it, or 0 */
};

/* Loop thread, once, never inside agx_child_start(). The child is reaped and `c` is dead. */
typedef void (*agx_child_exit_fn)(void *user, const struct agx_child_status *status);

/*
 * Starts a program. In it all signals have their default action and none is blocked. If it cannot
 * be executed, this returns the error: -AGX_NOT_FOUND, -AGX_PERMISSION_DENIED, ... The caller may
 * use *ret_child until `on_exit`, which always follows and frees it.
 */
int agx_child_start(struct agx_loop *l, const struct agx_child_params *params,
                    agx_child_exit_fn on_exit, void *user, struct agx_child **ret_child,
                    struct agx_error **err) AGX_MUST_CHECK;

/* The same for a caller that waits for the process itself, with waitpid(), on a thread that may
 * block. Any thread. Ignores `end_group`. */
int agx_child_spawn(const struct agx_child_params *params, pid_t *ret_pid,
                    struct agx_error **err) AGX_MUST_CHECK;

pid_t agx_child_pid(const struct agx_child *c);

/* Sends a signal to it; no effect when it has ended. */
void agx_child_kill(struct agx_child *c, int signo);

/* The same to its whole group, as set by params->group. */
void agx_child_kill_group(struct agx_child *c, int signo);

#endif

/*
 * child.h: child processes, held by pidfd.
 *
 * No SIGCHLD handler and no race for process ids: the exit is seen on the pidfd, signals go through
 * it. SIGCHLD must not be ignored in this process (agx_signals_open() sees to that), or the kernel
 * throws exit statuses away.
 */
#ifndef AGX_LOOP_CHILD_H
#define AGX_LOOP_CHILD_H

#include "base/error.h"

#include <sys/types.h>

struct agx_loop;
struct agx_child;

/* Our descriptor `ours` becomes the child's `theirs`. `ours` stays open and ours. */
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
        AGX_CHILD_NEW_SESSION, /* and so a group of its own too */
    } group;
    bool end_group; /* when it ends, what is left of its own group is killed */
};

struct agx_child_status {
    int code;  /* exit code; -1 when a signal ended it, or when nobody can tell any more */
    int signo; /* the signal that ended it, or 0 */
};

/* Loop thread, once, never inside agx_child_start(). The child is reaped and `c` is dead. */
typedef void (*agx_child_exit_fn)(void *user, const struct agx_child_status *status);

/*
 * Starts a program. All signals have their default action and none is blocked in it. A program that
 * cannot be executed is an error here: -AGX_NOT_FOUND, -AGX_PERMISSION_DENIED, ... The caller may
 * use *ret_child until `on_exit`, which follows in any case and frees it.
 */
int agx_child_start(struct agx_loop *l, const struct agx_child_params *params,
                    agx_child_exit_fn on_exit, void *user, struct agx_child **ret_child,
                    struct agx_error **err) AGX_MUST_CHECK;

/* The same for a caller that waits for the process itself, with waitpid(): one that may block, on a
 * thread of its own. Any thread. `end_group` means nothing here. */
int agx_child_spawn(const struct agx_child_params *params, pid_t *ret_pid,
                    struct agx_error **err) AGX_MUST_CHECK;

pid_t agx_child_pid(const struct agx_child *c);

/* Sends a signal to it; nothing happens when it has ended. */
void agx_child_kill(struct agx_child *c, int signo);

/* The same to the whole group that params->group gave it. */
void agx_child_kill_group(struct agx_child *c, int signo);

#endif

/*
 * spawn.h: a process becomes the command: session, descriptors, limits, user, directory,
 * environment, program.
 *
 * Everything that code in the sandbox may delay (its file systems, its passwd file) is done in the
 * new process, so that PID 1 never waits for it.
 */
#ifndef AGX_INIT_SPAWN_H
#define AGX_INIT_SPAWN_H

#include "codec/initproto.h"

#include <sys/types.h>

/* The report of a command that could not be started, on a pipe that exec closes. */
struct agx_spawn_report {
    uint32_t code; /* enum agx_code */
    char text[AGX_INIT_TEXT_MAX];
};

struct agx_spawn {
    int in_fd, out_fd, err_fd; /* become 0, 1, 2; -1: unchanged (the main process) */
    bool tty;                  /* in_fd is a terminal, and becomes the controlling one */
    int report_fd;             /* -1: none; errors go to stderr with exit code 126 */
    bool is_main;              /* as an engine would start it: no shell for files without an
                                * interpreter line */

    struct agx_str user;    /* empty: init's own */
    uint64_t user_until_ms; /* a user that does not exist is waited for until then */
    struct agx_str groups;  /* "44,105", besides the user's own; empty: none */
    struct agx_str cwd;     /* empty: init's; made when it is missing */
    mode_t umask;
    const struct agx_init_list *rlimits; /* NULL: none */
    struct agx_init_list argv, env;      /* borrowed from a packet */
    char **main_argv;                    /* instead of argv */
    char *const *base_env;               /* overridden by `env`; NULL: none */
};

/* Forks. The pid, or -1 and errno. */
pid_t agx_spawn(const struct agx_spawn *s);

#endif

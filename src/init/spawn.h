/*
 * spawn.h: a process becomes the command: session, descriptors, limits, user, directory,
 * environment, program.
 *
 * Everything that code in the sandbox may delay (its file systems, its passwd file) happens in the
 * new process, so that PID 1 never waits for it.
 */
#ifndef AGX_INIT_SPAWN_H
#define AGX_INIT_SPAWN_H

#include "codec/initproto.h"

#include <sys/types.h>

/* How a command that could not be started says so, on a pipe that its program closes. */
struct agx_spawn_report {
    uint32_t code; /* enum agx_code */
    char text[AGX_INIT_TEXT_MAX];
};

struct agx_spawn {
    int in_fd, out_fd, err_fd; /* become 0, 1, 2; -1: stay as they are (the main process) */
    bool tty;                  /* in_fd is a terminal, and becomes the controlling one */
    int report_fd;             /* -1: none; faults go to stderr with an exit code of 126 */
    bool is_main;              /* as an engine would start it: no shell for files without a head */

    struct agx_str user;    /* empty: as init itself */
    uint64_t user_until_ms; /* until then one who is not there is waited for */
    struct agx_str groups;  /* "44,105", beside his own; empty: none */
    struct agx_str cwd;     /* empty: where init is; made when it is missing */
    mode_t umask;
    const struct agx_init_list *rlimits; /* NULL: none */
    struct agx_init_list argv, env;      /* of a packet */
    char **main_argv;                    /* instead of argv */
    char *const *base_env;               /* under `env`; NULL: none */
};

/* Forks. The pid, or -1 and errno. */
pid_t agx_spawn(const struct agx_spawn *s);

#endif

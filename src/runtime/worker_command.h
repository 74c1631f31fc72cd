/*
 * worker_command.h: the worker's program and environment.
 *
 * Python is, in this order: the requested one; the one of the virtual environment made by `make
 * install` (../lib/agentix/venv); the interpreter beside agentix-server (a bundle); python3 on
 * PATH. Without any, the program agentix-worker beside agentix-server serves C functions.
 *
 * The environment is the server's, except variables that would change the worker's libraries or
 * modules (LD_*, PYTHON*, ...) and our token; the bundle's bin comes first in the image's PATH.
 */
#ifndef AGX_RUNTIME_WORKER_COMMAND_H
#define AGX_RUNTIME_WORKER_COMMAND_H

#include "base/error.h"

struct agx_worker_command {
    char **argv, **env; /* owned, NULL-terminated, as are their strings */
};

struct agx_worker_options {
    const char *python;  /* NULL: look for one */
    const char *program; /* another worker program; NULL: Python's */
    const char *package; /* directory with the package `agentix`; NULL: the interpreter has it */
    const char *path;    /* directories of user code, colon-separated; NULL: none */
};

int agx_worker_command_init(struct agx_worker_command *cmd,
                            const struct agx_worker_options *options, char *const *environ_,
                            struct agx_error **err) AGX_MUST_CHECK;
/* Accepts a half-built one. */
void agx_worker_command_done(struct agx_worker_command *cmd);

#endif

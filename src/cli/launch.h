/*
 * launch.h: starts agentixd in the background: the program beside our own, or the one on PATH. It
 * returns when agentixd serves; agentixd's lock ensures that only one runs.
 */
#ifndef AGX_CLI_LAUNCH_H
#define AGX_CLI_LAUNCH_H

#include "base/error.h"

enum {
    AGX_LAUNCH_OTHER,   /* another daemon has the lock: it serves, or will soon */
    AGX_LAUNCH_STARTED, /* it serves */
};

/* `options` are agentixd's. Waits at most AGX_CLI_START_MS. On failure the error includes
 * agentixd's stderr. */
int agx_launch(char *const *options, size_t count, struct agx_error **err) AGX_MUST_CHECK;

#endif

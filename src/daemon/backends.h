/*
 * backends.h: the backends that a daemon can be started with. main.c leaves them to the program
 * that it is linked into: agentixd has backends.c, and a daemon for tests may have more.
 */
#ifndef AGX_DAEMON_BACKENDS_H
#define AGX_DAEMON_BACKENDS_H

#include "backend/target.h"

/* Ends with NULL. */
extern const struct agx_backend_kind *const agx_daemon_backends[];

#endif

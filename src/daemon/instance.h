/*
 * instance.h: that there is one daemon: a lock file that it holds as long as it lives.
 *
 * The lock goes with the process however it ends; the file stays, with the pid of its last holder
 * for people to read.
 */
#ifndef AGX_DAEMON_INSTANCE_H
#define AGX_DAEMON_INSTANCE_H

#include "base/error.h"

#include <sys/types.h>

struct agx_instance;

/* -AGX_ALREADY_EXISTS when it is held: the message has the path and the holder's pid. Waits for
 * nobody but the last children of a holder that is dead. The file gets that mode. */
int agx_instance_open(const char *path, mode_t mode, struct agx_instance **ret_instance,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Returns NULL and accepts it. */
struct agx_instance *agx_instance_close(struct agx_instance *i);

#endif

/*
 * instance.h: ensures that one daemon runs: it holds a lock file for as long as it lives.
 *
 * The kernel releases the lock when the process ends, in whatever way; the file stays, with the pid
 * of its last holder for people to read.
 */
#ifndef AGX_DAEMON_INSTANCE_H
#define AGX_DAEMON_INSTANCE_H

#include "base/error.h"

#include <sys/types.h>

struct agx_instance;

/* -AGX_ALREADY_EXISTS when another holds it: the message has the path and the holder's pid. Waits
 * only for the last children of a dead holder. The file gets `mode`. */
int agx_instance_open(const char *path, mode_t mode, struct agx_instance **ret_instance,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Returns NULL and accepts it. */
struct agx_instance *agx_instance_close(struct agx_instance *i);

#endif

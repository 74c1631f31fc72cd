/*
 * recovery.h: the start: what is stored becomes units, and is then held against what the backend
 * has. Nothing that is found keeps the daemon from serving.
 */
#ifndef AGX_DAEMON_RECOVERY_H
#define AGX_DAEMON_RECOVERY_H

#include "daemon/unit.h"

/* Every record, each with its restart. Only a store that cannot be read at all is a failure. */
int agx_recovery_load(struct agx_engine *e, struct agx_error **err) AGX_MUST_CHECK;
/* Carries on what had been accepted, and begins to look at the backend. */
void agx_recovery_start(struct agx_engine *e);

/* The backend answered for a unit that has not been held against it. */
void agx_recovery_judge(struct agx_unit *u, const struct agx_backend_seen *seen);
/* It has something of which there is no record. */
void agx_recovery_orphan(struct agx_engine *e, const char *sandbox_id);

#endif

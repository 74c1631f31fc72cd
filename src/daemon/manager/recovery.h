/*
 * recovery.h: the start: makes units out of the stored records, then compares them with what the
 * backend has. Nothing that is found keeps the daemon from serving.
 */
#ifndef AGX_DAEMON_MANAGER_RECOVERY_H
#define AGX_DAEMON_MANAGER_RECOVERY_H

#include "daemon/manager/unit.h"

/* Loads and restarts every record. Fails only when the store cannot be read at all. */
int agx_recovery_load(struct agx_manager *e, struct agx_error **err) AGX_MUST_CHECK;
/* Resumes accepted operations and starts to look at the backend. */
void agx_recovery_start(struct agx_manager *e);

/* Compares a unit that was not reconciled yet with the backend's answer. */
void agx_recovery_judge(struct agx_unit *u, const struct agx_backend_seen *seen);
/* The backend has a sandbox without a record. */
void agx_recovery_orphan(struct agx_manager *e, const char *sandbox_id);

#endif

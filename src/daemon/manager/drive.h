/*
 * drive.h: carries out at the backend what the rules decided; what the backend reports becomes an
 * input of the unit.
 *
 * Every call has a deadline, at which the operation is cancelled. If it does not answer the cancel
 * within a grace period, it is given up and reported as failed, with the name of the call that
 * hung and for how long.
 */
#ifndef AGX_DAEMON_MANAGER_DRIVE_H
#define AGX_DAEMON_MANAGER_DRIVE_H

#include "daemon/manager/unit.h"

/* Starts an operation. Requires that none runs. */
void agx_drive_start(struct agx_unit *u, enum agx_do verb);
/* The same for an operation that a former daemon may have started: while the backend still runs it
 * (UNAVAILABLE), asks again, up to the deadline. */
void agx_drive_carry_on(struct agx_unit *u, enum agx_do verb);
/* Asks the running operation to end early. */
void agx_drive_cancel(struct agx_unit *u);
/* Forgets the running operation. */
void agx_drive_abandon(struct agx_unit *u);

/* Removes what the backend has of a sandbox that is DELETED or has no record (then only the id is
 * set). Nobody waits for the result; a failure is logged. */
void agx_drive_remove(struct agx_manager *e, const struct agx_sandbox *sb);

/* Kills a command whose start hung, in case it did begin. A failure is logged. */
void agx_drive_kill_lost(struct agx_manager *e, const struct agx_exec *exec);

void agx_drive_exec_start(struct agx_exec_unit *x, enum agx_exec_do what);
/* Call when its end is stored: the backend may forget it. */
void agx_drive_exec_forget(struct agx_exec_unit *x);
/* No callback follows; the command itself runs on. */
void agx_drive_exec_abandon(struct agx_exec_unit *x);

/* For the manager's close: drops removals and writes, and answers the callers of writes. */
void agx_drive_close(struct agx_manager *e);
void agx_drive_close_writes(struct agx_manager *e);

#endif

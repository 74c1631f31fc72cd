/*
 * drive.h: what the rules decided, carried out at the backend; what the backend reports becomes an
 * input of its unit.
 *
 * Every call has a deadline. At the deadline the operation is cancelled; when it does not answer
 * that within a grace it is given up, and reported as failed with what hung and for how long.
 */
#ifndef AGX_DAEMON_DRIVE_H
#define AGX_DAEMON_DRIVE_H

#include "daemon/unit.h"

/* Starts an operation; none runs. */
void agx_drive_start(struct agx_unit *u, enum agx_do verb);
/* The same for one that a former daemon may have started: while the backend is still at it
 * (UNAVAILABLE), it is asked again, up to the deadline. */
void agx_drive_carry_on(struct agx_unit *u, enum agx_do verb);
/* Asks the one that runs to end early. */
void agx_drive_cancel(struct agx_unit *u);
/* Forgets the one that runs. */
void agx_drive_abandon(struct agx_unit *u);

/* Removes what the backend has of a sandbox that has no record (only the id is set), or that is
 * DELETED. Nobody waits for it; a failure is logged. */
void agx_drive_remove(struct agx_engine *e, const struct agx_sandbox *sb);

/* Ends a command whose start hung, should it have begun after all. Likewise. */
void agx_drive_kill_lost(struct agx_engine *e, const struct agx_exec *exec);

void agx_drive_exec_start(struct agx_active *x, enum agx_exec_do what);
/* Its end is durable: the backend may forget it. */
void agx_drive_exec_forget(struct agx_active *x);
/* No hook of it comes any more; the command is left alone. */
void agx_drive_exec_abandon(struct agx_active *x);

/* For the engine's end: forgets removals and writes; those who wait for a write are told. */
void agx_drive_close(struct agx_engine *e);
void agx_drive_close_writes(struct agx_engine *e);

#endif

/*
 * lookout.h: the monitor: asks the backend what runs and what died. It asks about all sandboxes
 * every look_ms, and about one sandbox when the backend reports an event of it.
 */
#ifndef AGX_DAEMON_LOOKOUT_H
#define AGX_DAEMON_LOOKOUT_H

#include "daemon/unit.h"

/* Starts the first look and the periodic ones. */
void agx_lookout_start(struct agx_engine *e);
/* Looks at one sandbox, `ms` milliseconds from now. */
void agx_lookout_unit(struct agx_unit *u, uint64_t ms);
/* The sandbox's phase changed: earlier observations no longer count. */
void agx_lookout_reset(struct agx_unit *u);
/* Ends all looks at it. */
void agx_lookout_abandon(struct agx_unit *u);
void agx_lookout_close(struct agx_engine *e);

#endif

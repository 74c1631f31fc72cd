/*
 * monitor.h: the monitor: asks the backend what runs and what died. It asks about all sandboxes
 * every look_ms, and about one sandbox when the backend reports an event of it.
 */
#ifndef AGX_DAEMON_MANAGER_MONITOR_H
#define AGX_DAEMON_MANAGER_MONITOR_H

#include "daemon/manager/unit.h"

/* Starts the first look and the periodic ones. */
void agx_monitor_start(struct agx_manager *e);
/* Looks at one sandbox, `ms` milliseconds from now. */
void agx_monitor_unit(struct agx_unit *u, uint64_t ms);
/* The sandbox's phase changed: earlier observations no longer count. */
void agx_monitor_reset(struct agx_unit *u);
/* Ends all looks at it. */
void agx_monitor_abandon(struct agx_unit *u);
void agx_monitor_close(struct agx_manager *e);

#endif

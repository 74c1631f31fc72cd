/* timers.h: timed actions of a sandbox: idle stop, clean-up, the deadlines of execs. */
#ifndef AGX_DAEMON_MANAGER_TIMERS_H
#define AGX_DAEMON_MANAGER_TIMERS_H

#include "daemon/manager/unit.h"

/* After a change: sets the unit's alarm to what is due next. */
void agx_timers_schedule(struct agx_unit *u);
void agx_timers_schedule_exec(struct agx_exec_unit *x);

#endif

/*
 * lookout.h: looks at the backend: what runs, what died. All sandboxes are looked at together every
 * look_ms, and one of them when the backend has news of it.
 */
#ifndef AGX_DAEMON_LOOKOUT_H
#define AGX_DAEMON_LOOKOUT_H

#include "daemon/unit.h"

/* The first look, and all that follow. */
void agx_lookout_start(struct agx_engine *e);
/* Looks at one, so many milliseconds from now. */
void agx_lookout_unit(struct agx_unit *u, uint64_t ms);
/* Its phase changed: what was seen before does not count. */
void agx_lookout_reset(struct agx_unit *u);
/* No more looks at it. */
void agx_lookout_abandon(struct agx_unit *u);
void agx_lookout_close(struct agx_engine *e);

#endif

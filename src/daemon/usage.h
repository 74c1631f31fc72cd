/* usage.h: asks the backend for a sandbox's resource usage, with a timeout. Loop thread only. */
#ifndef AGX_DAEMON_USAGE_H
#define AGX_DAEMON_USAGE_H

#include "daemon/engine.h"

struct agx_usage;

/* Calls `use` and `done` as agx_backend_use() does; `done` gets -AGX_DEADLINE_EXCEEDED after the
 * configured timeout. Returns -AGX_NOT_FOUND at once when there is no such sandbox. */
int agx_usage_start(struct agx_engine *e, const char *sandbox_id, agx_backend_use_fn use,
                    agx_done_fn done, void *user, struct agx_usage **ret_usage,
                    struct agx_error **err) AGX_MUST_CHECK;

/* No callback follows. Not to be called after `done`. Returns NULL and accepts it. */
struct agx_usage *agx_usage_stop(struct agx_usage *u);

#endif

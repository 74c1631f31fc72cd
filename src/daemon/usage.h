/* usage.h: asks the backend what a sandbox uses, for as long as a caller may wait. Loop thread
 * only. */
#ifndef AGX_DAEMON_USAGE_H
#define AGX_DAEMON_USAGE_H

#include "daemon/engine.h"

struct agx_usage;

/* `use` and `done` as agx_backend_use() has them; -AGX_DEADLINE_EXCEEDED in `done` when it takes
 * longer than the configuration allows. -AGX_NOT_FOUND at once: there is no such sandbox. */
int agx_usage_start(struct agx_engine *e, const char *sandbox_id, agx_backend_use_fn use,
                    agx_done_fn done, void *user, struct agx_usage **ret_usage,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Nothing is told any more. Not after `done`. Returns NULL and accepts it. */
struct agx_usage *agx_usage_stop(struct agx_usage *u);

#endif

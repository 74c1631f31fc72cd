/* usage_query.h: asks the backend for a sandbox's resource usage, with a timeout. Loop thread only.
 */
#ifndef AGX_DAEMON_MANAGER_USAGE_QUERY_H
#define AGX_DAEMON_MANAGER_USAGE_QUERY_H

#include "daemon/manager/manager.h"

struct agx_usage_query;

/* Calls `use` and `done` as agx_backend_usage() does; `done` gets -AGX_DEADLINE_EXCEEDED after the
 * configured timeout. Returns -AGX_NOT_FOUND at once when there is no such sandbox. */
int agx_usage_query_start(struct agx_manager *e, const char *sandbox_id, agx_backend_usage_fn use,
                          agx_done_fn done, void *user, struct agx_usage_query **ret_usage,
                          struct agx_error **err) AGX_MUST_CHECK;

/* No callback follows. Not to be called after `done`. Returns NULL and accepts it. */
struct agx_usage_query *agx_usage_query_stop(struct agx_usage_query *u);

#endif

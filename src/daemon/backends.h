/* backends.h: which backends the daemon has, by the names that its configuration uses. */
#ifndef AGX_DAEMON_BACKENDS_H
#define AGX_DAEMON_BACKENDS_H

#include "backend/backend.h"

/* `choice` is "NAME" or "NAME:TARGET"; NULL or empty: none was made. -AGX_INVALID_ARGUMENT with
 * what there is to choose from. */
int agx_backends_open(struct agx_loop *l, const char *choice, struct agx_backend **ret_backend,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif

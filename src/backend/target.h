/* target.h: a backend by the name that people give it: "fake:/run/world". */
#ifndef AGX_BACKEND_TARGET_H
#define AGX_BACKEND_TARGET_H

#include "backend/backend.h"

/* NAME or NAME:TARGET; what the target means is the backend's. -AGX_INVALID_ARGUMENT for a name
 * that there is none of, with those that there are. */
int agx_backend_open(struct agx_loop *l, const char *name, struct agx_backend **ret_backend,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

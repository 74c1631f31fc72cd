/* spec_internal.h: what the files of a spec share. */
#ifndef AGX_CORE_SPEC_INTERNAL_H
#define AGX_CORE_SPEC_INTERNAL_H

#include "core/spec.h"

/* None, with every duration unset. */
void agx_healthcheck_init(struct agx_healthcheck *h);

/* An absolute path without ".", "..", and needless slashes, by its characters alone. */
int agx_spec_clean_path(const char *path, char **ret, struct agx_error **err) AGX_MUST_CHECK;

#endif

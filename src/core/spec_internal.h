/* spec_internal.h: declarations shared by the files of a spec. */
#ifndef AGX_CORE_SPEC_INTERNAL_H
#define AGX_CORE_SPEC_INTERNAL_H

#include "core/spec.h"

/* No healthcheck, with every duration unset. */
void agx_healthcheck_init(struct agx_healthcheck *h);

/* Removes ".", ".." and redundant slashes from an absolute path, lexically. */
int agx_spec_clean_path(const char *path, char **ret, struct agx_error **err) AGX_MUST_CHECK;

#endif

/* etc.h: the files of /etc that a sandbox gets from us. */
#ifndef AGX_BACKEND_NATIVE_ETC_H
#define AGX_BACKEND_NATIVE_ETC_H

#include "backend/native/nest.h"
#include "base/buf.h"
#include "core/spec.h"

/* Who is on its network, and under which names; all borrowed. */
struct agx_etc {
    const char *sandbox_id;
    const struct agx_spec *spec;
    const struct agx_nest *nest;
    const struct agx_words *hosts; /* further lines: "name:address" */
};

/* As long as a kernel takes one. Returns `out`. */
char *agx_etc_hostname(const struct agx_etc *e, size_t part, char out[AGX_NATIVE_HOSTNAME_MAX + 1]);

/* Appends /etc/hosts of that part. */
int agx_etc_hosts(const struct agx_etc *e, size_t part, struct agx_buf *out) AGX_MUST_CHECK;

#endif

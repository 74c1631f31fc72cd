/* etc.h: the files of /etc that we write for a sandbox. */
#ifndef AGX_BACKEND_NATIVE_ETC_H
#define AGX_BACKEND_NATIVE_ETC_H

#include "backend/native/net/nsset.h"
#include "base/buf.h"
#include "core/spec.h"

/* The hosts on its network and their names; all borrowed. */
struct agx_etc {
    const char *sandbox_id;
    const struct agx_spec *spec;
    const struct agx_nsset *nsset;
    const struct agx_words *hosts; /* further lines: "name:address" */
};

/* Cut to the longest name that the kernel accepts. Returns `out`. */
char *agx_etc_hostname(const struct agx_etc *e, size_t part, char out[AGX_NATIVE_HOSTNAME_MAX + 1]);

/* Appends /etc/hosts of that part. */
int agx_etc_hosts(const struct agx_etc *e, size_t part, struct agx_buf *out) AGX_MUST_CHECK;

#endif

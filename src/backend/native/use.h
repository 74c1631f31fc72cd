/* use.h: network usage of a process, from the kernel's text. */
#ifndef AGX_BACKEND_NATIVE_USE_H
#define AGX_BACKEND_NATIVE_USE_H

#include "base/str.h"
#include "core/use.h"

/* The sum over all links except loopback, from the text of /proc/<pid>/net/dev; unset where there
 * is no other link. */
void agx_native_use_links(struct agx_str text, struct agx_use *use);

#endif

/* resource_usage.h: network usage of a process, from the kernel's text. */
#ifndef AGX_BACKEND_NATIVE_RESOURCE_USAGE_H
#define AGX_BACKEND_NATIVE_RESOURCE_USAGE_H

#include "base/str.h"
#include "core/resource_usage.h"

/* The sum over all links except loopback, from the text of /proc/<pid>/net/dev; unset where there
 * is no other link. */
void agx_native_usage_links(struct agx_str text, struct agx_resource_usage *use);

#endif

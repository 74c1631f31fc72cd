/* use.h: figures out of what the kernel writes of a process's network. */
#ifndef AGX_BACKEND_NATIVE_USE_H
#define AGX_BACKEND_NATIVE_USE_H

#include "base/str.h"
#include "core/use.h"

/* The sum over all links but loopback, of the text of /proc/<pid>/net/dev; nothing where there is
 * no other. */
void agx_native_use_links(struct agx_str text, struct agx_use *use);

#endif

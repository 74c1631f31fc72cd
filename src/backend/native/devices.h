/*
 * devices.h: the /dev of every native sandbox: one small file system with real device nodes, made
 * once. A sandbox gets a copy of the mount, read-only: in its user namespace nobody could make a
 * node, and one mount is cheaper than one for each device.
 */
#ifndef AGX_BACKEND_NATIVE_DEVICES_H
#define AGX_BACKEND_NATIVE_DEVICES_H

#include "base/error.h"

struct agx_devices;

/*
 * Mounts it on `path`, a directory that is made when it is missing; what an earlier daemon left
 * there goes first. Sandboxes that have a copy keep it. `bound`: nodes are the host's, each mounted
 * there, for who may not make any.
 */
int agx_devices_open(const char *path, bool bound, struct agx_devices **ret_devices,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Removes mount and directory. Accepts NULL; returns NULL. */
struct agx_devices *agx_devices_close(struct agx_devices *d);

/* Borrowed; as it was given. */
const char *agx_devices_path(const struct agx_devices *d);

#endif

/*
 * devices.h: the /dev of every native sandbox: one small file system with real device nodes, made
 * once. A sandbox gets a read-only copy of the mount: nodes cannot be made in its user namespace,
 * and one mount is cheaper than one for each device.
 */
#ifndef AGX_BACKEND_NATIVE_DEVICES_H
#define AGX_BACKEND_NATIVE_DEVICES_H

#include "base/error.h"

struct agx_devices;

/*
 * Mounts it on `path`, a directory that is made if needed; one that an earlier daemon left there is
 * unmounted first. Sandboxes that have a copy keep it. `bound`: bind-mounts the host's nodes, for a
 * daemon that may not make any.
 */
int agx_devices_open(const char *path, bool bound, struct agx_devices **ret_devices,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Removes the mount and the directory. Accepts and returns NULL. */
struct agx_devices *agx_devices_close(struct agx_devices *d);

/* Borrowed; as it was given. */
const char *agx_devices_path(const struct agx_devices *d);

#endif

/* disk_internal.h: the two implementations of disk.h. */
#ifndef AGX_BACKEND_NATIVE_LIMITS_DISK_INTERNAL_H
#define AGX_BACKEND_NATIVE_LIMITS_DISK_INTERNAL_H

#include "backend/native/limits/disk.h"

/* Whether project quotas are enforced on the file system of this directory. */
bool agx_disk_quota_works(int dirfd);
int agx_disk_quota_set(int dirfd, uint32_t project, int64_t bytes,
                       struct agx_error **err) AGX_MUST_CHECK;
int agx_disk_quota_used(int dirfd, uint32_t project, uint64_t *ret_bytes,
                        struct agx_error **err) AGX_MUST_CHECK;

/* False: `ret_why` says why not. */
bool agx_disk_image_works(const char **ret_mkfs, char *ret_why, size_t size);
/* Makes `name`.img if needed, and mounts it on `name`. */
int agx_disk_image_mount(const char *mkfs, int dirfd, const char *name, int64_t bytes,
                         struct agx_error **err) AGX_MUST_CHECK;
int agx_disk_image_used(int dirfd, const char *name, uint64_t *ret_bytes,
                        struct agx_error **err) AGX_MUST_CHECK;

/* A loop device for the file, new or the one that it still has: a descriptor of the device, which
 * detaches with its last user. */
int agx_disk_loop(int image_fd, struct agx_error **err) AGX_MUST_CHECK;

#endif

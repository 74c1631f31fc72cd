/*
 * disk.h: limits the disk usage of a sandbox: of one directory and everything in it.
 *
 *     agx_disk_probe(data_fd, &disk);                               once: what this host can do
 *     agx_disk_check(&disk, bytes, err);
 *     agx_disk_prepare(&disk, part_fd, "fs", project, bytes, err);  before each start: "fs"
 *                                                                   exists, limited, and empty the
 *                                                                   first time
 *     ... the sandbox is started on "fs" ...
 *     agx_disk_settle(part_fd, "fs", err);                          the sandbox holds the mount
 *     agx_disk_drop(&disk, part_fd, "fs", project, err);            before the directory is removed
 *
 * There are two ways. Where the file system supports project quotas (ext4 or xfs, mounted with
 * prjquota), the directory is a project: that costs a system call or two. Elsewhere "fs.img" beside
 * it, a sparse file of that size, holds an ext4 file system. It is mounted on the directory from
 * prepare to settle; afterwards only the sandbox's mount namespace has the mount, and the host does
 * not. The file system's own tables count towards the limit then.
 *
 * All of it may block (mkfs.ext4 runs the first time). Any thread may call, but only one at a time
 * for the same directory.
 */
#ifndef AGX_BACKEND_NATIVE_LIMITS_DISK_H
#define AGX_BACKEND_NATIVE_LIMITS_DISK_H

#include "base/error.h"

#include <stdint.h>

struct agx_disk {
    enum {
        AGX_DISK_NONE, /* `why` says what is missing */
        AGX_DISK_QUOTA,
        AGX_DISK_IMAGE,
    } kind;
    char why[160];
    const char *mkfs; /* AGX_DISK_IMAGE: the program */
};

/* `dirfd`: a directory of the file system that sandboxes are on. */
void agx_disk_probe(int dirfd, struct agx_disk *ret);

/* No limits are possible, for that reason. */
void agx_disk_none(struct agx_disk *ret, const char *why);

/* -AGX_FAILED_PRECONDITION: this host cannot; -AGX_INVALID_ARGUMENT: less than AGX_DISK_BYTES_MIN.
 * The message names no field: the caller prefixes "limits.disk". */
int agx_disk_check(const struct agx_disk *d, int64_t bytes, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Makes `name` in `dirfd` if needed. `project` is unique to the sandbox on this file system and the
 * same each time: the first of its ids. An image keeps its original size; a quota is set again. A
 * failure leaves nothing mounted.
 */
int agx_disk_prepare(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                     int64_t bytes, struct agx_error **err) AGX_MUST_CHECK;

/* Does nothing for a directory that was never prepared, or was prepared by an earlier daemon. */
int agx_disk_settle(int dirfd, const char *name, struct agx_error **err) AGX_MUST_CHECK;

/* Afterwards nothing is mounted there and the project has no limit; the caller removes the
 * files. */
int agx_disk_drop(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Disk space used on the host. -AGX_NOT_FOUND: it was never prepared. */
int agx_disk_used(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  uint64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

#endif

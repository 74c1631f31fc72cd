/*
 * disk.h: how much a sandbox may write: a limit on one directory and all that is in it.
 *
 *     agx_disk_probe(data_fd, &disk);                               once: what can be done here
 *     agx_disk_check(&disk, bytes, err);
 *     agx_disk_prepare(&disk, part_fd, "fs", project, bytes, err);  before each start: "fs" is
 *                                                                   there, limited, and empty the
 *                                                                   first time
 *     ... the sandbox is started on what is in "fs" ...
 *     agx_disk_settle(part_fd, "fs", err);                          it holds its files itself
 *     agx_disk_drop(&disk, part_fd, "fs", project, err);            before the directory is removed
 *
 * Two ways. Where the file system keeps project quotas (ext4 or xfs, mounted with prjquota), the
 * directory is a project: it costs a system call or two. Elsewhere "fs.img" beside it, a sparse
 * file of that size, is an ext4 of its own. It is mounted on the directory from prepare to settle;
 * after that only the sandbox's mount namespace has it, and the host shows nothing. The file
 * system's own tables are part of the limit then.
 *
 * All of it may block (mkfs.ext4 is started the first time), and any thread may call; the same
 * directory one at a time.
 */
#ifndef AGX_BACKEND_NATIVE_DISK_H
#define AGX_BACKEND_NATIVE_DISK_H

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

/* None can be had, for that reason. */
void agx_disk_none(struct agx_disk *ret, const char *why);

/* -AGX_FAILED_PRECONDITION: this host cannot; -AGX_INVALID_ARGUMENT: less than AGX_DISK_BYTES_MIN.
 * The message has no name of a field: the caller's "limits.disk" goes in front. */
int agx_disk_check(const struct agx_disk *d, int64_t bytes, struct agx_error **err) AGX_MUST_CHECK;

/*
 * `name` is made in `dirfd` when it is missing. `project` is the sandbox's alone on this file
 * system, and the same each time: the first of its ids. Of an image the size stays what it was at
 * first; a quota is set again. After a failure nothing is mounted.
 */
int agx_disk_prepare(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                     int64_t bytes, struct agx_error **err) AGX_MUST_CHECK;

/* Also for what was never prepared, or by a daemon that is gone: then nothing is to be done. */
int agx_disk_settle(int dirfd, const char *name, struct agx_error **err) AGX_MUST_CHECK;

/* Nothing is mounted there afterwards and the project has no limit; files are the caller's. */
int agx_disk_drop(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  struct agx_error **err) AGX_MUST_CHECK;

/* What is used of the host's disk. -AGX_NOT_FOUND: it was never prepared. */
int agx_disk_used(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  uint64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

#endif

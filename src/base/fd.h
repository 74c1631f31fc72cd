/*
 * fd.h: read(2) and write(2) with handling of interrupted and partial transfers, and with a
 * maximum. For files and blocking descriptors; libuv handles sockets on the loop.
 */
#ifndef AGX_BASE_FD_H
#define AGX_BASE_FD_H

#include "base/buf.h"

/* Writes every byte or fails; on a non-blocking descriptor that is full, -AGX_UNAVAILABLE. */
int agx_fd_write_all(int fd, struct agx_str bytes, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends everything up to end of file. More than the buffer's max is -AGX_RESOURCE_EXHAUSTED; on
 * any failure `out` is unchanged.
 */
int agx_fd_read_all(int fd, struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends the content of a file to `out`, as agx_fd_read_all. `path` is relative to `dirfd` (or
 * AT_FDCWD) and must be chosen by us or the administrator, since symlinks are followed. For other
 * names use agx_path_open first.
 */
int agx_fd_read_file(int dirfd, const char *path, struct agx_buf *out,
                     struct agx_error **err) AGX_MUST_CHECK;

int agx_fd_set_nonblock(int fd, bool on, struct agx_error **err) AGX_MUST_CHECK;

#endif

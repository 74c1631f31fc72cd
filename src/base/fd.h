/*
 * fd.h: what read(2) and write(2) leave to their callers: interrupted and partial transfers, and a
 * maximum. For files and blocking descriptors; sockets on the loop are libuv's.
 */
#ifndef AGX_BASE_FD_H
#define AGX_BASE_FD_H

#include "base/buf.h"

/* Writes every byte or fails; on a non-blocking descriptor that is full, -AGX_UNAVAILABLE. */
int agx_fd_write_all(int fd, struct agx_str bytes, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends all up to the end of file. More than the buffer's max is -AGX_RESOURCE_EXHAUSTED; on any
 * failure `out` has its old content.
 */
int agx_fd_read_all(int fd, struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends the content of a file to `out`, as agx_fd_read_all. `path` is relative to `dirfd` (or
 * AT_FDCWD) and one that we or the administrator chose: symlinks are followed. For names from
 * elsewhere open with agx_path_open first.
 */
int agx_fd_read_file(int dirfd, const char *path, struct agx_buf *out,
                     struct agx_error **err) AGX_MUST_CHECK;

int agx_fd_set_nonblock(int fd, bool on, struct agx_error **err) AGX_MUST_CHECK;

#endif

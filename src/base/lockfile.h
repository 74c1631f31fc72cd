/*
 * lockfile.h: takes the lock of a file that contains its holder's process number.
 *
 * A child that the holder forked inherits the lock until it executes its program. When the holder
 * was killed meanwhile, the lock is released some milliseconds later, which is waited for.
 */
#ifndef AGX_BASE_LOCKFILE_H
#define AGX_BASE_LOCKFILE_H

#include <sys/types.h>

/* 0, or -1 with errno; EWOULDBLOCK: *ret_holder holds it, 0 if the file does not say who. Blocks
 * while a dead holder's lock is not released, at most AGX_LOCKFILE_WAIT_MS. */
int agx_lockfile_take(int fd, pid_t *ret_holder);

#endif

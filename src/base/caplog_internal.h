/* caplog_internal.h: the index as bytes, for writer and reader. */
#ifndef AGX_BASE_CAPLOG_INTERNAL_H
#define AGX_BASE_CAPLOG_INTERNAL_H

#include "base/caplog.h"

/* True when the bytes are an index with consistent numbers. */
bool agx_caplog_index_decode(const uint8_t bytes[AGX_CAPLOG_INDEX_SIZE],
                             struct agx_caplog_index *ret);
void agx_caplog_index_encode(const struct agx_caplog_index *x,
                             uint8_t bytes[AGX_CAPLOG_INDEX_SIZE]);

/* The file position of the byte at `offset` of the stream, and how many bytes follow contiguously.
 * The log must have that byte. */
uint64_t agx_caplog_place(const struct agx_caplog_index *x, uint64_t offset, uint64_t *ret_run);

/* As pread(2) and pwrite(2), repeated until `n` bytes, the end of the file or a fault. Returns the
 * number of bytes. `ret_errno` (may be NULL) is 0 without a fault. */
size_t agx_caplog_pread(int fd, void *out, size_t n, uint64_t at, int *ret_errno);

#endif

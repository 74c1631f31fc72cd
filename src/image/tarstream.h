/*
 * tarstream.h: reads the entries of a tar that may be compressed (gzip, zstd, xz) from bytes that
 * the caller supplies. It counts and hashes the uncompressed tar, and refuses one that expands
 * beyond the limits. Blocking.
 *
 * libarchive reads both the compression and the tar. Only these of its many formats and filters are
 * enabled, because some of the others start programs.
 */
#ifndef AGX_IMAGE_TARSTREAM_H
#define AGX_IMAGE_TARSTREAM_H

#include "image/unpack.h"

struct archive_entry;
struct agx_tarstream;

/* Uses these params: read, user, stop, and the limits of bytes and ratio; borrowed until close. */
int agx_tarstream_open(const struct agx_unpack_params *p, struct agx_tarstream **ret_stream,
                       struct agx_error **err) AGX_MUST_CHECK;

/* 1 and the next entry, borrowed until the next call; 0 at the end, when all has been read. */
int agx_tarstream_next(struct agx_tarstream *t, struct archive_entry **ret_entry,
                       struct agx_error **err) AGX_MUST_CHECK;

/* 1 and a piece of the entry's content for offset `*ret_offset` (gaps between pieces are holes); 0
 * at its end. Borrowed until the next call. */
int agx_tarstream_data(struct agx_tarstream *t, struct agx_str *ret_bytes, uint64_t *ret_offset,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Offset of the entry's header in the uncompressed tar. */
uint64_t agx_tarstream_offset(struct agx_tarstream *t);

/* The tar is compressed. */
bool agx_tarstream_is_packed(struct agx_tarstream *t);

/* After the end: "sha256:..." of the plain tar. */
int agx_tarstream_digest(struct agx_tarstream *t, char ret_digest[AGX_DIGEST_SIZE],
                         struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; returns NULL. */
struct agx_tarstream *agx_tarstream_close(struct agx_tarstream *t);

/* Writes the whole uncompressed tar to a file, whatever its content. */
int agx_tarstream_copy(const struct agx_unpack_params *p, int fd,
                       struct agx_error **err) AGX_MUST_CHECK;

static inline void agx_tarstream_closep(struct agx_tarstream **t)
{
    *t = agx_tarstream_close(*t);
}

#endif

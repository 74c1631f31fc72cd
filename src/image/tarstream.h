/*
 * tarstream.h: the entries of a tar that may be compressed (gzip, zstd, xz), from bytes that
 * somebody hands over. It counts and hashes the plain tar on its way, and refuses one that grows
 * beyond all measure. Blocking.
 *
 * libarchive reads both the compression and the tar: of its many formats and filters only these,
 * for some of the others start programs.
 */
#ifndef AGX_IMAGE_TARSTREAM_H
#define AGX_IMAGE_TARSTREAM_H

#include "image/unpack.h"

struct archive_entry;
struct agx_tarstream;

/* Of the params: read, user, stop, and the limits of bytes and ratio; borrowed until close. */
int agx_tarstream_open(const struct agx_unpack_params *p, struct agx_tarstream **ret_stream,
                       struct agx_error **err) AGX_MUST_CHECK;

/* 1 and the next entry, borrowed until the next call; 0 at the end, when all has been read. */
int agx_tarstream_next(struct agx_tarstream *t, struct archive_entry **ret_entry,
                       struct agx_error **err) AGX_MUST_CHECK;

/* 1 and a piece of the entry's content that belongs at `*ret_offset` (between pieces are holes);
 * 0 at its end. Borrowed until the next call. */
int agx_tarstream_data(struct agx_tarstream *t, struct agx_str *ret_bytes, uint64_t *ret_offset,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Where the entry's header is in the plain tar. */
uint64_t agx_tarstream_offset(struct agx_tarstream *t);

/* The tar is compressed. */
bool agx_tarstream_is_packed(struct agx_tarstream *t);

/* After the end: "sha256:..." of the plain tar. */
int agx_tarstream_digest(struct agx_tarstream *t, char ret_digest[AGX_DIGEST_SIZE],
                         struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; returns NULL. */
struct agx_tarstream *agx_tarstream_close(struct agx_tarstream *t);

/* Writes all of the plain tar to a file, whatever is in it. */
int agx_tarstream_copy(const struct agx_unpack_params *p, int fd,
                       struct agx_error **err) AGX_MUST_CHECK;

static inline void agx_tarstream_closep(struct agx_tarstream **t)
{
    *t = agx_tarstream_close(*t);
}

#endif

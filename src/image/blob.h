/*
 * blob.h: reads a blob, which is a whole file or a member of a tar in it, with its digest.
 * Blocking.
 */
#ifndef AGX_IMAGE_BLOB_H
#define AGX_IMAGE_BLOB_H

#include "base/error.h"
#include "image/digest.h"

#include <sys/types.h>

/* Where a blob is. */
struct agx_blob_place {
    int fd;         /* read by offset: several readers may share it */
    bool is_member; /* a tar member, whose header is at `offset`; else the whole file */
    uint64_t offset;
};

struct agx_blob;

/* -AGX_INVALID_ARGUMENT when there is no such member. `place` is borrowed for the call, its
 * descriptor until close. */
int agx_blob_open(const struct agx_blob_place *place, struct agx_blob **ret_blob,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Reads up to `size` bytes; 0 at the end. `user` is the blob: the signature is that of
 * agx_unpack()'s read. */
ssize_t agx_blob_read(void *user, void *buf, size_t size, struct agx_error **err) AGX_MUST_CHECK;

/* Reads the rest; returns the digest of everything. */
int agx_blob_digest(struct agx_blob *b, char ret_digest[AGX_DIGEST_SIZE],
                    struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; returns NULL. */
struct agx_blob *agx_blob_close(struct agx_blob *b);

static inline void agx_blob_closep(struct agx_blob **b)
{
    *b = agx_blob_close(*b);
}

#endif

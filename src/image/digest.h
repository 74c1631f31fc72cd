/*
 * digest.h: names of contents: "sha256:" and 64 small hexadecimal digits.
 *
 * The sums are libcrypto's, which uses the processor's instructions for them. Its digests live on
 * its heap, so each function that computes one can fail: -AGX_RESOURCE_EXHAUSTED.
 */
#ifndef AGX_IMAGE_DIGEST_H
#define AGX_IMAGE_DIGEST_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>

enum {
    AGX_DIGEST_BYTES = 32, /* as numbers */
    AGX_DIGEST_SIZE = 72,  /* as text, with the NUL */
};

/* The text is a digest, and therefore safe as part of a file name. */
bool agx_digest_is(struct agx_str text);

/* The digest of the bytes, as numbers. */
int agx_digest_raw(struct agx_str bytes, uint8_t ret_digest[AGX_DIGEST_BYTES],
                   struct agx_error **err) AGX_MUST_CHECK;

/* The digest of the bytes. */
int agx_digest_of(struct agx_str bytes, char ret_digest[AGX_DIGEST_SIZE],
                  struct agx_error **err) AGX_MUST_CHECK;

/* The digest of bytes that come piece by piece. */
struct agx_digest_sum;

int agx_digest_sum_new(struct agx_digest_sum **ret_sum, struct agx_error **err) AGX_MUST_CHECK;
int agx_digest_sum_add(struct agx_digest_sum *sum, struct agx_str bytes,
                       struct agx_error **err) AGX_MUST_CHECK;
/* The digest of all that was added. The sum is good for nothing but being freed then. */
int agx_digest_sum_end(struct agx_digest_sum *sum, char ret_digest[AGX_DIGEST_SIZE],
                       struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL; returns NULL. */
struct agx_digest_sum *agx_digest_sum_free(struct agx_digest_sum *sum);

/* As a file name: "sha256-...". Returns `out`. */
char *agx_digest_file(const char *digest, char out[AGX_DIGEST_SIZE]);

#endif

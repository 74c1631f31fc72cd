/*
 * sha256.h: SHA-256 (FIPS 180-4), for names that are digests; see sha1.h for why it is our own.
 */
#ifndef AGX_CODEC_SHA256_H
#define AGX_CODEC_SHA256_H

#include "base/str.h"

enum { AGX_SHA256_SIZE = 32, AGX_SHA256_TEXT_SIZE = 65 };

/* Bytes that come piece by piece. */
struct agx_sha256_stream {
    uint32_t h[8];
    uint64_t total;    /* bytes so far */
    uint8_t block[64]; /* the last total % 64 of them, not mixed in yet */
};

void agx_sha256_start(struct agx_sha256_stream *s);
void agx_sha256_add(struct agx_sha256_stream *s, struct agx_str bytes);
/* The digest of all; the stream is good for nothing but another start. */
void agx_sha256_end(struct agx_sha256_stream *s, uint8_t ret_digest[AGX_SHA256_SIZE]);

void agx_sha256(struct agx_str bytes, uint8_t ret_digest[AGX_SHA256_SIZE]);

/* A digest in small hexadecimal digits, with a NUL. Returns `out`. */
char *agx_sha256_hex(const uint8_t digest[AGX_SHA256_SIZE], char out[AGX_SHA256_TEXT_SIZE]);

/* The digest of the bytes in small hexadecimal digits, with a NUL. Returns `out`. */
char *agx_sha256_text(struct agx_str bytes, char out[AGX_SHA256_TEXT_SIZE]);

#endif

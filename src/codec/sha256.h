/*
 * sha256.h: SHA-256 (FIPS 180-4), for the tokens of agentix-server; sha1.h says why we have our
 * own. Images use libcrypto's (image/digest.h).
 */
#ifndef AGX_CODEC_SHA256_H
#define AGX_CODEC_SHA256_H

#include "base/str.h"

enum { AGX_SHA256_SIZE = 32 };

void agx_sha256(struct agx_str bytes, uint8_t ret_digest[AGX_SHA256_SIZE]);

#endif

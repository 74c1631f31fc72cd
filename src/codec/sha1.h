/*
 * sha1.h: SHA-1 (RFC 3174), for the WebSocket handshake and for nothing that must be secret.
 *
 * Our own sixty lines instead of libcrypto: loading that library costs more than the whole start of
 * a server that hashes 60 bytes once in a connection, and the client extension stays
 * self-contained.
 */
#ifndef AGX_CODEC_SHA1_H
#define AGX_CODEC_SHA1_H

#include "base/str.h"

enum { AGX_SHA1_SIZE = 20 };

void agx_sha1(struct agx_str bytes, uint8_t ret_digest[AGX_SHA1_SIZE]);

#endif

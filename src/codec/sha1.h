/*
 * sha1.h: SHA-1 (RFC 3174), for the WebSocket handshake and for nothing that must be secret.
 *
 * We have these sixty lines instead of libcrypto because loading that library takes 1.3 ms and
 * 3.7 MiB. The server starts in 3 ms, takes 2.4 MiB, and hashes 60 bytes once in a connection. The
 * client extension also stays self-contained.
 */
#ifndef AGX_CODEC_SHA1_H
#define AGX_CODEC_SHA1_H

#include "base/str.h"

enum { AGX_SHA1_SIZE = 20 };

void agx_sha1(struct agx_str bytes, uint8_t ret_digest[AGX_SHA1_SIZE]);

#endif

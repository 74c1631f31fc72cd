/*
 * grpc_frame.h: the messages inside a gRPC stream's DATA: one byte "compressed" (0 or 1), the
 * length as u32 big endian, the message.
 *
 *     agx_grpc_decoder_init(&d, AGX_GRPC_MESSAGE_MAX);
 *     on DATA:        while ((r = agx_grpc_decoder_next(&d, &data, &message, err)) > 0)
 *                         handle(message);
 *     on END_STREAM:  r = agx_grpc_decoder_end(&d, err);
 *
 * We never negotiate compression. agx_grpc_encoding_check() refuses a request whose grpc-encoding
 * header names one, so a compressed message is always a mistake of the peer.
 */
#ifndef AGX_CODEC_GRPC_FRAME_H
#define AGX_CODEC_GRPC_FRAME_H

#include "base/buf.h"

#define AGX_GRPC_PREFIX_SIZE 5

struct agx_grpc_decoder {
    size_t max; /* of one message */
    uint8_t prefix[AGX_GRPC_PREFIX_SIZE];
    unsigned prefix_len; /* 0: between two messages */
    bool no_memory;      /* bytes of a message were lost: reading cannot continue */
    struct agx_buf held; /* start of a message that came in several pieces */
};

/* `max` is the longest accepted message; AGX_GRPC_MESSAGE_MAX unless configured. */
void agx_grpc_decoder_init(struct agx_grpc_decoder *d, size_t max);

/*
 * Takes bytes off the front of *in. 1: *ret_message is the next message, valid until the next call
 * on `d` and no longer than the bytes of `in` (it points into them when they hold it whole).
 * 0: *in is used up.
 * A message above the maximum is -AGX_RESOURCE_EXHAUSTED; its prefix alone shows it. So is a
 * message for which there is no memory. A compressed one and an unknown flag are -AGX_INTERNAL. The
 * stream cannot be read any further: more calls return the same error.
 */
int agx_grpc_decoder_next(struct agx_grpc_decoder *d, struct agx_str *in,
                          struct agx_str *ret_message, struct agx_error **err) AGX_MUST_CHECK;

/* The stream ended: -AGX_INTERNAL when that was in the middle of a message. */
int agx_grpc_decoder_end(const struct agx_grpc_decoder *d, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL. */
void agx_grpc_decoder_done(struct agx_grpc_decoder *d);

/*
 * Appends the prefix of a message of `len` bytes and makes room for the message, which the caller
 * then appends: for a serializer that knows its size. Leaves `out` as it was when it fails.
 */
int agx_grpc_frame_begin(struct agx_buf *out, size_t len) AGX_MUST_CHECK;

/* Appends prefix and message. */
int agx_grpc_frame_encode(struct agx_buf *out, struct agx_str message) AGX_MUST_CHECK;

#endif

/*
 * grpc_meta.h: the text forms that gRPC keeps in HTTP/2 headers and trailers: grpc-status,
 * grpc-message, grpc-timeout, content-type, metadata keys and `-bin` values.
 *
 * Encoders append to `out`. They fail only with -AGX_RESOURCE_EXHAUSTED (its maximum, or memory);
 * `out` is then unchanged.
 */
#ifndef AGX_CODEC_GRPC_META_H
#define AGX_CODEC_GRPC_META_H

#include "base/buf.h"

/* grpc-message: '%' and every byte outside 0x20..0x7e become %XX. */
int agx_grpc_message_encode(struct agx_buf *out, struct agx_str text) AGX_MUST_CHECK;

/* The reverse. Bytes that are not %XX stand for themselves: better than losing an error's text. */
int agx_grpc_message_decode(struct agx_buf *out, struct agx_str value) AGX_MUST_CHECK;

/*
 * grpc-timeout: one to eight digits and a unit (H M S m u n). Times past 584 years are UINT64_MAX.
 * Malformed ones are -AGX_INTERNAL, the code that clients get for a broken request.
 */
int agx_grpc_timeout_parse(struct agx_str value, uint64_t *ret_ns,
                           struct agx_error **err) AGX_MUST_CHECK;

/*
 * Chooses the value of at most eight digits that is nearest to `ns` and not below it, so that the
 * deadline does not come early on the other side. If several units are equally near, it takes the
 * shortest text.
 */
int agx_grpc_timeout_format(struct agx_buf *out, uint64_t ns) AGX_MUST_CHECK;

/* A `-bin` value: base64 without padding. */
int agx_grpc_bin_encode(struct agx_buf *out, struct agx_str bytes) AGX_MUST_CHECK;

/*
 * Takes the next value off a `-bin` header, which may hold several between commas, padded or not.
 * 1: its bytes were appended to `out`; 0: no value is left (*rest is used up, its ptr is NULL);
 * -AGX_INVALID_ARGUMENT: not base64. An empty header is one empty value.
 */
int agx_grpc_bin_next(struct agx_str *rest, struct agx_buf *out,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Metadata keys: 0-9 a-z _ - . and at least one of them. HTTP/2 has no capitals in names. */
bool agx_grpc_key_is_valid(struct agx_str key);

/* The value is bytes, in base64 on the wire. */
bool agx_grpc_key_is_bin(struct agx_str key);

/* gRPC's own: applications may neither set nor see it. */
bool agx_grpc_key_is_reserved(struct agx_str key);

/* grpc-status in decimal; any text but the seventeen codes is AGX_UNKNOWN. */
enum agx_code agx_grpc_status_parse(struct agx_str value);

/* "0" to "16"; static. */
const char *agx_grpc_status_text(enum agx_code code);

/* application/grpc, with or without +proto and parameters; anything else is HTTP status 415. */
bool agx_grpc_content_type_is_ok(struct agx_str value);

/* grpc-encoding of a peer: -AGX_UNIMPLEMENTED unless it is identity (or empty). */
int agx_grpc_encoding_check(struct agx_str value, struct agx_error **err) AGX_MUST_CHECK;

#endif

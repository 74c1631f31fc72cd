/*
 * headers.h: an owned list of header fields in one buffer of bounded size.
 */
#ifndef AGX_GRPC_HEADERS_H
#define AGX_GRPC_HEADERS_H

#include "base/buf.h"

#include <nghttp2/nghttp2.h>

/* Added to a field's size: RFC 9113, 6.5.2. */
#define AGX_GRPC_FIELD_OVERHEAD 32

struct agx_grpc_headers {
    struct agx_buf packed; /* per field: two lengths, name, value; max is the list's */
    size_t count, size;    /* size as SETTINGS_MAX_HEADER_LIST_SIZE counts */
};

/* Nothing is allocated before the first field. */
void agx_grpc_headers_init(struct agx_grpc_headers *h, size_t max);

/* -AGX_RESOURCE_EXHAUSTED past the maximum or without memory; the list is then unchanged. */
int agx_grpc_headers_add(struct agx_grpc_headers *h, struct agx_str name,
                         struct agx_str value) AGX_MUST_CHECK;

/* Iterates over the fields, starting with *at = 0; false at the end. Borrowed until an add. */
bool agx_grpc_headers_next(const struct agx_grpc_headers *h, size_t *at, struct agx_str *ret_name,
                           struct agx_str *ret_value);

/* The first value of a name; ptr NULL: none. */
struct agx_str agx_grpc_headers_peek(const struct agx_grpc_headers *h, struct agx_str name);

/* Writes at most `max` fields to `nv`, borrowed from the list; returns how many. */
size_t agx_grpc_headers_nv(const struct agx_grpc_headers *h, nghttp2_nv *nv, size_t max);

void agx_grpc_headers_done(struct agx_grpc_headers *h);

#endif

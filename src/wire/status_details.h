/*
 * status_details.h: google.rpc.Status with a google.rpc.ErrorInfo, the content of
 * grpc-status-details-bin: a machine-readable reason for a refusal.
 */
#ifndef AGX_WIRE_STATUS_DETAILS_H
#define AGX_WIRE_STATUS_DETAILS_H

#include "base/buf.h"
#include "core/pairs.h"
#include "core/reason.h"

/* The value to encode; everything is borrowed. */
struct agx_status {
    enum agx_code code;     /* the same as grpc-status */
    struct agx_str message; /* the same as grpc-message: clients compare them; UTF-8 without NUL */
    enum agx_reason reason; /* not NONE */
    const char *id;         /* goes into the metadata under the reason's key */
    uint64_t from_sequence; /* SEQUENCE_EXPIRED: in the metadata too */
};

/* Appends it; fails only with -AGX_RESOURCE_EXHAUSTED. */
int agx_status_encode(struct agx_buf *out, const struct agx_status *s) AGX_MUST_CHECK;

/* The decoded first ErrorInfo; empty if there is none. */
struct agx_status_view {
    int32_t code;
    char *message;
    char *reason, *domain; /* NULL: none */
    struct agx_pairs metadata;
};

/* -AGX_INTERNAL for malformed bytes. */
int agx_status_view_decode(struct agx_status_view *v, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_status_view_done(struct agx_status_view *v);

#endif

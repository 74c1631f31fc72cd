/* health_wire.h: the messages of grpc.health.v1. */
#ifndef AGX_WIRE_HEALTH_WIRE_H
#define AGX_WIRE_HEALTH_WIRE_H

#include "base/buf.h"

enum agx_health {
    AGX_HEALTH_UNKNOWN = 0,
    AGX_HEALTH_SERVING = 1,
    AGX_HEALTH_NOT_SERVING = 2,
    AGX_HEALTH_SERVICE_UNKNOWN = 3, /* in answers to Watch only */
};

/* HealthCheckRequest: *ret_service is the name, owned by the caller; empty: the whole server. */
int agx_health_request_decode(struct agx_str bytes, char **ret_service,
                              struct agx_error **err) AGX_MUST_CHECK;

/* Appends a HealthCheckResponse. */
int agx_health_response_encode(struct agx_buf *out, enum agx_health status) AGX_MUST_CHECK;

#endif

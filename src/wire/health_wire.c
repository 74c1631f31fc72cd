/* health_wire.c: the messages of grpc.health.v1. */
#include "wire/health_wire.h"

#include "base/utf8.h"

#include "health.pb-c.h"

#include "base/banned.h"

int agx_health_request_decode(struct agx_str bytes, char **ret_service, struct agx_error **err)
{
    Grpc__Health__V1__HealthCheckRequest *m =
        grpc__health__v1__health_check_request__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    char *service;

    if (!m)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "not a health check request");
    service =
        agx_utf8_valid(agx_str_from(m->service)) ? agx_str_dup(agx_str_from(m->service)) : NULL;
    grpc__health__v1__health_check_request__free_unpacked(m, NULL);
    if (!service)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the service's name is not text");
    *ret_service = service;
    return 0;
}

int agx_health_response_encode(struct agx_buf *out, enum agx_health status)
{
    Grpc__Health__V1__HealthCheckResponse m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    int r;

    m.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    r = agx_buf_reserve(out, grpc__health__v1__health_check_response__get_packed_size(&m));
    if (r == 0)
        out->len += grpc__health__v1__health_check_response__pack(&m, out->data + out->len);
    return r;
}

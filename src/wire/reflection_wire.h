/* reflection_wire.h: the messages of grpc.reflection.v1, the same as in v1alpha. */
#ifndef AGX_WIRE_REFLECTION_WIRE_H
#define AGX_WIRE_REFLECTION_WIRE_H

#include "base/buf.h"

enum agx_reflection_query {
    AGX_REFLECTION_NONE, /* an empty or unknown request */
    AGX_REFLECTION_FILE,
    AGX_REFLECTION_SYMBOL,
    AGX_REFLECTION_EXTENSION,
    AGX_REFLECTION_EXTENSION_NUMBERS,
    AGX_REFLECTION_SERVICES,
};

/* A ServerReflectionRequest. */
struct agx_reflection_request {
    enum agx_reflection_query query;
    struct agx_str name; /* file, symbol or message; lives as long as the request */
    void *message;       /* protobuf-c's; answers repeat it */
};

int agx_reflection_request_decode(struct agx_reflection_request *q, struct agx_str bytes,
                                  struct agx_error **err) AGX_MUST_CHECK;
void agx_reflection_request_done(struct agx_reflection_request *q);

/* Append a ServerReflectionResponse to `q`. */
int agx_reflection_encode_file(struct agx_buf *out, const struct agx_reflection_request *q,
                               struct agx_str file) AGX_MUST_CHECK;
int agx_reflection_encode_services(struct agx_buf *out, const struct agx_reflection_request *q,
                                   const char *const *names, size_t n) AGX_MUST_CHECK;
int agx_reflection_encode_no_extensions(struct agx_buf *out,
                                        const struct agx_reflection_request *q) AGX_MUST_CHECK;
int agx_reflection_encode_error(struct agx_buf *out, const struct agx_reflection_request *q,
                                enum agx_code code, const char *message) AGX_MUST_CHECK;

#endif

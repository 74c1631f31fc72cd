/* reflection_wire.c: the messages of grpc.reflection.v1. */
#include "wire/reflection_wire.h"

#include "base/utf8.h"

#include "reflection.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Grpc__Reflection__V1__ServerReflectionRequest request_pb;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_pb;

int agx_reflection_request_decode(struct agx_reflection_request *q, struct agx_str bytes,
                                  struct agx_error **err)
{
    request_pb *m = grpc__reflection__v1__server_reflection_request__unpack(
        NULL, bytes.len, (const uint8_t *)bytes.ptr);
    const char *name = "";

    if (!m)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "not a reflection request");
    *q = (struct agx_reflection_request){ .message = m };
    switch (m->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        q->query = AGX_REFLECTION_FILE;
        name = m->file_by_filename;
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        q->query = AGX_REFLECTION_SYMBOL;
        name = m->file_containing_symbol;
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        q->query = AGX_REFLECTION_EXTENSION;
        name = m->file_containing_extension->containing_type;
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        q->query = AGX_REFLECTION_EXTENSION_NUMBERS;
        name = m->all_extension_numbers_of_type;
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        q->query = AGX_REFLECTION_SERVICES;
        name = m->list_services;
        break;
    default:
        break;
    }
    q->name = agx_str_from(name);
    if (agx_utf8_valid(q->name) && agx_utf8_valid(agx_str_from(m->host)))
        return 0;
    agx_reflection_request_done(q);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "a name in the reflection request is not text");
}

void agx_reflection_request_done(struct agx_reflection_request *q)
{
    if (q->message)
        grpc__reflection__v1__server_reflection_request__free_unpacked(q->message, NULL);
    q->message = NULL;
}

static int encode(struct agx_buf *out, const struct agx_reflection_request *q, response_pb *m)
{
    int r;

    m->original_request = q->message;
    m->valid_host = m->original_request->host;
    r = agx_buf_reserve(out, grpc__reflection__v1__server_reflection_response__get_packed_size(m));
    if (r == 0)
        out->len += grpc__reflection__v1__server_reflection_response__pack(m, out->data + out->len);
    return r;
}

int agx_reflection_encode_file(struct agx_buf *out, const struct agx_reflection_request *q,
                               struct agx_str file)
{
    response_pb m = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    Grpc__Reflection__V1__FileDescriptorResponse files =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    ProtobufCBinaryData bytes = { file.len, (uint8_t *)file.ptr };

    files.n_file_descriptor_proto = 1;
    files.file_descriptor_proto = &bytes;
    m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    m.file_descriptor_response = &files;
    return encode(out, q, &m);
}

int agx_reflection_encode_services(struct agx_buf *out, const struct agx_reflection_request *q,
                                   const char *const *names, size_t n)
{
    typedef Grpc__Reflection__V1__ServiceResponse service_pb;
    response_pb m = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    Grpc__Reflection__V1__ListServiceResponse list =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    _cleanup_free_ service_pb *services = calloc(n + 1, sizeof(*services));
    _cleanup_free_ service_pb **pointers = calloc(n + 1, sizeof(void *));

    if (!services || !pointers)
        return -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < n; i++) {
        services[i] = (service_pb)GRPC__REFLECTION__V1__SERVICE_RESPONSE__INIT;
        services[i].name = (char *)names[i];
        pointers[i] = &services[i];
    }
    list.n_service = n;
    list.service = pointers;
    m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    m.list_services_response = &list;
    return encode(out, q, &m);
}

int agx_reflection_encode_no_extensions(struct agx_buf *out, const struct agx_reflection_request *q)
{
    response_pb m = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    Grpc__Reflection__V1__ExtensionNumberResponse numbers =
        GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;

    numbers.base_type_name = (char *)q->name.ptr;
    m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    m.all_extension_numbers_response = &numbers;
    return encode(out, q, &m);
}

int agx_reflection_encode_error(struct agx_buf *out, const struct agx_reflection_request *q,
                                enum agx_code code, const char *message)
{
    response_pb m = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;

    error.error_code = (int32_t)code;
    error.error_message = (char *)message;
    m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    m.error_response = &error;
    return encode(out, q, &m);
}

/*
 * fuzz_wire.c: hostile protobuf messages of the two services that every gRPC server has. A decoder
 * refuses or accepts each message; accepted strings are text, and an answer repeats them. The first
 * byte chooses the message.
 */
#include "base/utf8.h"
#include "tests/support/fuzz.h"
#include "wire/descriptor_index.h"
#include "wire/health_wire.h"
#include "wire/reflection_wire.h"

enum { OUT_MAX = 1 << 20 };

static void health(struct agx_str bytes)
{
    struct agx_error *err = NULL;
    char *service = NULL;
    int r = agx_health_request_decode(bytes, &service, &err);

    FUZZ_CHECK((r < 0) == (err != NULL) && (r < 0) == (service == NULL));
    FUZZ_CHECK(r < 0 || agx_utf8_valid(agx_str_from(service)));
    agx_error_free(err);
    free(service);
}

static void reflection(struct agx_str bytes)
{
    struct agx_buf out = AGX_BUF_INIT(OUT_MAX);
    struct agx_error *err = NULL;
    struct agx_reflection_request q, again;
    int r = agx_reflection_request_decode(&q, bytes, &err);

    FUZZ_CHECK((r < 0) == (err != NULL));
    agx_error_free(err);
    if (r < 0)
        return;
    FUZZ_CHECK(agx_utf8_valid(q.name));
    FUZZ_CHECK(agx_reflection_encode_error(&out, &q, AGX_NOT_FOUND, "none") == 0);
    agx_buf_clear(&out);
    FUZZ_CHECK(agx_reflection_encode_file(&out, &q, bytes) == 0);
    agx_buf_clear(&out);
    FUZZ_CHECK(agx_reflection_encode_no_extensions(&out, &q) == 0);
    agx_buf_clear(&out);
    FUZZ_CHECK(agx_reflection_encode_services(&out, &q, (const char *[]){ "a.B" }, 1) == 0);
    /* An answer is no request, but reading it as one must be harmless too. */
    if (agx_reflection_request_decode(&again, agx_buf_peek(&out), NULL) == 0)
        agx_reflection_request_done(&again);
    agx_reflection_request_done(&q);
    agx_buf_done(&out);
}

/* Descriptors are our own, but a broken build must not read past their end. */
static void descriptors(struct agx_str bytes)
{
    struct agx_descriptors d;

    agx_descriptors_init(&d);
    if (agx_descriptors_add(&d, bytes, NULL) == 0) {
        for (size_t i = 0; i < d.service_count; i++) {
            struct agx_str name = agx_str_from(d.services[i]);

            /* A NUL inside a name ends its C string. */
            FUZZ_CHECK(memchr(bytes.ptr, 0, bytes.len) || agx_descriptors_by_symbol(&d, name).ptr);
        }
    }
    (void)agx_descriptors_by_name(&d, bytes);
    agx_descriptors_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str bytes;

    if (size < 1)
        return 0;
    bytes = agx_str_bytes(data + 1, size - 1);
    if (data[0] % 3 == 0)
        health(bytes);
    else if (data[0] % 3 == 1)
        reflection(bytes);
    else
        descriptors(bytes);
    return 0;
}

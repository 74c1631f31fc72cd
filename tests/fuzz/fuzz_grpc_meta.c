/*
 * fuzz_grpc_meta.c: an encoded value decodes to the same value, and a decoded value encodes to
 * something that means the same.
 */
#include "codec/grpc_meta.h"
#include "tests/support/fuzz.h"

#include <string.h>

#define BUF AGX_BUF_INIT(SIZE_MAX / 8)

static void check_message(struct agx_str in)
{
    _cleanup_buf_ struct agx_buf value = BUF, text = BUF;

    FUZZ_CHECK(agx_grpc_message_encode(&value, in) == 0);
    for (size_t i = 0; i < value.len; i++)
        FUZZ_CHECK(value.data[i] >= 0x20 && value.data[i] <= 0x7e);
    FUZZ_CHECK(agx_grpc_message_decode(&text, agx_buf_peek(&value)) == 0);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&text), in));
    agx_buf_clear(&text);
    FUZZ_CHECK(agx_grpc_message_decode(&text, in) == 0);
    FUZZ_CHECK(text.len <= in.len);
}

/* The text form is not below the time, and writing what it says gives the same text. */
static void check_timeout(uint64_t ns)
{
    _cleanup_buf_ struct agx_buf value = BUF, again = BUF;
    uint64_t back = 0;

    FUZZ_CHECK(agx_grpc_timeout_format(&value, ns) == 0);
    FUZZ_CHECK(value.len >= 2 && value.len <= 9);
    FUZZ_CHECK(agx_grpc_timeout_parse(agx_buf_peek(&value), &back, NULL) == 0);
    FUZZ_CHECK(back >= ns);
    FUZZ_CHECK(ns > 99999999 || back == ns);
    FUZZ_CHECK(agx_grpc_timeout_format(&again, back) == 0);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&value), agx_buf_peek(&again)));
}

static void check_timeouts(struct agx_str in)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint64_t ns = 0;

    if (agx_grpc_timeout_parse(in, &ns, &err) == 0)
        check_timeout(ns);
    else
        FUZZ_CHECK(err && err->message[0]);
    memcpy(&ns, in.ptr, AGX_MIN(in.len, sizeof(ns)));
    check_timeout(ns);
}

static void check_bin(struct agx_str in)
{
    _cleanup_buf_ struct agx_buf value = BUF, bytes = BUF;
    struct agx_str rest = in, encoded;
    size_t n = 0;

    FUZZ_CHECK(agx_grpc_bin_encode(&value, in) == 0);
    encoded = agx_buf_peek(&value);
    FUZZ_CHECK(agx_grpc_bin_next(&encoded, &bytes, NULL) == (value.len > 0));
    FUZZ_CHECK(!encoded.ptr);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&bytes), in));
    while (rest.ptr) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        FUZZ_CHECK(agx_grpc_bin_next(&rest, &bytes, &err) == 1 || err);
        FUZZ_CHECK(++n <= in.len + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str in = agx_str_bytes(size > 0 ? (const char *)data : "", size);

    check_message(in);
    check_timeouts(in);
    check_bin(in);
    FUZZ_CHECK(agx_grpc_status_parse(in) <= AGX_UNAUTHENTICATED);
    (void)agx_grpc_content_type_is_ok(in);
    (void)agx_grpc_key_is_valid(in);
    return 0;
}

/*
 * fuzz_mp_json.c: the first byte chooses the direction. Accepted JSON becomes well-formed msgpack,
 * whose JSON is stable; accepted msgpack becomes well-formed JSON.
 */
#include "codec/json_scan.h"
#include "codec/mp_json.h"
#include "tests/support/fuzz.h"

enum { TEXT_MAX = 1 << 20 };

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

static bool to_json(struct agx_str mp, struct agx_buf *out)
{
    struct agx_error *err = NULL;
    struct agx_json_token t;
    struct agx_mp_reader r;
    int status;

    FUZZ_CHECK(agx_mp_reader_init(&r, mp, &limits, NULL) == 0);
    status = agx_mp_to_json(&r, out, &err);
    FUZZ_CHECK((status < 0) == (err != NULL));
    agx_error_free(err);
    if (status < 0) {
        FUZZ_CHECK(out->len == 0 && r.at == r.start);
        return false;
    }
    /* models open no container of msgpack's, but objects of JSON's */
    FUZZ_CHECK(agx_json_scan_whole(agx_buf_peek(out), 2 * AGX_DEPTH_MAX, &t, NULL) == 0);
    return true;
}

static void from_json(struct agx_str json)
{
    struct agx_buf mp = AGX_BUF_INIT(TEXT_MAX), text = AGX_BUF_INIT(TEXT_MAX);
    struct agx_buf mp2 = AGX_BUF_INIT(TEXT_MAX), text2 = AGX_BUF_INIT(TEXT_MAX);

    if (agx_mp_from_json(&mp, json, AGX_DEPTH_MAX, NULL) == 0) {
        FUZZ_CHECK(to_json(agx_buf_peek(&mp), &text));
        FUZZ_CHECK(agx_mp_from_json(&mp2, agx_buf_peek(&text), AGX_DEPTH_MAX, NULL) == 0);
        FUZZ_CHECK(to_json(agx_buf_peek(&mp2), &text2));
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&text), agx_buf_peek(&text2)));
    } else {
        FUZZ_CHECK(mp.len == 0);
    }
    agx_buf_done(&mp);
    agx_buf_done(&mp2);
    agx_buf_done(&text);
    agx_buf_done(&text2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);

    if (size < 1)
        return 0;
    if (data[0] & 1)
        from_json(agx_str_bytes(data + 1, size - 1));
    else
        (void)to_json(agx_str_bytes(data + 1, size - 1), &text);
    agx_buf_done(&text);
    return 0;
}

/*
 * fuzz_json_scan.c: the scanner accepts exactly what jansson accepts, and reads strings as it does.
 *
 * They may differ in these cases: jansson refuses numbers that its types cannot hold and NUL in
 * keys, and treats a NUL after the value as the end of the text; the scanner refuses values that
 * are nested deeper than its limit.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"
#include "tests/support/fuzz.h"

#include <jansson.h>

static void free_json(json_t **j)
{
    json_decref(*j);
}

static void check_string(const struct agx_json_token *t, const json_t *j)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(SIZE_MAX / 8),
                                 quoted = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_json_token again;
    struct agx_str want = { json_string_value(j), json_string_length(j) };

    FUZZ_CHECK(agx_json_text_unquote(&text, agx_json_token_inner(t), NULL) == 0);
    FUZZ_CHECK(agx_str_eq(want, agx_buf_peek(&text)));
    FUZZ_CHECK(t->escaped || agx_str_eq(want, agx_json_token_inner(t)));
    FUZZ_CHECK(agx_json_text_quote(&quoted, want) == 0);
    FUZZ_CHECK(agx_json_scan_whole(agx_buf_peek(&quoted), 0, &again, NULL) == 0);
    agx_buf_clear(&text);
    FUZZ_CHECK(agx_json_text_unquote(&text, agx_json_token_inner(&again), NULL) == 0);
    FUZZ_CHECK(agx_str_eq(want, agx_buf_peek(&text)));
}

/* The elements of an array, as ranges of the text, are as many as jansson's and each is a value. */
static void check_array(const struct agx_json_token *t, const json_t *j)
{
    struct agx_json_token value, again;
    struct agx_json_scan s;
    size_t n = 0;

    agx_json_scan_init(&s, t->raw, AGX_DEPTH_MAX);
    FUZZ_CHECK(agx_json_scan_next(&s, &value, NULL) == 0);
    for (;; n++) {
        FUZZ_CHECK(agx_json_scan_value(&s, &value, NULL) == 0);
        if (value.kind == AGX_JSON_ARRAY_END)
            break;
        FUZZ_CHECK(agx_json_scan_whole(value.raw, AGX_DEPTH_MAX, &again, NULL) == 0);
        FUZZ_CHECK(again.kind == value.kind && agx_str_eq(again.raw, value.raw));
        if (value.kind == AGX_JSON_STRING)
            check_string(&value, json_array_get(j, n));
    }
    FUZZ_CHECK(n == json_array_size(j));
    FUZZ_CHECK(agx_json_scan_next(&s, &value, NULL) == 0 && value.kind == AGX_JSON_END);
}

static void check_value(const struct agx_json_token *t, const json_t *j)
{
    static const json_type types[] = {
        [AGX_JSON_NULL] = JSON_NULL,   [AGX_JSON_TRUE] = JSON_TRUE,
        [AGX_JSON_FALSE] = JSON_FALSE, [AGX_JSON_STRING] = JSON_STRING,
        [AGX_JSON_ARRAY] = JSON_ARRAY, [AGX_JSON_OBJECT] = JSON_OBJECT,
    };

    if (t->kind == AGX_JSON_NUMBER) {
        FUZZ_CHECK(json_is_number(j));
        return;
    }
    FUZZ_CHECK(json_typeof(j) == types[t->kind]);
    if (t->kind == AGX_JSON_STRING)
        check_string(t, j);
    else if (t->kind == AGX_JSON_ARRAY)
        check_array(t, j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_(free_json) json_t *j = NULL;
    struct agx_json_token t;
    json_error_t je;
    int r = agx_json_scan_whole(agx_str_bytes(data, size), AGX_DEPTH_MAX, &t, &err);

    FUZZ_CHECK(r == 0 || (err && err->message[0]));
    j = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
    if (j && r < 0) {
        FUZZ_CHECK(r == -AGX_RESOURCE_EXHAUSTED || memchr(data, 0, size));
    } else if (!j && r == 0) {
        enum json_error_code why = json_error_code(&je);

        FUZZ_CHECK(why == json_error_numeric_overflow || why == json_error_null_byte_in_key);
    } else if (j) {
        check_value(&t, j);
    }
    return 0;
}

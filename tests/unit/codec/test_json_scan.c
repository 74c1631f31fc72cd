#include "codec/json_scan.h"

#include "base/macros.h"
#include "tests/support/test.h"

static void next(struct agx_json_scan *s, enum agx_json_kind kind, const char *raw)
{
    struct agx_json_token t;

    ASSERT_OK(agx_json_scan_next(s, &t, NULL));
    ASSERT_INT(kind, t.kind);
    ASSERT_STR(agx_str_from(raw), t.raw);
}

TEST(scan_gives_every_token_with_its_text)
{
    struct agx_json_scan s;

    agx_json_scan_init(
        &s, AGX_STR(" [ null,true , false,-1.5e+3,\"a\\n\", {\"k\" : [] ,\"l\":{}}]\n"), 8);
    next(&s, AGX_JSON_ARRAY, "[");
    next(&s, AGX_JSON_NULL, "null");
    next(&s, AGX_JSON_TRUE, "true");
    next(&s, AGX_JSON_FALSE, "false");
    next(&s, AGX_JSON_NUMBER, "-1.5e+3");
    next(&s, AGX_JSON_STRING, "\"a\\n\"");
    next(&s, AGX_JSON_OBJECT, "{");
    next(&s, AGX_JSON_KEY, "\"k\"");
    next(&s, AGX_JSON_ARRAY, "[");
    next(&s, AGX_JSON_ARRAY_END, "]");
    next(&s, AGX_JSON_KEY, "\"l\"");
    next(&s, AGX_JSON_OBJECT, "{");
    next(&s, AGX_JSON_OBJECT_END, "}");
    next(&s, AGX_JSON_OBJECT_END, "}");
    next(&s, AGX_JSON_ARRAY_END, "]");
    next(&s, AGX_JSON_END, "");
    next(&s, AGX_JSON_END, "");
}

TEST(scan_value_steps_over_containers_and_gives_their_range)
{
    struct agx_json_scan s;
    struct agx_json_token t;

    agx_json_scan_init(&s, AGX_STR("[\"n\\u0061me\",{\"a\":[1,{}]} ,[ ],2]"), 8);
    ASSERT_OK(agx_json_scan_next(&s, &t, NULL));
    ASSERT_OK(agx_json_scan_value(&s, &t, NULL));
    ASSERT_STR(AGX_STR("n\\u0061me"), agx_json_token_inner(&t));
    ASSERT_TRUE(t.escaped);
    ASSERT_OK(agx_json_scan_value(&s, &t, NULL));
    ASSERT_INT(AGX_JSON_OBJECT, t.kind);
    ASSERT_STR(AGX_STR("{\"a\":[1,{}]}"), t.raw);
    ASSERT_FALSE(t.escaped);
    ASSERT_OK(agx_json_scan_value(&s, &t, NULL));
    ASSERT_STR(AGX_STR("[ ]"), t.raw);
    ASSERT_OK(agx_json_scan_value(&s, &t, NULL));
    ASSERT_STR(AGX_STR("2"), t.raw);
    ASSERT_OK(agx_json_scan_value(&s, &t, NULL));
    ASSERT_INT(AGX_JSON_ARRAY_END, t.kind);
}

TEST(scan_of_any_single_value_is_accepted)
{
    static const char *const good[] = {
        "0",     "-0", "10.25", "1E5",      "1e-07",    "\"\"",        " null ",
        "false", "[]", "{}",    "\"\x7f\"", "{\"\":0}", "\"\\u0000\"", "\"\xc3\xa9\\ud83d\\ude00\""
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++) {
        struct agx_json_token t;

        ASSERT_OK(agx_json_scan_whole(agx_str_from(good[i]), 1, &t, NULL));
        ASSERT_TRUE(t.raw.len > 0);
    }
}

TEST(scan_of_malformed_text_is_invalid_and_says_where)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "+1",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "'a'",
        "\"",
        "\"a\\",
        "\"\\x\"",
        "\"\n\"",
        "\"\\ud800\"",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "[}",
        "{]",
        "{\"a\":1",
        "{,}",
        "[1}",
        "{\"a\":1]",
        "\"\xff\"",
        "\"\xc3\"",
        "\xef\xbb\xbf[]",
        "1,",
        "//",
        "[1]]",
        "NaN",
        "-Infinity",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_json_token t;

        if (agx_json_scan_whole(agx_str_from(bad[i]), 8, &t, &err) != -AGX_INVALID_ARGUMENT)
            FAIL("'%s' was accepted", bad[i]);
        ASSERT_MESSAGE(err, "malformed JSON");
    }
}

TEST(scan_nested_at_the_limit_is_fine_and_one_deeper_is_resource_exhausted)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_json_token t;

    ASSERT_OK(agx_json_scan_whole(AGX_STR("[{\"a\":[]}]"), 3, &t, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_json_scan_whole(AGX_STR("[{\"a\":[[]]}]"), 3, &t, &err));
    ASSERT_MESSAGE(err, "nested deeper than 3 at offset 7");
}

TEST(scan_keeps_apart_arrays_and_objects_at_every_depth_up_to_the_ceiling)
{
    enum { N = AGX_JSON_SCAN_DEPTH_CEILING };
    char text[(size_t)N * 6 + 2];
    struct agx_json_token t;
    size_t n = 0;

    for (int i = 0; i < N; i++) {
        const char *open = i % 3 == 0 ? "{\"\":" : "[";

        for (; *open; open++)
            text[n++] = *open;
    }
    text[n++] = '0';
    for (int i = N - 1; i >= 0; i--)
        text[n++] = i % 3 == 0 ? '}' : ']';
    ASSERT_OK(agx_json_scan_whole(agx_str_bytes(text, n), N, &t, NULL));
    ASSERT_UINT(n, t.raw.len);
    text[n - 1] = ']';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_scan_whole(agx_str_bytes(text, n), N, &t, NULL));
    /* a limit above the ceiling is the ceiling */
    memset(text, '[', sizeof(text));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_json_scan_whole(agx_str_bytes(text, sizeof(text)), 1000000, &t, NULL));
}

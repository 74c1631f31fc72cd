#include "codec/mp_reader.h"
#include "tests/support/mp.h"
#include "tests/support/test.h"

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

static struct agx_mp_reader reader(struct agx_str in, const struct agx_mp_limits *l)
{
    struct agx_mp_reader r;

    ASSERT_OK(agx_mp_reader_init(&r, in, l, NULL));
    return r;
}

/* Reads the only token of `in`, and lets msgpack-c read it too. */
static struct agx_mp_token only(struct agx_str in)
{
    struct agx_mp_reader r = reader(in, &limits), again = r, skipped = r;
    struct agx_mp_token t = { 0 };
    msgpack_unpacked theirs;
    size_t off = 0;

    ASSERT_OK(agx_mp_next(&r, &t, NULL));
    ASSERT_TRUE(agx_mp_at_end(&r));
    ASSERT_OK(agx_mp_skip(&skipped, NULL));
    ASSERT_TRUE(agx_mp_at_end(&skipped));
    msgpack_unpacked_init(&theirs);
    ASSERT_INT(MSGPACK_UNPACK_SUCCESS, msgpack_unpack_next(&theirs, in.ptr, in.len, &off));
    ASSERT_UINT(in.len, off);
    ASSERT_TRUE(agx_test_mp_same(&again, &theirs.data));
    msgpack_unpacked_destroy(&theirs);
    return t;
}

TEST(next_of_nil_and_bools_gives_them)
{
    ASSERT_INT(AGX_MP_NIL, only(AGX_STR("\xc0")).type);
    ASSERT_INT(AGX_MP_BOOL, only(AGX_STR("\xc2")).type);
    ASSERT_FALSE(only(AGX_STR("\xc2")).boolean);
    ASSERT_TRUE(only(AGX_STR("\xc3")).boolean);
}

TEST(next_of_every_unsigned_form_gives_its_value_at_both_ends)
{
    static const struct {
        struct agx_str in;
        uint64_t want;
    } cases[] = {
        { AGX_STR("\x00"), 0 },
        { AGX_STR("\x7f"), 127 },
        { AGX_STR("\xcc\x00"), 0 },
        { AGX_STR("\xcc\xff"), 255 },
        { AGX_STR("\xcd\x00\x00"), 0 },
        { AGX_STR("\xcd\xff\xff"), 65535 },
        { AGX_STR("\xce\x00\x01\x00\x00"), 65536 },
        { AGX_STR("\xce\xff\xff\xff\xff"), UINT32_MAX },
        { AGX_STR("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), UINT64_C(1) << 32 },
        { AGX_STR("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), UINT64_MAX },
        /* signed forms that hold no negative number */
        { AGX_STR("\xd0\x7f"), 127 },
        { AGX_STR("\xd1\x7f\xff"), 32767 },
        { AGX_STR("\xd2\x7f\xff\xff\xff"), INT32_MAX },
        { AGX_STR("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MAX },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_mp_token t = only(cases[i].in);

        ASSERT_INT(AGX_MP_UINT, t.type);
        ASSERT_UINT(cases[i].want, t.u);
    }
}

TEST(next_of_every_signed_form_gives_its_value_at_both_ends)
{
    static const struct {
        struct agx_str in;
        int64_t want;
    } cases[] = {
        { AGX_STR("\xff"), -1 },
        { AGX_STR("\xe0"), -32 },
        { AGX_STR("\xd0\xff"), -1 },
        { AGX_STR("\xd0\x80"), INT8_MIN },
        { AGX_STR("\xd1\xff\xff"), -1 },
        { AGX_STR("\xd1\x80\x00"), INT16_MIN },
        { AGX_STR("\xd2\xff\xff\xff\xff"), -1 },
        { AGX_STR("\xd2\x80\x00\x00\x00"), INT32_MIN },
        { AGX_STR("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"), -1 },
        { AGX_STR("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), INT64_MIN },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_mp_token t = only(cases[i].in);

        ASSERT_INT(AGX_MP_INT, t.type);
        ASSERT_INT(cases[i].want, t.i);
    }
}

TEST(next_of_both_float_forms_gives_a_double)
{
    ASSERT_INT(AGX_MP_FLOAT, only(AGX_STR("\xca\x3f\x80\x00\x00")).type);
    ASSERT_TRUE(only(AGX_STR("\xca\x3f\x80\x00\x00")).f == 1.0);
    ASSERT_TRUE(only(AGX_STR("\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00")).f == -1.5);
}

/* `head`, then `len` bytes of 'x' whose view must come back. */
static void check_bytes(struct agx_str head, size_t len, enum agx_mp_type type)
{
    _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(100000);
    struct agx_mp_token t;

    ASSERT_OK(agx_buf_append(&in, head));
    for (size_t i = 0; i < len; i++)
        ASSERT_OK(agx_buf_push(&in, 'x'));
    t = only(agx_buf_peek(&in));
    ASSERT_INT(type, t.type);
    ASSERT_STR(agx_str_skip(agx_buf_peek(&in), head.len), t.bytes);
}

TEST(next_of_every_str_form_gives_a_view_of_its_bytes)
{
    check_bytes(AGX_STR("\xa0"), 0, AGX_MP_STR);
    check_bytes(AGX_STR("\xbf"), 31, AGX_MP_STR);
    check_bytes(AGX_STR("\xd9\x00"), 0, AGX_MP_STR);
    check_bytes(AGX_STR("\xd9\xff"), 255, AGX_MP_STR);
    check_bytes(AGX_STR("\xda\x01\x00"), 256, AGX_MP_STR);
    check_bytes(AGX_STR("\xda\xff\xff"), 65535, AGX_MP_STR);
    check_bytes(AGX_STR("\xdb\x00\x01\x00\x00"), 65536, AGX_MP_STR);
}

TEST(next_of_every_bin_form_gives_a_view_of_its_bytes)
{
    check_bytes(AGX_STR("\xc4\x00"), 0, AGX_MP_BIN);
    check_bytes(AGX_STR("\xc4\xff"), 255, AGX_MP_BIN);
    check_bytes(AGX_STR("\xc5\x01\x00"), 256, AGX_MP_BIN);
    check_bytes(AGX_STR("\xc6\x00\x01\x00\x00"), 65536, AGX_MP_BIN);
}

TEST(next_of_every_ext_form_gives_type_and_view)
{
    static const struct {
        struct agx_str head;
        size_t len;
    } cases[] = {
        { AGX_STR("\xd4\x80"), 1 },
        { AGX_STR("\xd5\x80"), 2 },
        { AGX_STR("\xd6\x80"), 4 },
        { AGX_STR("\xd7\x80"), 8 },
        { AGX_STR("\xd8\x80"), 16 },
        { AGX_STR("\xc7\x00\x80"), 0 },
        { AGX_STR("\xc7\xff\x80"), 255 },
        { AGX_STR("\xc8\x01\x00\x80"), 256 },
        { AGX_STR("\xc9\x00\x01\x00\x00\x80"), 65536 },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++)
        check_bytes(cases[i].head, cases[i].len, AGX_MP_EXT);
    ASSERT_INT(-128, only(AGX_STR("\xd4\x80x")).ext_type);
    ASSERT_INT(127, only(AGX_STR("\xc7\x01\x7fx")).ext_type);
}

/* `head` announces `count` elements or pairs; all are nil. */
static void check_container(struct agx_str head, size_t count, enum agx_mp_type type)
{
    _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(200000);
    size_t nils = type == AGX_MP_MAP ? 2 * count : count;
    struct agx_mp_reader r, again;
    struct agx_mp_token t = { 0 };
    msgpack_unpacked theirs;
    size_t off = 0;

    ASSERT_OK(agx_buf_append(&in, head));
    for (size_t i = 0; i < nils; i++)
        ASSERT_OK(agx_buf_push(&in, 0xc0));
    r = reader(agx_buf_peek(&in), &limits);
    again = r;
    ASSERT_OK(agx_mp_next(&r, &t, NULL));
    ASSERT_INT(type, t.type);
    ASSERT_UINT(count, t.count);
    ASSERT_UINT(nils, (size_t)(r.end - r.at));
    r = again;
    ASSERT_OK(agx_mp_skip(&r, NULL));
    ASSERT_TRUE(agx_mp_at_end(&r));
    msgpack_unpacked_init(&theirs);
    ASSERT_INT(MSGPACK_UNPACK_SUCCESS,
               msgpack_unpack_next(&theirs, (const char *)in.data, in.len, &off));
    ASSERT_TRUE(agx_test_mp_same(&again, &theirs.data));
    msgpack_unpacked_destroy(&theirs);
}

TEST(next_of_every_container_form_gives_its_count)
{
    check_container(AGX_STR("\x90"), 0, AGX_MP_ARRAY);
    check_container(AGX_STR("\x9f"), 15, AGX_MP_ARRAY);
    check_container(AGX_STR("\xdc\x00\x10"), 16, AGX_MP_ARRAY);
    check_container(AGX_STR("\xdc\xff\xff"), 65535, AGX_MP_ARRAY);
    check_container(AGX_STR("\xdd\x00\x01\x00\x00"), 65536, AGX_MP_ARRAY);
    check_container(AGX_STR("\x80"), 0, AGX_MP_MAP);
    check_container(AGX_STR("\x8f"), 15, AGX_MP_MAP);
    check_container(AGX_STR("\xde\x00\x10"), 16, AGX_MP_MAP);
    check_container(AGX_STR("\xdf\x00\x01\x00\x00"), 65536, AGX_MP_MAP);
}

TEST(take_raw_gives_the_bytes_of_each_value_in_turn)
{
    struct agx_mp_reader r = reader(AGX_STR("\x82\xa1k\x92\x01\x90\xa1v\x81\xa1w\xc4\x02zz"
                                            "\x2a"
                                            "\x80"),
                                    &limits);
    struct agx_str raw = { 0 };

    ASSERT_OK(agx_mp_take_raw(&r, &raw, NULL));
    ASSERT_STR(AGX_STR("\x82\xa1k\x92\x01\x90\xa1v\x81\xa1w\xc4\x02zz"), raw);
    ASSERT_OK(agx_mp_take_raw(&r, &raw, NULL));
    ASSERT_STR(AGX_STR("\x2a"), raw);
    ASSERT_OK(agx_mp_take_raw(&r, &raw, NULL));
    ASSERT_STR(AGX_STR("\x80"), raw);
    ASSERT_TRUE(agx_mp_at_end(&r));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_take_raw(&r, &raw, NULL));
}

/* Stepping over `in` fails with that code and text, and the reader has not moved. */
static void check_bad(struct agx_str in, const struct agx_mp_limits *l, enum agx_code code,
                      const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_reader r = reader(in, l);

    ASSERT_CODE(code, agx_mp_skip(&r, &err));
    ASSERT_MESSAGE(err, words);
    ASSERT_TRUE(r.at == r.start);
}

TEST(skip_of_malformed_input_names_offset_and_reason)
{
    static const struct {
        struct agx_str in;
        const char *words;
    } cases[] = {
        { AGX_STR(""), "msgpack: at offset 0: the input ends where a value should begin" },
        { AGX_STR("\xc1"), "at offset 0: byte 0xc1 does not begin a value" },
        { AGX_STR("\x92\x01"), "array of 2 elements in 1 bytes" },
        { AGX_STR("\x91\xc1"), "at offset 1: byte 0xc1" },
        { AGX_STR("\x92\x91\x01"), "at offset 3: the input ends where a value should begin" },
        { AGX_STR("\xdd\xff\xff\xff\xff\x01\x02\x03"),
          "at offset 0: array of 4294967295 elements in 3 bytes" },
        { AGX_STR("\xdf\x80\x00\x00\x00\x01"), "map of 2147483648 pairs in 1 bytes" },
        { AGX_STR("\x82\x01\x02\x03"), "map of 2 pairs in 3 bytes" },
        { AGX_STR("\xa3xy"), "str of 3 bytes in 2 bytes" },
        { AGX_STR("\xdb\xff\xff\xff\xffx"), "str of 4294967295 bytes in 1 bytes" },
        { AGX_STR("\xc6\xff\xff\xff\xff"), "bin of 4294967295 bytes in 0 bytes" },
        { AGX_STR("\xd8\x01x"), "ext of 16 bytes in 1 bytes" },
        { AGX_STR("\xd4"), "the input ends inside the head of ext" },
        { AGX_STR("\xc7\x01"), "the input ends inside the head of ext" },
        { AGX_STR("\xcf\x01"), "the input ends inside the head of uint" },
        { AGX_STR("\xcb\x01"), "the input ends inside the head of float" },
        { AGX_STR("\xdc\x01"), "the input ends inside the head of array" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++)
        check_bad(cases[i].in, &limits, AGX_INVALID_ARGUMENT, cases[i].words);
}

TEST(next_of_input_cut_off_anywhere_is_invalid)
{
    static const struct agx_str whole = AGX_STR("\xdf\x00\x00\x00\x02\xd9\x01k\xcb\x00\x00\x00\x00"
                                                "\x00\x00\x00\x00\xa1v\xdc\x00\x02\xc7\x02\x05xy"
                                                "\xd1\xff\x00");
    struct agx_mp_reader r = reader(whole, &limits);

    ASSERT_OK(agx_mp_skip(&r, NULL));
    for (size_t n = 0; n < whole.len; n++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        r = reader((struct agx_str){ whole.ptr, n }, &limits);
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_skip(&r, &err));
        ASSERT_MESSAGE(err, "msgpack: at offset ");
    }
}

TEST(limits_hold_at_their_value_and_fail_past_it)
{
    struct agx_mp_limits l = { .size = 9, .length = 3, .count = 2, .depth = 2 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_reader r;

    r = reader(AGX_STR("\xa3xyz"), &l);
    ASSERT_OK(agx_mp_skip(&r, NULL));
    check_bad(AGX_STR("\xa4wxyz"), &l, AGX_RESOURCE_EXHAUSTED, "str of 4 bytes, the limit is 3");
    check_bad(AGX_STR("\xc4\x04wxyz"), &l, AGX_RESOURCE_EXHAUSTED, "bin of 4 bytes");
    check_bad(AGX_STR("\xd6\x01wxyz"), &l, AGX_RESOURCE_EXHAUSTED, "ext of 4 bytes");
    r = reader(AGX_STR("\x92\x01\x02"), &l);
    ASSERT_OK(agx_mp_skip(&r, NULL));
    check_bad(AGX_STR("\x93\x01\x02\x03"), &l, AGX_RESOURCE_EXHAUSTED,
              "array of 3 elements, the limit is 2");
    check_bad(AGX_STR("\x83\x01\x02\x03\x04\x05\x06"), &l, AGX_RESOURCE_EXHAUSTED,
              "map of 3 pairs, the limit is 2");
    r = reader(AGX_STR("\x91\x91\x01"), &l);
    ASSERT_OK(agx_mp_skip(&r, NULL));
    check_bad(AGX_STR("\x91\x91\x90"), &l, AGX_RESOURCE_EXHAUSTED,
              "at offset 2: nested deeper than the limit of 2");
    ASSERT_OK(agx_mp_reader_init(&r, AGX_STR("123456789"), &l, &err));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_reader_init(&r, AGX_STR("1234567890"), &l, &err));
    ASSERT_MESSAGE(err, "msgpack: input of 10 bytes, the limit is 9");
}

TEST(skip_of_a_million_nested_arrays_fails_at_the_depth_limit)
{
    _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(1000000);
    struct agx_mp_limits deep = AGX_MP_LIMITS_INIT;
    struct agx_mp_reader r;

    ASSERT_OK(agx_buf_reserve(&in, in.max));
    memset(in.data, 0x91, in.max);
    in.len = in.max;
    check_bad(agx_buf_peek(&in), &limits, AGX_RESOURCE_EXHAUSTED, "at offset 128: nested deeper");
    deep.depth = UINT32_MAX;
    check_bad(agx_buf_peek(&in), &deep, AGX_RESOURCE_EXHAUSTED, "at offset 512: nested deeper");
    in.data[128] = 0xc0;
    r = reader(agx_buf_peek(&in), &limits);
    ASSERT_OK(agx_mp_skip(&r, NULL));
    ASSERT_UINT(129, (size_t)(r.at - r.start));
}

TEST(enter_counts_towards_the_depth_of_skip)
{
    struct agx_mp_limits l = AGX_MP_LIMITS_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    struct agx_mp_reader r;

    l.depth = 1;
    r = reader(AGX_STR("\x90\x90"), &l);
    ASSERT_OK(agx_mp_skip(&r, NULL));
    ASSERT_OK(agx_mp_enter(&r, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_skip(&r, &err));
    ASSERT_MESSAGE(err, "at offset 1: nested deeper than the limit of 1");
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_enter(&r, &err2));
    agx_mp_leave(&r);
    ASSERT_OK(agx_mp_skip(&r, NULL));
}

TEST(str_that_is_not_utf8_is_refused_only_where_asked)
{
    struct agx_mp_limits strict = AGX_MP_LIMITS_INIT;
    struct agx_str bad = AGX_STR("\x91\xa2\xc3\x28");
    struct agx_mp_reader r = reader(bad, &limits);

    ASSERT_OK(agx_mp_skip(&r, NULL));
    strict.utf8 = true;
    check_bad(bad, &strict, AGX_INVALID_ARGUMENT, "at offset 1: str is not UTF-8");
    r = reader(AGX_STR("\x92\xa2\xc3\xa4\xc4\x01\xff"), &strict);
    ASSERT_OK(agx_mp_skip(&r, NULL));
}

TEST(expect_end_fails_while_bytes_are_left)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_reader r = reader(AGX_STR("\x01\x02"), &limits);

    ASSERT_OK(agx_mp_skip(&r, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_expect_end(&r, &err));
    ASSERT_MESSAGE(err, "at offset 1: 1 bytes after the value");
    ASSERT_OK(agx_mp_skip(&r, NULL));
    ASSERT_OK(agx_mp_expect_end(&r, NULL));
}

TEST(reader_over_no_bytes_at_all_is_at_its_end)
{
    struct agx_mp_reader r = reader((struct agx_str){ 0 }, &limits);

    ASSERT_TRUE(agx_mp_at_end(&r));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_skip(&r, NULL));
}

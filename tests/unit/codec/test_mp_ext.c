#include "codec/mp_ext.h"
#include "tests/support/test.h"

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

/* Parses `payload` and writes it again as the extension value `want`. */
static struct agx_mp_ndarray round_trip(struct agx_str payload, struct agx_str want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_mp_ndarray a = { 0 };
    struct agx_mp_writer w;

    ASSERT_OK(agx_mp_ndarray_parse(payload, &a, NULL));
    agx_mp_writer_init(&w, &out);
    ASSERT_OK(agx_mp_write_ndarray(&w, &a, NULL));
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    ASSERT_STR(want, agx_buf_peek(&out));
    return a;
}

TEST(ndarray_of_two_dimensions_round_trips)
{
    struct agx_mp_ndarray a = round_trip(AGX_STR("<i4|2,3\0"
                                                 "abcdefghijklmnopqrstuvwx"),
                                         AGX_STR("\xc7\x20\x01<i4|2,3\0"
                                                 "abcdefghijklmnopqrstuvwx"));

    ASSERT_STR(AGX_STR("<i4"), a.dtype);
    ASSERT_UINT(2, a.ndim);
    ASSERT_UINT(2, a.shape[0]);
    ASSERT_UINT(3, a.shape[1]);
    ASSERT_UINT(24, a.data.len);
}

TEST(ndarray_without_dimensions_is_one_element)
{
    struct agx_mp_ndarray a = round_trip(AGX_STR("<f8|\0"
                                                 "12345678"),
                                         AGX_STR("\xc7\x0d\x01<f8|\0"
                                                 "12345678"));

    ASSERT_UINT(0, a.ndim);
}

TEST(ndarray_of_one_byte_elements_keeps_the_bar_of_its_dtype)
{
    struct agx_mp_ndarray a = round_trip(AGX_STR("|u1|3\0xyz"), AGX_STR("\xc7\x09\x01|u1|3\0xyz"));

    ASSERT_STR(AGX_STR("|u1"), a.dtype);
    ASSERT_UINT(3, a.shape[0]);
}

TEST(ndarray_with_an_empty_dimension_has_no_bytes)
{
    struct agx_mp_ndarray a =
        round_trip(AGX_STR("<f4|0,1000\0"), AGX_STR("\xc7\x0b\x01<f4|0,1000\0"));

    ASSERT_UINT(2, a.ndim);
    ASSERT_UINT(1000, a.shape[1]);
}

TEST(ndarray_of_every_plain_dtype_is_taken)
{
    static const struct {
        const char *dtype;
        size_t size;
    } cases[] = {
        { "|b1", 1 },   { "|i1", 1 }, { "<i2", 2 },   { ">i4", 4 },    { "<i8", 8 },
        { "|u1", 1 },   { "<u2", 2 }, { "<u4", 4 },   { "<u8", 8 },    { "<f2", 2 },
        { "<f4", 4 },   { ">f8", 8 }, { "<f16", 16 }, { "<c8", 8 },    { "<c16", 16 },
        { "<c32", 32 }, { "|S3", 3 }, { "<U2", 8 },   { "<M8[s]", 8 }, { "<m8[25ns]", 8 },
        { "<M8", 8 },
    };
    static const char zeros[32];

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
        struct agx_mp_ndarray a;

        ASSERT_OK(agx_buf_printf(&b, "%s|1", cases[i].dtype));
        ASSERT_OK(agx_buf_push(&b, 0));
        ASSERT_OK(agx_buf_append(&b, agx_str_bytes(zeros, cases[i].size)));
        ASSERT_OK(agx_mp_ndarray_parse(agx_buf_peek(&b), &a, NULL));
        ASSERT_STR(agx_str_from(cases[i].dtype), a.dtype);
    }
}

TEST(ndarray_of_a_dtype_that_is_no_plain_value_is_refused)
{
    static const struct agx_str bad[] = {
        AGX_STR("|O|1\0"
                "12345678"),
        AGX_STR("|O8|1\0"
                "12345678"),
        AGX_STR("|V4|1\0"
                "1234"),
        AGX_STR("[('a', '<i4')]|1\0"
                "1234"),
        AGX_STR("|1\0x"),
        AGX_STR("<|1\0x"),
        AGX_STR("<i|1\0"
                "1234"),
        AGX_STR("<i3|1\0"
                "123"),
        AGX_STR("<i04|1\0"
                "1234"),
        AGX_STR("|i4|1\0"
                "1234"),
        AGX_STR("=i4|1\0"
                "1234"),
        AGX_STR("i4|1\0"
                "1234"),
        AGX_STR("<i4x|1\0"
                "1234"),
        AGX_STR("|S0|1\0"),
        AGX_STR("<f1|1\0x"),
        AGX_STR("<M4[s]|1\0"
                "1234"),
        AGX_STR("<M8[|1\0"
                "12345678"),
        AGX_STR("<M8[]|1\0"
                "12345678"),
        AGX_STR("<M8[(]|1\0"
                "12345678"),
        AGX_STR("|S99999999999999999999|1\0"),
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_mp_ndarray a;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_ndarray_parse(bad[i], &a, &err));
        ASSERT_MESSAGE(err, "ndarray: unsupported dtype '");
    }
}

static void check_bad(struct agx_str payload, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_ndarray a;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_ndarray_parse(payload, &a, &err));
    ASSERT_MESSAGE(err, words);
}

TEST(ndarray_with_a_bad_header_or_size_is_refused)
{
    check_bad(AGX_STR(""), "ndarray: no NUL ends the header");
    check_bad(AGX_STR("<i4|1"), "ndarray: no NUL ends the header");
    check_bad(AGX_STR("<i4\0"
                      "1234"),
              "ndarray: no '|' in the header '<i4'");
    check_bad(AGX_STR("<i4|x\0"
                      "1234"),
              "ndarray: malformed shape 'x'");
    check_bad(AGX_STR("<i4|1,\0"
                      "1234"),
              "ndarray: malformed shape '1,'");
    check_bad(AGX_STR("<i4|-1\0"
                      "1234"),
              "ndarray: malformed shape '-1'");
    check_bad(AGX_STR("<i4|01\0"
                      "1234"),
              "ndarray: malformed shape '01'");
    check_bad(AGX_STR("<i4|18446744073709551616\0"), "ndarray: malformed shape");
    check_bad(AGX_STR("<i4|2\0"
                      "1234"),
              "ndarray: got 4 bytes, dtype and shape require 8");
    check_bad(AGX_STR("<i4|\0"), "ndarray: got 0 bytes, dtype and shape require 4");
    check_bad(AGX_STR("<i4|4611686018427387904,4\0"), "ndarray: the shape is larger than memory");
    check_bad(AGX_STR("<i4|0,4611686018427387904,4\0"), "ndarray: the shape is larger than memory");
}

TEST(ndarray_of_64_dimensions_is_taken_and_of_65_refused)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(300);
    struct agx_mp_ndarray a;

    ASSERT_OK(agx_buf_append(&b, AGX_STR("|u1|1")));
    for (int i = 1; i < 64; i++)
        ASSERT_OK(agx_buf_append(&b, AGX_STR(",1")));
    ASSERT_OK(agx_buf_append(&b, AGX_STR("\0x")));
    ASSERT_OK(agx_mp_ndarray_parse(agx_buf_peek(&b), &a, NULL));
    ASSERT_UINT(64, a.ndim);
    b.len -= 2;
    ASSERT_OK(agx_buf_append(&b, AGX_STR(",1\0x")));
    check_bad(agx_buf_peek(&b), "ndarray: more than 64 dimensions");
}

TEST(write_ndarray_of_a_bad_array_writes_nothing)
{
    _cleanup_(agx_error_freep) struct agx_error *dtype = NULL, *size = NULL, *dims = NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    struct agx_mp_ndarray a = { .dtype = AGX_STR("|O"), .data = AGX_STR("12345678") };
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &out);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_write_ndarray(&w, &a, &dtype));
    ASSERT_MESSAGE(dtype, "unsupported dtype '|O'");
    a.dtype = AGX_STR("<i4");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_write_ndarray(&w, &a, &size));
    ASSERT_MESSAGE(size, "got 8 bytes, dtype and shape require 4");
    a.ndim = AGX_MP_NDIM_MAX + 1;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_write_ndarray(&w, &a, &dims));
    ASSERT_MESSAGE(dims, "65 dimensions, the limit is 64");
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    ASSERT_UINT(0, out.len);
}

/* Reads the first token of `in`, an extension, and opens it as a model. */
static int open_model(struct agx_str in, const struct agx_mp_limits *l, struct agx_mp_reader *ret,
                      struct agx_error **err)
{
    struct agx_mp_reader r;
    struct agx_mp_token t = { 0 };

    ASSERT_OK(agx_mp_reader_init(&r, in, l, NULL));
    ASSERT_OK(agx_mp_next(&r, &t, NULL));
    ASSERT_INT(AGX_MP_EXT, t.type);
    return agx_mp_open_model(&r, t.bytes, ret, err);
}

TEST(open_model_gives_a_reader_of_its_map)
{
    static const struct agx_str in = AGX_STR("\xd7\x02\x82\xa1x\x01\xa1y\xa1"
                                             "d");
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    struct agx_mp_writer w;
    struct agx_mp_reader r;
    struct agx_str map = { 0 };

    ASSERT_OK(open_model(in, &limits, &r, NULL));
    ASSERT_OK(agx_mp_take_raw(&r, &map, NULL));
    ASSERT_TRUE(agx_mp_at_end(&r));
    ASSERT_STR(AGX_STR("\x82\xa1x\x01\xa1y\xa1"
                       "d"),
               map);
    agx_mp_writer_init(&w, &out);
    agx_mp_write_model(&w, map);
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    ASSERT_STR(in, agx_buf_peek(&out));
}

static void check_bad_model(struct agx_str in, enum agx_code code, const char *words)
{
    struct agx_mp_limits shallow = AGX_MP_LIMITS_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_reader r;

    shallow.depth = 2;
    ASSERT_CODE(code, open_model(in, &shallow, &r, &err));
    ASSERT_MESSAGE(err, words);
}

TEST(open_model_of_anything_but_one_map_says_where_and_why)
{
    check_bad_model(AGX_STR("\xc7\x00\x02"), AGX_INVALID_ARGUMENT,
                    "at offset 3: the input ends where a value should begin");
    check_bad_model(AGX_STR("\xd4\x02\x90"), AGX_INVALID_ARGUMENT,
                    "at offset 2: the model is of type array, not a map");
    check_bad_model(AGX_STR("\xd5\x02\x80\x80"), AGX_INVALID_ARGUMENT,
                    "at offset 3: 1 bytes after the value");
    /* What follows the extension is no part of the model. */
    check_bad_model(AGX_STR("\xd4\x02\x81\x01\x02"), AGX_INVALID_ARGUMENT,
                    "map of 1 pairs in 0 bytes");
    check_bad_model(AGX_STR("\xd6\x02\x81\xa1x\x90"), AGX_RESOURCE_EXHAUSTED,
                    "nested deeper than the limit of 2");
}

TEST(open_model_counts_as_a_level_so_that_models_in_models_end)
{
    struct agx_mp_limits l = AGX_MP_LIMITS_INIT;
    struct agx_mp_reader r, inner = { 0 };

    l.depth = 1;
    ASSERT_OK(agx_mp_reader_init(&r, AGX_STR("\x80"), &l, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_mp_open_model(&r, agx_str_bytes(r.at, 1), &inner, NULL));
    l.depth = 2;
    ASSERT_OK(agx_mp_open_model(&r, agx_str_bytes(r.at, 1), &inner, NULL));
    ASSERT_UINT(1, inner.depth);
}

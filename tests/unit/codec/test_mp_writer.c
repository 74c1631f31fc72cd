#include "codec/mp_writer.h"
#include "tests/support/test.h"

#define WRITTEN(want, call)                                                                        \
    do {                                                                                           \
        _cleanup_buf_ struct agx_buf b_ = AGX_BUF_INIT(100000);                                    \
        struct agx_mp_writer w_, *w = &w_;                                                         \
        agx_mp_writer_init(w, &b_);                                                                \
        call;                                                                                      \
        ASSERT_OK(agx_mp_writer_end(w, NULL));                                                     \
        ASSERT_STR(AGX_STR(want), agx_buf_peek(&b_));                                              \
    } while (0)

TEST(write_of_constants_and_floats_gives_their_only_form)
{
    WRITTEN("\xc0", agx_mp_write_nil(w));
    WRITTEN("\xc2", agx_mp_write_bool(w, false));
    WRITTEN("\xc3", agx_mp_write_bool(w, true));
    WRITTEN("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", agx_mp_write_float(w, 1.0));
    WRITTEN("\xcb\x00\x00\x00\x00\x00\x00\x00\x00", agx_mp_write_float(w, 0.0));
}

TEST(write_of_an_integer_takes_the_smallest_form)
{
    WRITTEN("\x00", agx_mp_write_uint(w, 0));
    WRITTEN("\x7f", agx_mp_write_uint(w, 127));
    WRITTEN("\xcc\x80", agx_mp_write_uint(w, 128));
    WRITTEN("\xcc\xff", agx_mp_write_uint(w, 255));
    WRITTEN("\xcd\x01\x00", agx_mp_write_uint(w, 256));
    WRITTEN("\xce\x00\x01\x00\x00", agx_mp_write_uint(w, 65536));
    WRITTEN("\xcf\x00\x00\x00\x01\x00\x00\x00\x00", agx_mp_write_uint(w, UINT64_C(1) << 32));
    WRITTEN("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", agx_mp_write_uint(w, UINT64_MAX));
    WRITTEN("\x7f", agx_mp_write_int(w, 127));
    WRITTEN("\xcc\x80", agx_mp_write_int(w, 128));
    WRITTEN("\xcd\xff\xff", agx_mp_write_int(w, 65535));
    WRITTEN("\xff", agx_mp_write_int(w, -1));
    WRITTEN("\xe0", agx_mp_write_int(w, -32));
    WRITTEN("\xd0\xdf", agx_mp_write_int(w, -33));
    WRITTEN("\xd0\x80", agx_mp_write_int(w, -128));
    WRITTEN("\xd1\xff\x7f", agx_mp_write_int(w, -129));
    WRITTEN("\xd2\xff\xff\x7f\xff", agx_mp_write_int(w, -32769));
    WRITTEN("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", agx_mp_write_int(w, INT64_C(-2147483649)));
    WRITTEN("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", agx_mp_write_int(w, INT64_MIN));
}

TEST(write_of_text_is_str_and_of_bytes_is_bin)
{
    WRITTEN("\xa0", agx_mp_write_str(w, AGX_STR("")));
    WRITTEN("\xa2hi", agx_mp_write_str(w, AGX_STR("hi")));
    WRITTEN("\xd9\x20"
            "01234567890123456789012345678901",
            agx_mp_write_str(w, AGX_STR("01234567890123456789012345678901")));
    WRITTEN("\xc4\x00", agx_mp_write_bin(w, AGX_STR("")));
    WRITTEN("\xc4\x02\x00\xff", agx_mp_write_bin(w, AGX_STR("\x00\xff")));
}

TEST(write_of_containers_gives_the_smallest_header)
{
    WRITTEN("\x90", agx_mp_write_array(w, 0));
    WRITTEN("\x9f", agx_mp_write_array(w, 15));
    WRITTEN("\xdc\x00\x10", agx_mp_write_array(w, 16));
    WRITTEN("\xdd\x00\x01\x00\x00", agx_mp_write_array(w, 65536));
    WRITTEN("\x80", agx_mp_write_map(w, 0));
    WRITTEN("\x8f", agx_mp_write_map(w, 15));
    WRITTEN("\xde\x00\x10", agx_mp_write_map(w, 16));
    WRITTEN("\xdf\x00\x01\x00\x00", agx_mp_write_map(w, 65536));
}

TEST(write_of_ext_takes_the_fixed_form_where_there_is_one)
{
    WRITTEN("\xc7\x00\x05", agx_mp_write_ext(w, 5, AGX_STR("")));
    WRITTEN("\xd4\x05x", agx_mp_write_ext(w, 5, AGX_STR("x")));
    WRITTEN("\xd5\xffxy", agx_mp_write_ext(w, -1, AGX_STR("xy")));
    WRITTEN("\xc7\x03\x05xyz", agx_mp_write_ext(w, 5, AGX_STR("xyz")));
    WRITTEN("\xd7\x02\x82\xa1x\x01\xa1y\xa1"
            "d",
            agx_mp_write_ext(w, 2,
                             AGX_STR("\x82\xa1x\x01\xa1y\xa1"
                                     "d")));
    WRITTEN("\xc8\x01\x00\x05", agx_mp_write_ext_header(w, 5, 256));
    WRITTEN("\xc9\x00\x01\x00\x00\x05", agx_mp_write_ext_header(w, 5, 65536));
}

TEST(write_of_raw_bytes_splices_them)
{
    WRITTEN("\x81\xa1v\x92\x01\x02", agx_mp_write_map(w, 1); agx_mp_write_str(w, AGX_STR("v"));
            agx_mp_write_raw(w, AGX_STR("\x92\x01\x02")));
}

TEST(writer_past_the_buffers_max_reports_once_and_restores_the_buffer)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(8);
    struct agx_mp_writer w;

    ASSERT_OK(agx_buf_append(&b, AGX_STR("kept")));
    agx_mp_writer_init(&w, &b);
    agx_mp_write_str(&w, AGX_STR("ab"));
    agx_mp_write_str(&w, AGX_STR("cd"));
    agx_mp_write_nil(&w); /* would fit, but comes after a failure */
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_writer_end(&w, &err));
    ASSERT_MESSAGE(err, "msgpack: no room for 2 more bytes after 4 in a buffer of at most 8");
    ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&b));
}

TEST(write_of_a_length_without_msgpack_form_is_out_of_range)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_array(&w, (size_t)UINT32_MAX + 1);
    agx_mp_write_nil(&w);
    ASSERT_CODE(AGX_OUT_OF_RANGE, agx_mp_writer_end(&w, &err));
    ASSERT_MESSAGE(err, "4294967296");
    ASSERT_UINT(0, b.len);
}

#include "codec/frame.h"
#include "codec/mp_ext.h"
#include "codec/mp_fields.h"
#include "codec/mp_writer.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

TEST(mp_writer_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_mp_writer w;
        int r;

        agx_mp_writer_init(&w, &b);
        agx_mp_write_array(&w, 100);
        for (int i = 0; i < 100; i++)
            agx_mp_write_str(&w, AGX_STR("some text"));
        r = agx_mp_writer_end(&w, &err);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_UINT(r < 0 ? 0 : 1003, b.len);
        ASSERT_TRUE((r < 0) == (err != NULL));
    }
}

TEST(mp_read_fields_without_memory_for_its_error_fails_all_the_same)
{
    static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_error_freep) struct agx_error *wrong = NULL, *malformed = NULL;
        struct agx_mp_field f = { AGX_STR("k"), AGX_MP_BIT(AGX_MP_STR) };

        ASSERT_TRUE(agx_mp_read_fields(AGX_STR("\x81\xa1k\xc0"), &limits, &f, 1, &wrong) < 0);
        ASSERT_TRUE(
            agx_mp_read_fields(AGX_STR("\x82\xa1k\xc0\xc1\xc1"), &limits, &f, 1, &malformed) < 0);
        ASSERT_NOT_NULL(wrong);
        ASSERT_NOT_NULL(malformed);
    }
}

TEST(frame_decoder_without_memory_fails_and_stays_failed)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_str part = AGX_STR("\x05\x00\x00\x00xy"), rest = AGX_STR("zzz"), frame;
        int r, again;

        agx_frame_decoder_init(&d, 100);
        r = agx_frame_decoder_next(&d, &part, &frame, &err);
        again = agx_frame_decoder_next(&d, &rest, &frame, NULL);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0 ? r : 1, again);
    }
}

TEST(mp_write_ndarray_without_memory_is_resource_exhausted)
{
    static const char zeros[800];

    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_mp_ndarray a = { .dtype = AGX_STR("<f8"), .ndim = 1, .shape = { 100 } };
        struct agx_mp_writer w;
        int r;

        a.data = agx_str_bytes(zeros, sizeof(zeros));
        agx_mp_writer_init(&w, &b);
        ASSERT_OK(agx_mp_write_ndarray(&w, &a, &err));
        r = agx_mp_writer_end(&w, &err);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
    }
}

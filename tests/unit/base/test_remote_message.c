#include "codec/remote_message.h"
#include "tests/support/test.h"

TEST(event_gives_its_fields_and_leaves_values_raw)
{
    struct agx_remote_message m;

    ASSERT_OK(agx_remote_message_read(AGX_STR("\x83\xa7"
                                              "call_id\xa1"
                                              "x\xa3seq\x05\xa5value\x91\xc0"),
                                      &m, NULL));
    ASSERT_STR(AGX_STR("x"), m.call_id);
    ASSERT_UINT(5, m.seq);
    ASSERT_STR(AGX_STR("\x91\xc0"), m.value);
    ASSERT_UINT(0, m.error.len);
    ASSERT_FALSE(m.has_totals);
}

TEST(event_has_totals_when_both_came)
{
    struct agx_remote_message m;

    ASSERT_OK(agx_remote_message_read(AGX_STR("\x81\xa1n\x05"), &m, NULL));
    ASSERT_FALSE(m.has_totals);
    ASSERT_OK(agx_remote_message_read(AGX_STR("\x82\xa1n\x05\xa5"
                                              "bytes\x07"),
                                      &m, NULL));
    ASSERT_TRUE(m.has_totals);
    ASSERT_UINT(5, m.n);
    ASSERT_UINT(7, m.bytes);
}

TEST(event_that_is_malformed_is_refused)
{
    static const struct agx_str bad[] = { AGX_STR(""), AGX_STR("\x90"), AGX_STR("\x81\xa3seq\xa1x"),
                                          AGX_STR("\x81\xa5"
                                                  "error\x01") };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_remote_message m;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_remote_message_read(bad[i], &m, NULL));
    }
}

TEST(resume_done_gives_both_lists)
{
    struct agx_resume_done d;
    struct agx_str id;
    uint64_t seq;

    ASSERT_OK(agx_resume_done_read(AGX_STR("\x82\xa5known\x92\x92\xa1"
                                           "a\x03\x92\xa1"
                                           "b\x00\xa7unknown\x91\xa1"
                                           "c"),
                                   &d, NULL));
    ASSERT_INT(1, agx_resume_done_known(&d, &id, &seq, NULL));
    ASSERT_STR(AGX_STR("a"), id);
    ASSERT_UINT(3, seq);
    ASSERT_INT(1, agx_resume_done_known(&d, &id, &seq, NULL));
    ASSERT_STR(AGX_STR("b"), id);
    ASSERT_INT(0, agx_resume_done_known(&d, &id, &seq, NULL));
    ASSERT_INT(1, agx_resume_done_unknown(&d, &id, NULL));
    ASSERT_STR(AGX_STR("c"), id);
    ASSERT_INT(0, agx_resume_done_unknown(&d, &id, NULL));
}

TEST(resume_done_that_is_malformed_is_refused)
{
    struct agx_resume_done d;
    struct agx_str id;
    uint64_t seq;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_resume_done_read(AGX_STR("\x81\xa5known\x90"), &d, NULL));
    ASSERT_OK(agx_resume_done_read(AGX_STR("\x82\xa5known\x91\x93\xa1"
                                           "a\x03\x04\xa7unknown\x91\x07"),
                                   &d, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_resume_done_known(&d, &id, &seq, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_resume_done_unknown(&d, &id, NULL));
}

TEST(messages_are_written_as_the_protocol_has_them)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_remote_flow f;
    struct agx_mp_writer w;

    agx_remote_flow_init(&f, AGX_REMOTE_BIDI);
    f.seq = 9;
    f.granted = (struct agx_credit){ 1, 2 };
    agx_mp_writer_init(&w, &out);
    agx_remote_write_cancel(&w, AGX_STR("x"));
    agx_remote_write_credit(&w, AGX_STR("x"), &f);
    agx_remote_write_input(&w, AGX_STR("x"), 4, false);
    agx_mp_write_nil(&w);
    agx_remote_write_input(&w, AGX_STR("x"), 5, true);
    agx_remote_write_list(&w, 2);
    agx_remote_write_acked(&w, AGX_STR("x"), &f);
    agx_remote_write_list(&w, 1);
    agx_remote_write_resumed(&w, AGX_STR("x"), &f);
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
#define ID                                                                                         \
    "\xa7"                                                                                         \
    "call_id\xa1x"
    ASSERT_STR(AGX_STR("\x81" ID "\x83" ID "\xa1n\x01\xa5"
                       "bytes\x02"
                       "\x83" ID "\xa3seq\x04\xa4item\xc0"
                       "\x82" ID "\xa3seq\x05"
                       "\x81\xa5"
                       "calls\x92\xa1x\x09"
                       "\x81\xa5"
                       "calls\x91\x94\xa1x\x09\x01\x02"),
               agx_buf_peek(&out));
#undef ID
}

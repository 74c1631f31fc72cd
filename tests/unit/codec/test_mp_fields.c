#include "base/macros.h"
#include "codec/mp_fields.h"
#include "tests/support/test.h"

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

enum { CALL_ID, ARGS, SEQ, ITEM, FIELDS };
static const struct agx_mp_field table[FIELDS] = {
    [CALL_ID] = { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
    [ARGS] = { AGX_STR("args"), AGX_MP_BIT(AGX_MP_ARRAY) | AGX_MP_BIT(AGX_MP_NIL) },
    [SEQ] = { AGX_STR("seq"), AGX_MP_BIT(AGX_MP_UINT) },
    [ITEM] = { AGX_STR("item"), AGX_MP_ANY },
};

static int read_all(struct agx_str msg, struct agx_mp_field *f, struct agx_error **err)
{
    memcpy(f, table, sizeof(table));
    return agx_mp_read_fields(msg, &limits, f, FIELDS, err);
}

TEST(read_fields_gives_scalars_and_raw_bytes_in_any_order)
{
    struct agx_mp_field f[FIELDS];

    ASSERT_OK(read_all(AGX_STR("\x84\xa3seq\xcd\x01\x00\xa4item\x81\x01\x02"
                               "\xa7"
                               "call_id\xa2id\xa4"
                               "args\x92\x01\x91\xc0"),
                       f, NULL));
    ASSERT_TRUE(f[CALL_ID].present && f[ARGS].present && f[SEQ].present && f[ITEM].present);
    ASSERT_STR(AGX_STR("id"), f[CALL_ID].value.bytes);
    ASSERT_STR(AGX_STR("\xa2id"), f[CALL_ID].raw);
    ASSERT_UINT(256, f[SEQ].value.u);
    ASSERT_INT(AGX_MP_ARRAY, f[ARGS].value.type);
    ASSERT_UINT(2, f[ARGS].value.count);
    ASSERT_STR(AGX_STR("\x92\x01\x91\xc0"), f[ARGS].raw);
    ASSERT_STR(AGX_STR("\x81\x01\x02"), f[ITEM].raw);
}

TEST(read_fields_without_a_field_leaves_it_absent)
{
    struct agx_mp_field f[FIELDS];

    ASSERT_OK(read_all(AGX_STR("\x80"), f, NULL));
    for (int i = 0; i < FIELDS; i++)
        ASSERT_FALSE(f[i].present);
    ASSERT_OK(read_all(AGX_STR("\x81\xa4"
                               "args\xc0"),
                       f, NULL));
    ASSERT_TRUE(f[ARGS].present);
    ASSERT_INT(AGX_MP_NIL, f[ARGS].value.type);
}

TEST(read_fields_takes_bin_keys_and_steps_over_unknown_fields)
{
    struct agx_mp_field f[FIELDS];

    ASSERT_OK(read_all(AGX_STR("\x83\xa5"
                               "other\x91\x93\x01\x02\x03\xc4\x07"
                               "call_id\xa1x"
                               "\xa5"
                               "other\xc0"),
                       f, NULL));
    ASSERT_STR(AGX_STR("x"), f[CALL_ID].value.bytes);
}

static void check_bad(struct agx_str msg, enum agx_code code, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_field f[FIELDS];

    ASSERT_CODE(code, read_all(msg, f, &err));
    ASSERT_MESSAGE(err, words);
    ASSERT_CODE(code, read_all(msg, f, NULL));
}

TEST(read_fields_of_a_bad_message_says_what_is_wrong)
{
    check_bad(AGX_STR(""), AGX_INVALID_ARGUMENT, "ends where a value should begin");
    check_bad(AGX_STR("\x90"), AGX_INVALID_ARGUMENT, "of type array, not a map");
    check_bad(AGX_STR("\x80\x80"), AGX_INVALID_ARGUMENT, "at offset 1: 1 bytes after the value");
    check_bad(AGX_STR("\x81\x01\x02"), AGX_INVALID_ARGUMENT,
              "at offset 1: the key is of type uint, not str or bin");
    check_bad(AGX_STR("\x82\xa3seq\x01\xa3seq\x02"), AGX_INVALID_ARGUMENT,
              "at offset 10: field 'seq' (uint) was sent twice");
    check_bad(AGX_STR("\x81\xa3seq\xff"), AGX_INVALID_ARGUMENT,
              "at offset 5: field 'seq' (int) has the wrong type");
    check_bad(AGX_STR("\x81\xa7"
                      "call_id\xa1\xff"),
              AGX_INVALID_ARGUMENT, "field 'call_id' (str) is not UTF-8");
    check_bad(AGX_STR("\x81\xa4item\x92\x01"), AGX_INVALID_ARGUMENT,
              "at offset 6: array of 2 elements in 1 bytes");
}

TEST(read_fields_past_a_field_that_does_not_fit_reads_the_others)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_field f[FIELDS];

    ASSERT_CODE(AGX_INVALID_ARGUMENT, read_all(AGX_STR("\x83\xa3seq\xc0\xa4"
                                                       "args\x01\xa7"
                                                       "call_id\xa1x"),
                                               f, &err));
    ASSERT_MESSAGE(err, "field 'seq' (nil) has the wrong type");
    ASSERT_FALSE(f[SEQ].present);
    ASSERT_FALSE(f[ARGS].present);
    ASSERT_STR(AGX_STR("x"), f[CALL_ID].value.bytes);
}

TEST(read_fields_of_malformed_bytes_keeps_what_came_before_and_reports_the_bytes)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_field f[FIELDS];

    ASSERT_CODE(AGX_INVALID_ARGUMENT, read_all(AGX_STR("\x83\xa7"
                                                       "call_id\xa1x\xa3seq\xc0\xa4item\xc1"),
                                               f, &err));
    ASSERT_MESSAGE(err, "byte 0xc1");
    ASSERT_STR(AGX_STR("x"), f[CALL_ID].value.bytes);
}

TEST(read_fields_counts_the_message_map_as_one_level)
{
    struct agx_mp_limits l = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f = { AGX_STR("a"), AGX_MP_ANY };

    l.depth = 2;
    ASSERT_OK(agx_mp_read_fields(AGX_STR("\x81\xa1"
                                         "a\x90"),
                                 &l, &f, 1, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_read_fields(AGX_STR("\x81\xa1"
                                                                   "a\x91\x90"),
                                                           &l, &f, 1, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_mp_read_fields(AGX_STR("\x81\xa1"
                                                                   "b\x91\x90"),
                                                           &l, &f, 1, NULL));
}

#include "tests/support/test.h"
#include "wire/arena.h"
#include "wire/field.h"
#include "wire/field_writer.h"

TEST(fields_of_every_type_are_cut_off_one_by_one)
{
    struct agx_str in = AGX_STR("\x08\x96\x01"                         /* 1: 150 */
                                "\x11\x01\x02\x03\x04\x05\x06\x07\x08" /* 2: 64 bits */
                                "\x1a\x02hi"                           /* 3: bytes */
                                "\x25\x01\x02\x03\x04"                 /* 4: 32 bits */
                                "\xf8\xff\xff\xff\x0f\x00");           /* the largest number */
    static const uint32_t numbers[] = { 1, 2, 3, 4, (UINT32_C(1) << 29) - 1 };
    struct agx_field field;

    for (size_t i = 0; i < AGX_ARRAY_LEN(numbers); i++) {
        ASSERT_TRUE(agx_field_next(&in, &field));
        ASSERT_UINT(numbers[i], field.number);
        ASSERT_STR(i == 2 ? AGX_STR("hi") : AGX_STR(""), field.bytes);
    }
    ASSERT_FALSE(agx_field_next(&in, &field));
    ASSERT_UINT(0, in.len);
}

TEST(faults_leave_the_bytes_where_they_are)
{
    static const struct agx_str bad[] = {
        { "\x80", 1 },                                          /* a key without its end */
        { "\x08", 1 },                                          /* no value */
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11 }, /* a value without its end */
        { "\x0a\x03hi", 4 },                                    /* fewer bytes than it says */
        { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 }, /* a length past everything */
        { "\x11\x01\x02", 3 },                                  /* half of 64 bits */
        { "\x15\x01\x02", 3 },                                  /* half of 32 bits */
        { "\x00\x00", 2 },                                      /* field 0 */
        { "\x0b\x0c", 2 },                                      /* a group */
        { "\x0f\x00", 2 },                                      /* a type that there is not */
        { "\x80\x80\x80\x80\x10\x00", 6 },                      /* a number of 30 bits */
    };
    struct agx_field field;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_str in = bad[i];

        ASSERT_FALSE(agx_field_next(&in, &field));
        ASSERT_UINT(bad[i].len, in.len);
    }
}

TEST(writer_leaves_out_what_is_nothing_and_keeps_messages)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_field_writer w;

    agx_field_writer_init(&w, &out);
    agx_field_write_number(&w, 1, 0);
    agx_field_write_text(&w, 2, NULL);
    agx_field_write_text(&w, 2, "");
    agx_field_write_close(&w, agx_field_write_open(&w, 3));
    agx_field_write_time(&w, 4, 0);
    agx_field_write_number(&w, 16, 300);
    agx_field_write_text(&w, 2, "hi");
    agx_field_write_time(&w, 5, -1);
    ASSERT_OK(agx_field_writer_end(&w));
    ASSERT_STR(AGX_STR("\x1a\x00\x22\x00\x80\x01\xac\x02\x12\x02hi"
                       "\x2a\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xff\x93\xeb\xdc"
                       "\x03"),
               agx_buf_peek(&out));
}

/* A message of that many bytes inside another, read back. */
static void nested(size_t n)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1 << 20);
    struct agx_field_writer w;
    struct agx_field field;
    struct agx_str in;
    size_t opened;

    agx_field_writer_init(&w, &out);
    opened = agx_field_write_open(&w, 7);
    for (size_t i = 0; i < n / 2; i++)
        agx_field_write_number(&w, 1, 1 + i % 100);
    agx_field_write_close(&w, opened);
    agx_field_write_number(&w, 8, 1);
    ASSERT_OK(agx_field_writer_end(&w));
    in = agx_buf_peek(&out);
    ASSERT_TRUE(agx_field_next(&in, &field));
    ASSERT_UINT(7, field.number);
    ASSERT_UINT(n, field.bytes.len);
    for (size_t i = 0; i < n / 2; i++)
        ASSERT_INT((int)(1 + i % 100), field.bytes.ptr[2 * i + 1]);
    ASSERT_STR(AGX_STR("\x40\x01"), in);
}

TEST(writer_makes_room_for_lengths_of_any_size)
{
    nested(0);
    nested(126);
    nested(128);
    nested(16382);
    nested(16384);
    nested(100000);
}

TEST(writer_past_the_buffer_leaves_it_as_it_was)
{
    for (size_t max = 1; max < 40; max++) {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(max);
        struct agx_field_writer w;
        size_t opened;

        ASSERT_OK(agx_buf_append(&out, AGX_STR("x")));
        agx_field_writer_init(&w, &out);
        opened = agx_field_write_open(&w, 1);
        agx_field_write_text(&w, 1, "a longer text than there is room for");
        agx_field_write_time(&w, 2, 1);
        agx_field_write_close(&w, opened);
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_field_writer_end(&w));
        ASSERT_STR(AGX_STR("x"), agx_buf_peek(&out));
    }
}

TEST(arena_gives_aligned_memory_up_to_its_budget)
{
    struct agx_arena a;
    size_t given = 0;

    agx_arena_init(&a, 100000);
    for (size_t n = 1;; n = n * 3 % 1000 + 1) {
        uint8_t *p = agx_arena_alloc(&a, n);

        if (!p)
            break;
        ASSERT_UINT(0, (uintptr_t)p % _Alignof(max_align_t));
        memset(p, 0xff, n);
        given += n;
    }
    ASSERT_TRUE(a.exhausted);
    ASSERT_TRUE(given > 50000 && given <= 100000 + AGX_ARENA_FIRST);
    ASSERT_NULL(agx_arena_alloc(&a, SIZE_MAX));
    agx_arena_done(&a);
}

#include "base/limits.h"
#include "codec/frame.h"
#include "pyext/call_table.h"
#include "pyext/inbuf.h"
#include "pyext/outq.h"
#include "tests/support/test.h"

/* ---- call_table ---- */

/* A worker keeps its buffers until it ends. */
static void release(struct agx_inbuf *in)
{
    agx_buf_done(&in->buf);
}

TEST(call_table_finds_what_was_added_and_forgets_what_was_removed)
{
    struct agx_call_table m = AGX_CALL_TABLE_INIT;
    static int values[1000];
    size_t at = 0, n = 0;

    ASSERT_NULL(agx_call_table_get(&m, 1));
    ASSERT_NULL(agx_call_table_remove(&m, 1));
    for (uint64_t id = 1; id <= 1000; id++)
        ASSERT_OK(agx_call_table_add(&m, id, &values[id - 1]));
    for (uint64_t id = 2; id <= 1000; id += 2)
        ASSERT_TRUE(agx_call_table_remove(&m, id) == &values[id - 1]);
    for (uint64_t id = 1; id <= 1000; id++)
        ASSERT_TRUE(agx_call_table_get(&m, id) == (id % 2 ? &values[id - 1] : NULL));
    while (agx_call_table_next(&m, &at))
        n++;
    ASSERT_INT(500, n);
    agx_call_table_done(&m);
}

TEST(call_table_with_ids_that_share_a_slot_keeps_them_apart)
{
    static const uint64_t ids[] = { 1, 65, 129, 2, 66, 193, 64, 128 };
    static int values[AGX_ARRAY_LEN(ids)];

    for (size_t gone = 0; gone < AGX_ARRAY_LEN(ids); gone++) {
        struct agx_call_table m = AGX_CALL_TABLE_INIT;

        for (size_t i = 0; i < AGX_ARRAY_LEN(ids); i++)
            ASSERT_OK(agx_call_table_add(&m, ids[i], &values[i]));
        ASSERT_TRUE(agx_call_table_remove(&m, ids[gone]) == &values[gone]);
        for (size_t i = 0; i < AGX_ARRAY_LEN(ids); i++)
            ASSERT_TRUE(agx_call_table_get(&m, ids[i]) == (i == gone ? NULL : &values[i]));
        agx_call_table_done(&m);
    }
}

TEST(call_table_stays_small_while_calls_come_and_go)
{
    struct agx_call_table m = AGX_CALL_TABLE_INIT;
    int value;

    for (uint64_t id = 1; id <= 100000; id++) {
        ASSERT_OK(agx_call_table_add(&m, id, &value));
        if (id > 10)
            ASSERT_NOT_NULL(agx_call_table_remove(&m, id - 10));
    }
    ASSERT_INT(10, m.len);
    ASSERT_INT(64, m.cap);
    agx_call_table_done(&m);
}

/* ---- inbuf ---- */

static void add(struct agx_inbuf *in, struct agx_str bytes)
{
    uint8_t *at;
    size_t room;

    ASSERT_OK(agx_inbuf_room(in, &at, &room, NULL));
    ASSERT_TRUE(room >= bytes.len);
    memcpy(at, bytes.ptr, bytes.len);
    agx_inbuf_read(in, bytes.len);
}

TEST(inbuf_gives_the_same_frames_however_the_input_is_cut)
{
    static const struct agx_str whole = AGX_STR("\x02\0\0\0\x90\x91\0\0\0\0\x01\0\0\0\x80");

    for (size_t step = 1; step <= whole.len; step++) {
        _cleanup_(release) struct agx_inbuf in;
        struct agx_str frame;
        unsigned n = 0;

        agx_inbuf_init(&in);
        for (size_t at = 0; at < whole.len; at += step) {
            add(&in, agx_str_bytes(whole.ptr + at, AGX_MIN(step, whole.len - at)));
            while (agx_inbuf_peek(&in, &frame, NULL) > 0) {
                ASSERT_STR(n == 0 ? AGX_STR("\x90\x91") : AGX_STR("\x80"), frame);
                agx_inbuf_used(&in);
                n++;
            }
        }
        ASSERT_INT(3, n);
    }
}

TEST(inbuf_makes_room_for_the_whole_of_a_large_frame)
{
    _cleanup_(release) struct agx_inbuf in;
    uint8_t *at;
    size_t room;

    agx_inbuf_init(&in);
    add(&in, AGX_STR("\x00\x00\x10\x00"));
    ASSERT_OK(agx_inbuf_room(&in, &at, &room, NULL));
    ASSERT_INT(0x100000, room);
}

TEST(inbuf_past_the_largest_frame_is_resource_exhausted)
{
    _cleanup_(release) struct agx_inbuf in;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str frame;

    agx_inbuf_init(&in);
    add(&in, AGX_STR("\x01\x01\x00\x10"));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_inbuf_peek(&in, &frame, &err));
    ASSERT_MESSAGE(err, "frame of 268435713 bytes, the limit is 268435712");
}

/* ---- outq ---- */

/* A frame of `size` bytes of that letter, its prefix included. */
static void push(struct agx_buf *to, char letter, size_t size)
{
    uint8_t prefix[4] = { (uint8_t)(size - 4), (uint8_t)((size - 4) >> 8) };

    ASSERT_OK(agx_buf_append(to, agx_str_bytes(prefix, 4)));
    for (size_t i = 4; i < size; i++)
        ASSERT_OK(agx_buf_push(to, (uint8_t)letter));
}

/* Writes up to `n` bytes and returns the last letter, or 0. */
static char write_some(struct agx_outq *q, size_t n)
{
    struct agx_str next = agx_outq_next(q);
    size_t done = AGX_MIN(n, next.len);
    char last = done > 0 ? next.ptr[done - 1] : 0;

    if (done > 0)
        agx_outq_written(q, done);
    return last;
}

TEST(outq_puts_urgent_frames_in_front_but_never_inside_a_chunk)
{
    _cleanup_(agx_outq_done) struct agx_outq q;

    agx_outq_init(&q);
    for (unsigned i = 0; i < 100; i++)
        push(&q.bulk, 'b', 1000);
    ASSERT_INT('b', write_some(&q, 500));
    push(&q.urgent, 'u', 100);
    ASSERT_INT('b', write_some(&q, 1 << 20)); /* the chunk that was begun */
    ASSERT_INT('u', write_some(&q, 50));
    ASSERT_INT('u', write_some(&q, 50));
    ASSERT_INT('b', write_some(&q, 1 << 20));
    ASSERT_TRUE(agx_outq_waiting(&q) < 100000 - 2 * AGX_OUT_CHUNK);
}

TEST(outq_cuts_bulk_at_frames_and_loses_nothing)
{
    _cleanup_(agx_outq_done) struct agx_outq q;
    size_t total = 0;

    agx_outq_init(&q);
    push(&q.bulk, 'a', 40000);
    push(&q.bulk, 'b', 10);
    ASSERT_INT(40000, agx_outq_next(&q).len);
    while (agx_outq_waiting(&q) > 0) {
        struct agx_str next = agx_outq_next(&q);
        size_t n = AGX_MIN((size_t)777, next.len);

        agx_outq_written(&q, n);
        total += n;
        if (total == 777 * 3)
            push(&q.bulk, 'c', 500);
    }
    ASSERT_INT(40510, total);
    ASSERT_INT(0, agx_outq_next(&q).len);
}

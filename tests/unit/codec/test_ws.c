#include "codec/ws.h"
#include "tests/support/test.h"

#include <stdio.h>

enum { MAX = 1 << 20 };

static const uint8_t key[AGX_WS_KEY_SIZE] = { 0x37, 0xfa, 0x21, 0x3d };

/* What came out of a reader, as one line of text. */
struct got {
    struct agx_ws ws;
    struct agx_buf log;
    struct agx_error *err;
    int r;
};

static void got_init(struct got *g, enum agx_ws_role role, size_t max)
{
    *g = (struct got){ .log = AGX_BUF_INIT(4 * MAX) };
    agx_ws_init(&g->ws, role, max);
}

static void got_done(struct got *g)
{
    agx_ws_done(&g->ws);
    agx_buf_done(&g->log);
    g->err = agx_error_free(g->err);
}

#define _cleanup_got_ _cleanup_(got_done)

static const char *kind_name(enum agx_ws_kind kind)
{
    switch (kind) {
    case AGX_WS_TEXT:
        return "text";
    case AGX_WS_BINARY:
        return "binary";
    case AGX_WS_PING:
        return "ping";
    case AGX_WS_PONG:
        return "pong";
    case AGX_WS_CLOSE:
        return "close";
    }
    return "?";
}

static void got_feed(struct got *g, struct agx_str bytes)
{
    _cleanup_buf_ struct agx_buf copy = AGX_BUF_INIT(4 * MAX);
    struct agx_ws_event e;
    uint8_t *p;
    size_t n = bytes.len;

    ASSERT_OK(agx_buf_append(&copy, bytes));
    p = copy.data;
    while ((g->r = agx_ws_read(&g->ws, &p, &n, &e, &g->err)) > 0) {
        ASSERT_OK(agx_buf_printf(&g->log, "%s", kind_name(e.kind)));
        if (e.kind == AGX_WS_CLOSE)
            ASSERT_OK(agx_buf_printf(&g->log, "(%u)", e.code));
        ASSERT_OK(agx_buf_printf(&g->log, "[%.*s]", AGX_STR_ARG(e.data)));
    }
    if (g->r == 0)
        ASSERT_UINT(0, n);
}

/* A server reads these bytes and gives those events. */
static void check(struct agx_str bytes, const char *events)
{
    for (size_t step = 1; step <= bytes.len; step++) {
        _cleanup_got_ struct got g;

        got_init(&g, AGX_WS_SERVER, MAX);
        for (size_t i = 0; i < bytes.len; i += step) {
            got_feed(&g, agx_str_bytes(bytes.ptr + i, AGX_MIN(step, bytes.len - i)));
            ASSERT_INT(0, g.r);
        }
        ASSERT_STR(agx_str_from(events), agx_buf_peek(&g.log));
    }
}

/* A reader refuses them with that close code and message. */
static void check_refused(enum agx_ws_role role, struct agx_str bytes, unsigned fault,
                          const char *words)
{
    for (size_t step = 1; step <= bytes.len; step++) {
        _cleanup_got_ struct got g;

        got_init(&g, role, 1000);
        for (size_t i = 0; i < bytes.len && g.r == 0; i += step)
            got_feed(&g, agx_str_bytes(bytes.ptr + i, AGX_MIN(step, bytes.len - i)));
        ASSERT_TRUE(g.r < 0);
        ASSERT_UINT(fault, g.ws.fault);
        ASSERT_MESSAGE(g.err, words);
        g.err = agx_error_free(g.err);
        got_feed(&g, AGX_STR("\x81\x80\0\0\0\0"));
        ASSERT_TRUE(g.r < 0);
        ASSERT_UINT(fault, g.ws.fault);
    }
}

TEST(ws_read_of_the_rfc_example_gives_its_text)
{
    check(AGX_STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text[Hello]");
}

TEST(ws_read_of_fragments_with_a_ping_between_gives_ping_then_the_message)
{
    check(AGX_STR("\x01\x83\0\0\0\0Hel"
                  "\x89\x82\0\0\0\0hi"
                  "\x00\x80\0\0\0\0"
                  "\x80\x82\0\0\0\0lo"
                  "\x82\x81\0\0\0\0b"),
          "ping[hi]text[Hello]binary[b]");
}

TEST(ws_read_of_empty_frames_gives_empty_events)
{
    check(AGX_STR("\x81\x80\0\0\0\0\x82\x80\0\0\0\0\x8a\x80\0\0\0\0\x88\x80\0\0\0\0"),
          "text[]binary[]pong[]close(1005)[]");
}

TEST(ws_read_after_a_close_drops_what_follows)
{
    check(AGX_STR("\x88\x85\0\0\0\0\x03\xe8"
                  "bye"
                  "\x81\x81\0\0\0\0x"),
          "close(1000)[bye]");
}

TEST(ws_read_of_a_character_cut_by_fragments_is_valid_text)
{
    check(AGX_STR("\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0\xa9"), "text[\xc3\xa9]");
}

TEST(ws_server_refuses_what_the_rfc_forbids)
{
    static const struct {
        struct agx_str bytes;
        unsigned fault;
        const char *words;
    } bad[] = {
        { { "\x81\x01x", 3 }, 1002, "not masked" },
        { { "\xc1\x80\0\0\0\0", 6 }, 1002, "reserved bits" },
        { { "\x83\x80\0\0\0\0", 6 }, 1002, "opcode" },
        { { "\x8b\x80\0\0\0\0", 6 }, 1002, "opcode" },
        { { "\x80\x80\0\0\0\0", 6 }, 1002, "continuation" },
        { { "\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 12 }, 1002, "inside a fragmented" },
        { { "\x09\x80\0\0\0\0", 6 }, 1002, "fragmented" },
        { { "\x89\xfe\x00\x7e\0\0\0\0", 8 }, 1002, "125" },
        { { "\x82\xfe\x00\x05\0\0\0\0", 8 }, 1002, "shortest" },
        { { "\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", 14 }, 1002, "shortest" },
        { { "\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14 }, 1002, "top bit" },
        { { "\x82\xfe\x03\xe9\0\0\0\0", 8 }, 1009, "1000 bytes" },
        { { "\x02\x81\0\0\0\0x\x80\xfe\x03\xe8\0\0\0\0", 15 }, 1009, "1000 bytes" },
        { { "\x81\x81\0\0\0\0\xff", 7 }, 1007, "UTF-8" },
        { { "\x88\x81\0\0\0\0\x03", 7 }, 1002, "half a code" },
        { { "\x88\x82\0\0\0\0\x03\xed", 8 }, 1002, "close code" },
        { { "\x88\x82\0\0\0\0\x0b\xb7", 8 }, 1002, "close code" },
        { { "\x88\x83\0\0\0\0\x03\xe8\xff", 9 }, 1007, "UTF-8" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        check_refused(AGX_WS_SERVER, bad[i].bytes, bad[i].fault, bad[i].words);
}

TEST(ws_client_refuses_a_masked_frame)
{
    check_refused(AGX_WS_CLIENT, AGX_STR("\x81\x80\0\0\0\0"), 1002, "masked");
}

TEST(ws_message_of_exactly_the_limit_passes_and_one_more_byte_does_not)
{
    static const char text[17] = "0123456789abcdef";
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    _cleanup_got_ struct got g;

    got_init(&g, AGX_WS_SERVER, 16);
    ASSERT_OK(agx_ws_append(&out, AGX_WS_BINARY, agx_str_bytes(text, 16), key));
    got_feed(&g, agx_buf_peek(&out));
    ASSERT_STR(AGX_STR("binary[0123456789abcdef]"), agx_buf_peek(&g.log));
    agx_buf_clear(&out);
    ASSERT_OK(agx_ws_append(&out, AGX_WS_BINARY, agx_str_bytes(text, 17), key));
    got_feed(&g, agx_buf_peek(&out));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, g.r);
    ASSERT_UINT(AGX_WS_TOO_BIG, g.ws.fault);
}

static void fill_pattern(struct agx_buf *b, size_t n)
{
    ASSERT_OK(agx_buf_reserve(b, n));
    for (size_t i = 0; i < n; i++)
        b->data[i] = (uint8_t)(i * 7 + i / 251);
    b->len = n;
}

/* Every length form, both roles; the first `direct` bytes of payload by agx_ws_read, the rest into
 * agx_ws_want's room. */
static void check_round_trip(enum agx_ws_role reader, size_t n, size_t direct)
{
    _cleanup_buf_ struct agx_buf data = AGX_BUF_INIT(MAX), out = AGX_BUF_INIT(2 * MAX);
    const uint8_t *k = reader == AGX_WS_SERVER ? key : NULL;
    struct agx_ws_event e;
    struct agx_ws ws;
    uint8_t *p, *room;
    size_t head, len, at, size;
    int r;

    fill_pattern(&data, n);
    ASSERT_OK(agx_ws_append(&out, AGX_WS_BINARY, agx_buf_peek(&data), k));
    head = out.len - n;
    agx_ws_init(&ws, reader, MAX);
    p = out.data;
    len = AGX_MIN(head + direct, out.len);
    at = len;
    while ((r = agx_ws_read(&ws, &p, &len, &e, NULL)) == 0) {
        ASSERT_UINT(0, len);
        agx_ws_want(&ws, &room, &size);
        ASSERT_TRUE(size > 0 && size <= out.len - at);
        ASSERT_TRUE(ws.body.cap <= 2 * ws.body.len + (size_t)(192 << 10));
        memcpy(room, out.data + at, size);
        agx_ws_filled(&ws, size);
        at += size;
    }
    ASSERT_INT(1, r);
    ASSERT_STR(agx_buf_peek(&data), e.data);
    p = out.data;
    len = 0;
    ASSERT_INT(0, agx_ws_read(&ws, &p, &len, &e, NULL));
    ASSERT_UINT(0, ws.body.len);
    ASSERT_TRUE(ws.body.cap <= 2 << 20); /* kept for the next one, up to this */
    agx_ws_done(&ws);
}

TEST(ws_messages_of_every_length_form_round_trip)
{
    static const size_t sizes[] = { 1, 125, 126, 127, 65535, 65536, 300001, MAX };

    for (size_t i = 0; i < AGX_ARRAY_LEN(sizes); i++) {
        check_round_trip(AGX_WS_SERVER, sizes[i], SIZE_MAX / 2);
        check_round_trip(AGX_WS_CLIENT, sizes[i], SIZE_MAX / 2);
        for (size_t direct = 0; direct < 9; direct++) {
            check_round_trip(AGX_WS_SERVER, sizes[i], direct);
            check_round_trip(AGX_WS_CLIENT, sizes[i], direct);
        }
    }
}

TEST(ws_room_of_a_large_message_is_given_back_after_a_run_of_small_ones)
{
    _cleanup_buf_ struct agx_buf data = AGX_BUF_INIT(MAX), out = AGX_BUF_INIT(2 * MAX);
    struct agx_ws_event e;
    struct agx_ws ws;

    fill_pattern(&data, 300000);
    ASSERT_OK(agx_ws_append(&out, AGX_WS_BINARY, agx_buf_peek(&data), key));
    agx_ws_init(&ws, AGX_WS_SERVER, MAX);
    for (size_t at = 0; at < out.len;) { /* in two pieces, so that it has to be held */
        uint8_t *p = out.data + at;
        size_t n = at == 0 ? out.len / 2 : out.len - at;

        at += n;
        ASSERT_INT(at == out.len, agx_ws_read(&ws, &p, &n, &e, NULL));
    }
    for (int i = 0; i < 17; i++) {
        uint8_t small[] = "\x82\x81\0\0\0\0x", *p = small;
        size_t n = sizeof(small) - 1;

        ASSERT_INT(1, agx_ws_read(&ws, &p, &n, &e, NULL));
        ASSERT_INT(i<16, ws.body.cap> 64 << 10);
    }
    agx_ws_done(&ws);
}

TEST(ws_read_of_a_whole_frame_hands_out_a_view_of_the_callers_bytes)
{
    uint8_t bytes[] = "\x82\x83\0\0\0\0xyz";
    uint8_t *p = bytes;
    size_t n = sizeof(bytes) - 1;
    struct agx_ws_event e;
    struct agx_ws ws;

    agx_ws_init(&ws, AGX_WS_SERVER, MAX);
    ASSERT_INT(1, agx_ws_read(&ws, &p, &n, &e, NULL));
    ASSERT_TRUE(e.data.ptr == (const char *)bytes + 6);
    agx_ws_done(&ws);
}

TEST(ws_want_without_a_message_under_way_asks_for_nothing)
{
    uint8_t bytes[] = "\x89\x83\0\0\0\0x";
    uint8_t *p = bytes, *room;
    size_t n = sizeof(bytes) - 1, size = 1;
    struct agx_ws_event e;
    struct agx_ws ws;

    agx_ws_init(&ws, AGX_WS_SERVER, MAX);
    agx_ws_want(&ws, &room, &size);
    ASSERT_UINT(0, size);
    ASSERT_INT(0, agx_ws_read(&ws, &p, &n, &e, NULL));
    agx_ws_want(&ws, &room, &size); /* inside a ping */
    ASSERT_UINT(0, size);
    agx_ws_done(&ws);
}

TEST(ws_announced_length_takes_no_memory_before_its_bytes_come)
{
    uint8_t bytes[] = "\x82\xff\0\0\0\0\x0f\xff\xff\xff\0\0\0\0x";
    uint8_t *p = bytes, *room;
    size_t n = sizeof(bytes) - 1, size;
    struct agx_ws_event e;
    struct agx_ws ws;

    agx_ws_init(&ws, AGX_WS_SERVER, (size_t)256 << 20);
    ASSERT_INT(0, agx_ws_read(&ws, &p, &n, &e, NULL));
    agx_ws_want(&ws, &room, &size);
    ASSERT_TRUE(size > 0);
    ASSERT_TRUE(ws.body.cap <= 128 << 10);
    agx_ws_done(&ws);
}

TEST(ws_mask_in_pieces_is_the_mask_of_the_whole)
{
    _cleanup_buf_ struct agx_buf whole = AGX_BUF_INIT(200), pieces = AGX_BUF_INIT(200);

    fill_pattern(&whole, 133);
    fill_pattern(&pieces, 133);
    agx_ws_mask(whole.data, whole.len, key, 0);
    agx_ws_mask(pieces.data, 41, key, 0);
    agx_ws_mask(pieces.data + 41, 92, key, 41);
    ASSERT_STR(agx_buf_peek(&whole), agx_buf_peek(&pieces));
}

TEST(ws_append_of_a_long_ping_is_refused_and_a_long_close_reason_cut)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    char text[200];

    memset(text, 'r', sizeof(text));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_ws_append(&out, AGX_WS_PING, agx_str_bytes(text, 126), NULL));
    ASSERT_UINT(0, out.len);
    memcpy(text + 122, "\xc3\xa9", 2);
    ASSERT_OK(agx_ws_append_close(&out, AGX_WS_GOING_AWAY, agx_str_bytes(text, 200), NULL));
    ASSERT_UINT(2 + 2 + 122, out.len); /* not in the middle of a character */
    ASSERT_STR(AGX_STR("\x88\x7c\x03\xe9r"), agx_str_bytes(out.data, 5));
    agx_buf_clear(&out);
    ASSERT_OK(agx_ws_append_close(&out, AGX_WS_NO_CODE, AGX_STR(""), NULL));
    ASSERT_STR(AGX_STR("\x88\x00"), agx_buf_peek(&out));
}

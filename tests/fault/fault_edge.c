#include "codec/http1.h"
#include "codec/ws.h"
#include "codec/ws_handshake.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

TEST(ws_without_memory_is_resource_exhausted_and_closes_with_1011)
{
    static const uint8_t key[AGX_WS_KEY_SIZE] = { 1, 2, 3, 4 };

    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_ws_event e;
        struct agx_ws ws;
        uint8_t *p;
        size_t n;
        int r = agx_ws_append(&out, AGX_WS_TEXT, AGX_STR("some text"), key);

        agx_ws_init(&ws, AGX_WS_SERVER, 1000);
        for (size_t i = 0; i < out.len && r == 0; i++) {
            p = out.data + i;
            n = 1;
            r = agx_ws_read(&ws, &p, &n, &e, &err);
        }
        ASSERT_TRUE(r == 1 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r < 0 && out.len > 0)
            ASSERT_UINT(AGX_WS_INTERNAL, ws.fault);
        agx_ws_done(&ws);
    }
}

TEST(ws_want_without_memory_asks_for_nothing_and_reading_goes_on)
{
    FAULT_EACH_ALLOCATION
    {
        uint8_t bytes[] = "\x82\x84\0\0\0\0abcd";
        struct agx_ws_event e;
        struct agx_ws ws;
        uint8_t *p = bytes, *room;
        size_t n = 6, size;
        int r;

        agx_ws_init(&ws, AGX_WS_SERVER, 1000);
        ASSERT_INT(0, agx_ws_read(&ws, &p, &n, &e, NULL));
        agx_ws_want(&ws, &room, &size);
        ASSERT_INT(size == 0, agx_fault_hit());
        n = 4;
        r = agx_ws_read(&ws, &p, &n, &e, NULL);
        ASSERT_INT(1, r);
        ASSERT_STR(AGX_STR("abcd"), e.data);
        agx_ws_done(&ws);
    }
}

TEST(http_and_handshake_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
        int r = agx_http_write_status(&out, 200);

        if (r == 0)
            r = agx_http_write_header(&out, AGX_STR("A"), AGX_STR("b"));
        if (r == 0)
            r = agx_ws_write_answer(&out, AGX_STR("dGhlIHNhbXBsZSBub25jZQ=="));
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
    }
}

/*
 * fault_client.c: a client whose n-th allocation fails, in each step of each shape. It may refuse
 * the call, fail it, or lose the connection and reconnect; it never aborts, leaks or hangs.
 */
#include "agentix/runtime.h"
#include "client/session.h"
#include "codec/http1.h"
#include "codec/mp_writer.h"
#include "codec/remote_call.h"
#include "codec/sio.h"
#include "codec/ws.h"
#include "codec/ws_handshake.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <stdlib.h>

/* The server's bytes after the upgrade: made before any allocation fails. */
static struct agx_buf script = AGX_BUF_INIT(1 << 20);

static void put_event(enum agx_remote_event ev, struct agx_str payload)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(1000);

    ASSERT_OK(agx_buf_push(&text, '4'));
    ASSERT_OK(agx_sio_encode_binary_event(&text, agx_remote_event_name(ev)));
    ASSERT_OK(agx_ws_append(&script, AGX_WS_TEXT, agx_buf_peek(&text), NULL));
    ASSERT_OK(agx_ws_append(&script, AGX_WS_BINARY, payload, NULL));
}

/* {call_id, seq[, value][, error]} */
static void put_message(enum agx_remote_event ev, const char *id, uint64_t seq, bool value,
                        bool error)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_map(&w, 2 + (size_t)value + (size_t)error);
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, agx_str_from(id));
    agx_mp_write_str(&w, AGX_STR("seq"));
    agx_mp_write_uint(&w, seq);
    if (value) {
        agx_mp_write_str(&w, AGX_STR("value"));
        agx_mp_write_str(&w, AGX_STR("an item"));
    }
    if (error) {
        agx_mp_write_str(&w, AGX_STR("error"));
        agx_mp_write_map(&w, 3);
        agx_mp_write_str(&w, AGX_STR("type"));
        agx_mp_write_str(&w, AGX_STR("ValueError"));
        agx_mp_write_str(&w, AGX_STR("message"));
        agx_mp_write_str(&w, AGX_STR("no"));
        agx_mp_write_str(&w, AGX_STR("traceback"));
        agx_mp_write_str(&w, AGX_STR("Traceback"));
    }
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    put_event(ev, agx_buf_peek(&b));
}

static void write_script(void)
{
    if (script.len > 0)
        return;
    ASSERT_OK(agx_ws_append(&script, AGX_WS_TEXT,
                            AGX_STR("0{\"sid\":\"x\",\"upgrades\":[],\"pingTimeout\":20000,"
                                    "\"pingInterval\":25000}"),
                            NULL));
    ASSERT_OK(agx_ws_append(&script, AGX_WS_TEXT,
                            AGX_STR("40{\"sid\":\"y\",\"agentix\":{\"proto\":1,\"session\":\"s\","
                                    "\"resumed\":false,\"resume_ms\":60000,"
                                    "\"max_message\":65536}}"),
                            NULL));
    put_message(AGX_EV_UNARY_RESULT, "00000001-1", 1, true, false);
    put_message(AGX_EV_STREAM_ITEM, "00000001-2", 1, true, false);
    put_message(AGX_EV_STREAM_ERROR, "00000001-2", 2, false, true);
    put_message(AGX_EV_BIDI_OUT, "00000001-3", 1, true, false);
    put_message(AGX_EV_BIDI_END, "00000001-3", 2, false, false);
}

/* The whole server's side of one connection. */
static void serve(struct agx_session *s, uint64_t now)
{
    struct agx_buf bytes = AGX_BUF_INIT(1 << 20);
    struct agx_http_head head;
    struct agx_http http;
    struct agx_str key;
    size_t used;

    agx_session_dialed(s, now);
    agx_http_init(&http, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, 0);
    if (agx_http_read_head(&http, agx_session_pending(s), &used, &head, NULL) == 1 &&
        agx_ws_is_upgrade(&head, &key) && agx_ws_write_answer(&bytes, key) == 0 &&
        agx_buf_append(&bytes, agx_buf_peek(&script)) == 0)
        agx_session_read(s, bytes.data, bytes.len, now);
    agx_session_sent(s, agx_session_pending(s).len);
    agx_buf_done(&bytes);
}

static int start(struct agx_session *s, enum agx_remote_kind kind, struct agx_call **ret)
{
    const struct agx_call_request q = {
        .kind = kind, .target = AGX_STR("m::f"), .args = AGX_STR("\x91\x01"), .timeout_ms = 1000
    };
    struct agx_error *err = NULL;
    int r = agx_session_call(s, &q, 1, ret, &err);

    ASSERT_INT(r < 0, err != NULL);
    agx_error_free(err);
    return r;
}

/* Takes up to the end; true when it ended well. */
static bool drain(struct agx_call *call)
{
    struct agx_error *err = NULL;
    struct agx_str value;
    int r;

    while ((r = agx_session_take(call, &value, 2, &err)) == AGX_TAKE_VALUE)
        ;
    agx_error_free(err);
    return r == AGX_TAKE_END;
}

TEST(calls_of_each_shape_without_memory_end_and_leak_nothing)
{
    write_script();
    FAULT_EACH_ALLOCATION
    {
        const struct agx_session_config config = { .host = AGX_STR("h"),
                                                   .token = AGX_STR("t"),
                                                   .max_message = 65536,
                                                   .connect_timeout_ms = 1000,
                                                   .reconnect_ms = 1000,
                                                   .seed = { 1, 2 } };
        struct agx_call *calls[3] = { NULL };
        struct agx_session *s = NULL;
        bool good = agx_session_new(&config, 1, &s, NULL) == 0;

        for (int kind = 0; good && kind < 3; kind++)
            good = start(s, (enum agx_remote_kind)kind, &calls[kind]) == 0;
        if (good && agx_session_send(calls[2], AGX_STR("\x01"), 1, NULL) < 0)
            good = false;
        if (s)
            serve(s, 2);
        /* whatever became of the connection, the deadline ends every call */
        if (s)
            agx_session_tick(s, 5000);
        for (int kind = 0; s && kind < 3; kind++) {
            bool ended = calls[kind] ? drain(calls[kind]) : false;

            good = good && (ended || kind == 1);
            agx_session_release(calls[kind], 5000);
        }
        if (s)
            agx_session_goodbye(s);
        agx_session_free(s);
        ASSERT_TRUE(good || agx_fault_hit());
    }
    agx_buf_done(&script);
}

TEST(runtime_opened_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_runtime_options options = AGX_RUNTIME_OPTIONS_INIT;
        struct agx_runtime *rt = NULL;
        struct agx_error *err = NULL;
        int r;

        options.url = "unix:///nowhere/s";
        options.token = "t";
        r = agx_runtime_open(&options, &rt, &err);
        ASSERT_TRUE(r == 0 || (r == -AGX_RESOURCE_EXHAUSTED && err && agx_fault_hit()));
        agx_error_free(err);
        agx_runtime_close(rt);
    }
}

/*
 * fuzz_client.c: a hostile server cannot make the client crash, hang or use unbounded memory, and
 * each call ends at its deadline at the latest. The first byte chooses what the other bytes are:
 * the connection from its start, the connection after the upgrade, or, after a complete handshake,
 * WebSocket messages and the events in them.
 */
#include "agentix/runtime.h"
#include "client/session.h"
#include "codec/credit.h"
#include "codec/http1.h"
#include "codec/remote_call.h"
#include "codec/sio.h"
#include "codec/ws.h"
#include "codec/ws_handshake.h"
#include "tests/support/fuzz.h"

enum { MESSAGE_MAX = 1 << 16, TIMEOUT_MS = 1000, N_CALLS = 3 };

static const char open_packet[] = "0{\"sid\":\"x\",\"upgrades\":[],\"pingTimeout\":20000,"
                                  "\"pingInterval\":25000}";
static const char connect_answer[] =
    "40{\"sid\":\"y\",\"agentix\":{\"proto\":1,\"session\":\"s\",\"resumed\":false,"
    "\"resume_ms\":60000,\"max_message\":65536}}";
static const char resume_answer[] =
    "40{\"sid\":\"y\",\"agentix\":{\"proto\":1,\"session\":\"s\",\"resumed\":true,"
    "\"resume_ms\":60000,\"max_message\":65536}}";

static void read_in_steps(struct agx_session *s, struct agx_buf *b, size_t step, uint64_t now)
{
    for (size_t at = 0; at < b->len; at += step)
        agx_session_read(s, b->data + at, AGX_MIN(step, b->len - at), now);
    agx_session_sent(s, agx_session_pending(s).len);
}

/* Connects, up to the WebSocket; false when the client asked for none. */
static bool upgrade(struct agx_session *s, struct agx_buf *out, uint64_t now)
{
    struct agx_http_head head;
    struct agx_http http;
    struct agx_str key;
    size_t used;

    agx_session_dialed(s, now);
    agx_http_init(&http, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, 0);
    if (agx_http_read_head(&http, agx_session_pending(s), &used, &head, NULL) != 1)
        return false;
    FUZZ_CHECK(agx_ws_is_upgrade(&head, &key));
    FUZZ_CHECK(agx_ws_write_answer(out, key) == 0);
    agx_session_sent(s, agx_session_pending(s).len);
    return true;
}

static void put_text(struct agx_buf *out, const char *text)
{
    FUZZ_CHECK(agx_ws_append(out, AGX_WS_TEXT, agx_str_from(text), NULL) == 0);
}

/* Records of [kind, length, bytes...]: a text message, or an event with this payload. */
static void put_messages(struct agx_buf *out, const uint8_t *data, size_t size)
{
    while (size >= 2) {
        size_t n = AGX_MIN((size_t)data[1], size - 2);
        struct agx_str bytes = agx_str_bytes(data + 2, n);
        struct agx_buf text = AGX_BUF_INIT(1000);

        if (data[0] >= AGX_EV_COUNT) {
            FUZZ_CHECK(agx_ws_append(out, data[0] & 1 ? AGX_WS_TEXT : AGX_WS_BINARY, bytes, NULL) ==
                       0);
        } else {
            FUZZ_CHECK(agx_buf_push(&text, '4') == 0);
            FUZZ_CHECK(agx_sio_encode_binary_event(
                           &text, agx_remote_event_name((enum agx_remote_event)data[0])) == 0);
            FUZZ_CHECK(agx_ws_append(out, AGX_WS_TEXT, agx_buf_peek(&text), NULL) == 0);
            FUZZ_CHECK(agx_ws_append(out, AGX_WS_BINARY, bytes, NULL) == 0);
        }
        agx_buf_done(&text);
        data += 2 + n;
        size -= 2 + n;
    }
}

/* One connection on which the server says `data`. */
static void converse(struct agx_session *s, unsigned mode, const uint8_t *data, size_t size,
                     size_t step, const char *answer, uint64_t now)
{
    struct agx_buf out = AGX_BUF_INIT((size_t)16 << 20);

    if (mode == 0) {
        agx_session_dialed(s, now);
        FUZZ_CHECK(agx_buf_append(&out, agx_str_bytes(data, size)) == 0);
    } else if (upgrade(s, &out, now)) {
        if (mode == 1) {
            FUZZ_CHECK(agx_buf_append(&out, agx_str_bytes(data, size)) == 0);
        } else {
            put_text(&out, open_packet);
            put_text(&out, answer);
            put_messages(&out, data, size);
        }
    }
    read_in_steps(s, &out, step, now);
    agx_buf_done(&out);
}

static void take_some(struct agx_call *call, uint64_t now)
{
    struct agx_error *err = NULL;
    struct agx_str value;
    int n = 0, r;

    while ((r = agx_session_take(call, &value, now, &err)) == AGX_TAKE_VALUE)
        FUZZ_CHECK(++n <= AGX_CREDIT_ITEMS);
    FUZZ_CHECK((r < 0) == (err != NULL));
    agx_error_free(err);
}

static void expect_over(struct agx_call *call, uint64_t now)
{
    struct agx_str value;
    int r = agx_session_take(call, &value, now, NULL);

    FUZZ_CHECK(r == AGX_TAKE_END || r < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct agx_session_config config = { .host = AGX_STR("h"),
                                               .token = AGX_STR("t"),
                                               .max_message = MESSAGE_MAX,
                                               .connect_timeout_ms = 10000,
                                               .reconnect_ms = 60000,
                                               .seed = { 1, 2 } };
    struct agx_call *calls[N_CALLS];
    struct agx_session *s = NULL;
    struct agx_error *cut = NULL;
    size_t half;
    unsigned mode;

    if (size < 1)
        return 0;
    mode = data[0] % 4; /* 2 and 3 differ in the resume */
    FUZZ_CHECK(agx_session_new(&config, 1, &s, NULL) == 0);
    for (int i = 0; i < N_CALLS; i++) {
        const struct agx_call_request q = { .kind = (enum agx_remote_kind)i,
                                            .target = AGX_STR("m::f"),
                                            .timeout_ms = TIMEOUT_MS };

        FUZZ_CHECK(agx_session_call(s, &q, 1, &calls[i], NULL) == 0);
    }
    (void)!agx_session_send(calls[AGX_REMOTE_BIDI], AGX_STR("\x01"), 1, NULL);
    half = mode == 3 ? (size - 1) / 2 : size - 1;
    converse(s, mode, data + 1, half, (data[0] >> 2) + 1, connect_answer, 2);
    for (int i = 0; i < N_CALLS; i++)
        take_some(calls[i], 3);
    if (mode == 3) {
        (void)agx_error_set(&cut, AGX_UNAVAILABLE, "cut");
        agx_session_lost(s, &cut, 4);
        agx_session_tick(s, 4);
        if (agx_session_attempt(s) > 0)
            converse(s, mode, data + 1 + half, size - 1 - half, 7, resume_answer, 5);
        for (int i = 0; i < N_CALLS; i++)
            take_some(calls[i], 6);
    }
    agx_session_tick(s, 1 + TIMEOUT_MS);
    for (int i = 0; i < N_CALLS; i++) {
        take_some(calls[i], 2 + TIMEOUT_MS);
        expect_over(calls[i], 2 + TIMEOUT_MS);
        agx_session_release(calls[i], 3 + TIMEOUT_MS);
    }
    agx_session_free(s);
    return 0;
}

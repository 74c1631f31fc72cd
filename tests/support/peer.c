/* peer.c: a minimal server for client tests. */
#include "tests/support/peer.h"

#include "agentix/runtime.h"
#include "codec/eio.h"
#include "codec/mp_fields.h"
#include "codec/mp_writer.h"
#include "codec/ws_handshake.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

void peer_init(struct peer *p, uint64_t reconnect_ms)
{
    const struct agx_session_config config = {
        .host = AGX_STR("localhost"),
        .token = AGX_STR("secret"),
        .max_message = 1 << 20,
        .connect_timeout_ms = 1000,
        .reconnect_ms = reconnect_ms,
        .seed = { 1, 2 },
    };

    memset(p, 0, sizeof(*p));
    p->now = 1000;
    p->in.max = p->out.max = (size_t)16 << 20;
    ASSERT_OK(agx_session_new(&config, p->now, &p->s, NULL));
}

static void hang_up(struct peer *p)
{
    if (p->open) {
        agx_ws_done(&p->ws);
        agx_sio_assembler_done(&p->assembler);
    }
    p->open = false;
    agx_buf_clear(&p->in);
    agx_buf_clear(&p->out);
}

void peer_done(struct peer *p)
{
    hang_up(p);
    p->s = agx_session_free(p->s);
    for (size_t i = 0; i < p->n_events; i++)
        free(p->events[i].payload);
    agx_buf_done(&p->in);
    agx_buf_done(&p->out);
}

static void note_message(struct peer *p, const struct agx_sio_message *m)
{
    struct peer_event *e = &p->events[p->n_events];

    if (m->packet.type == AGX_SIO_CONNECT) {
        (void)snprintf(p->hello, sizeof(p->hello), "%.*s", AGX_STR_ARG(m->packet.data));
        return;
    }
    if (!m->sole)
        return;
    ASSERT_TRUE(p->n_events < PEER_EVENTS);
    ASSERT_TRUE(agx_remote_event_find(m->name, &e->ev));
    e->len = m->sole->bytes.len;
    e->payload = malloc(e->len + 1);
    memcpy(e->payload, m->sole->bytes.ptr, e->len);
    p->n_events++;
}

static void on_frame(struct peer *p, const struct agx_ws_event *e)
{
    struct agx_sio_message m;
    struct agx_eio_packet packet;

    if (e->kind == AGX_WS_BINARY)
        packet = agx_eio_decode_binary(e->data);
    else if (e->kind != AGX_WS_TEXT || agx_eio_decode_text(e->data, &packet, NULL) < 0)
        return;
    if (packet.type == AGX_EIO_MESSAGE &&
        agx_sio_assembler_feed(&p->assembler, &packet, &m, NULL) > 0)
        note_message(p, &m);
}

static void answer_upgrade(struct peer *p)
{
    const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
    struct agx_http_head head;
    struct agx_http http;
    struct agx_str key;
    size_t used;

    agx_http_init(&http, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, 0);
    ASSERT_INT(1, agx_http_read_head(&http, agx_buf_peek(&p->in), &used, &head, NULL));
    ASSERT_TRUE(agx_ws_is_upgrade(&head, &key));
    ASSERT_STR(AGX_STR("/socket.io/?EIO=4&transport=websocket"), head.target);
    ASSERT_OK(agx_ws_write_answer(&p->out, key));
    agx_ws_init(&p->ws, AGX_WS_SERVER, (size_t)16 << 20);
    agx_sio_assembler_init(&p->assembler, &limits);
    p->open = true;
}

/* Reads the bytes that the client wants to send. */
static void collect(struct peer *p)
{
    struct agx_str pending = agx_session_pending(p->s);
    struct agx_ws_event e;
    uint8_t *data;
    size_t len;

    agx_buf_clear(&p->in);
    ASSERT_OK(agx_buf_append(&p->in, pending));
    agx_session_sent(p->s, pending.len);
    if (!p->open)
        return;
    data = p->in.data;
    len = p->in.len;
    while (len > 0 && agx_ws_read(&p->ws, &data, &len, &e, NULL) > 0)
        on_frame(p, &e);
}

void peer_accept(struct peer *p)
{
    agx_session_dialed(p->s, p->now);
    collect(p);
    answer_upgrade(p);
    peer_text(p, AGX_STR("0{\"sid\":\"x\",\"upgrades\":[],\"pingTimeout\":20000,"
                         "\"pingInterval\":25000,\"maxPayload\":1000000}"));
    p->hello[0] = '\0';
    peer_flush(p, SIZE_MAX);
}

void peer_connect(struct peer *p, const char *session, bool resumed)
{
    char text[400];

    (void)snprintf(text, sizeof(text),
                   "40{\"sid\":\"y\",\"agentix\":{\"proto\":1,\"session\":\"%s\",\"resumed\":%s,"
                   "\"resume_ms\":60000,\"max_message\":1048576}}",
                   session, resumed ? "true" : "false");
    peer_text(p, agx_str_from(text));
    peer_flush(p, SIZE_MAX);
}

void peer_cut(struct peer *p)
{
    struct agx_error *err = NULL;

    hang_up(p);
    (void)agx_error_set(&err, AGX_UNAVAILABLE, "cut");
    agx_session_lost(p->s, &err, p->now);
    agx_session_tick(p->s, p->now);
}

void peer_reconnect(struct peer *p, const char *session, bool resumed)
{
    peer_cut(p);
    peer_accept(p);
    peer_connect(p, session, resumed);
}

void peer_text(struct peer *p, struct agx_str text)
{
    ASSERT_OK(agx_ws_append(&p->out, AGX_WS_TEXT, text, NULL));
}

void peer_emit(struct peer *p, enum agx_remote_event ev, struct agx_str payload)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(1000);

    ASSERT_OK(agx_buf_push(&text, '4'));
    ASSERT_OK(agx_sio_encode_binary_event(&text, agx_remote_event_name(ev)));
    peer_text(p, agx_buf_peek(&text));
    ASSERT_OK(agx_ws_append(&p->out, AGX_WS_BINARY, payload, NULL));
}

static void put_key(struct agx_mp_writer *w, const char *key)
{
    agx_mp_write_str(w, agx_str_from(key));
}

void peer_value(struct peer *p, enum agx_remote_event ev, const char *call_id, uint64_t seq,
                struct agx_str value)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT((size_t)16 << 20);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_map(&w, 2 + (value.len > 0));
    put_key(&w, "call_id");
    put_key(&w, call_id);
    put_key(&w, "seq");
    agx_mp_write_uint(&w, seq);
    if (value.len > 0) {
        put_key(&w, "value");
        agx_mp_write_raw(&w, value);
    }
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    peer_emit(p, ev, agx_buf_peek(&b));
}

void peer_error(struct peer *p, enum agx_remote_event ev, const char *call_id, uint64_t seq,
                const char *type, bool cancelled, int returncode)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_map(&w, 3);
    put_key(&w, "call_id");
    put_key(&w, call_id);
    put_key(&w, "seq");
    agx_mp_write_uint(&w, seq);
    put_key(&w, "error");
    agx_mp_write_map(&w, returncode == INT_MIN ? 4 : 5);
    put_key(&w, "type");
    put_key(&w, type);
    put_key(&w, "message");
    put_key(&w, "it went wrong");
    put_key(&w, "traceback");
    put_key(&w, "Traceback (most recent call last)");
    put_key(&w, "cancelled");
    agx_mp_write_bool(&w, cancelled);
    if (returncode != INT_MIN) {
        put_key(&w, "returncode");
        agx_mp_write_int(&w, returncode);
    }
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    peer_emit(p, ev, agx_buf_peek(&b));
}

void peer_credit(struct peer *p, const char *call_id, uint64_t n, uint64_t bytes, uint64_t seq)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_map(&w, 4);
    put_key(&w, "call_id");
    put_key(&w, call_id);
    put_key(&w, "n");
    agx_mp_write_uint(&w, n);
    put_key(&w, "bytes");
    agx_mp_write_uint(&w, bytes);
    put_key(&w, "seq");
    agx_mp_write_uint(&w, seq);
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    peer_emit(p, AGX_EV_CREDIT, agx_buf_peek(&b));
}

void peer_flush(struct peer *p, size_t step)
{
    uint8_t *room;
    size_t size;

    for (size_t at = 0; at < p->out.len;) {
        size_t n = AGX_MIN(step, p->out.len - at);

        agx_session_want(p->s, &room, &size);
        if (size > 0) {
            n = AGX_MIN(n, size);
            memcpy(room, p->out.data + at, n);
            agx_session_filled(p->s, n);
            agx_session_read(p->s, p->out.data, 0, p->now);
        } else {
            agx_session_read(p->s, p->out.data + at, n, p->now);
        }
        at += n;
    }
    agx_buf_clear(&p->out);
    collect(p);
}

struct agx_str peer_expect(struct peer *p, enum agx_remote_event ev)
{
    struct peer_event *e = &p->events[p->seen];

    collect(p);
    if (p->seen >= p->n_events)
        FAIL("no further event, expected '%.*s'", AGX_STR_ARG(agx_remote_event_name(ev)));
    ASSERT_STR(agx_remote_event_name(ev), agx_remote_event_name(e->ev));
    p->seen++;
    return agx_str_bytes(e->payload, e->len);
}

void peer_expect_none(struct peer *p)
{
    collect(p);
    if (p->seen < p->n_events)
        FAIL("unexpected event '%.*s'", AGX_STR_ARG(agx_remote_event_name(p->events[p->seen].ev)));
}

char *peer_id(struct agx_str payload)
{
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { AGX_STR("call_id"), AGX_MP_ANY } };

    ASSERT_OK(agx_mp_read_fields(payload, &limits, f, 1, NULL));
    ASSERT_TRUE(f[0].present);
    return agx_str_dup(f[0].value.bytes);
}

uint64_t peer_number(struct agx_str payload, const char *name)
{
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { agx_str_from(name), AGX_MP_BIT(AGX_MP_UINT) } };

    ASSERT_OK(agx_mp_read_fields(payload, &limits, f, 1, NULL));
    ASSERT_TRUE(f[0].present);
    return f[0].value.u;
}

struct peer *peer_new_dialing(void)
{
    struct peer *p = malloc(sizeof(*p));

    peer_init(p, 60000);
    return p;
}

struct peer *peer_new(void)
{
    struct peer *p = peer_new_dialing();

    peer_accept(p);
    peer_connect(p, "s1", false);
    ASSERT_INT(1, agx_session_state(p->s, NULL));
    return p;
}

void peer_freep(struct peer **p)
{
    if (*p)
        peer_done(*p);
    free(*p);
}

struct agx_call *peer_start(struct peer *p, enum agx_remote_kind kind, uint64_t timeout_ms)
{
    const struct agx_call_request q = { .kind = kind,
                                        .target = AGX_STR("m::f"),
                                        .kwargs = AGX_STR("\x81\xa1n\x01"),
                                        .timeout_ms = timeout_ms };
    struct agx_call *call = NULL;

    ASSERT_OK(agx_session_call(p->s, &q, p->now, &call, NULL));
    return call;
}

/* Starts a call and returns its id at the server. */
struct agx_call *peer_start_known(struct peer *p, enum agx_remote_kind kind, char **ret_id)
{
    static const enum agx_remote_event events[] = { AGX_EV_UNARY, AGX_EV_STREAM,
                                                    AGX_EV_BIDI_START };
    struct agx_call *call = peer_start(p, kind, 0);

    *ret_id = peer_id(peer_expect(p, events[kind]));
    return call;
}

int peer_take(struct peer *p, struct agx_call *call, struct agx_str *ret, struct agx_error **err)
{
    return agx_session_take(call, ret, p->now, err);
}

void peer_expect_value(struct peer *p, struct agx_call *call, struct agx_str want)
{
    struct agx_str got = AGX_STR("");

    ASSERT_INT(AGX_TAKE_VALUE, peer_take(p, call, &got, NULL));
    ASSERT_STR(want, got);
}

void peer_expect_end(struct peer *p, struct agx_call *call)
{
    struct agx_str got;

    ASSERT_INT(AGX_TAKE_END, peer_take(p, call, &got, NULL));
}

void peer_expect_failure(struct peer *p, struct agx_call *call, enum agx_code code,
                         const char *type)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str got;

    ASSERT_CODE(code, peer_take(p, call, &got, &err));
    if (type)
        ASSERT_CSTR(type, agx_error_type(err));
    else
        ASSERT_NULL(agx_error_type(err));
}

/* Writes {known: [[id, seq]...], unknown: [id...]} with at most one call each. */
void peer_resume_done(struct peer *p, const char *known, uint64_t seq, const char *unknown)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &b);
    agx_mp_write_map(&w, 2);
    agx_mp_write_str(&w, AGX_STR("known"));
    agx_mp_write_array(&w, known != NULL);
    if (known) {
        agx_mp_write_array(&w, 2);
        agx_mp_write_str(&w, agx_str_from(known));
        agx_mp_write_uint(&w, seq);
    }
    agx_mp_write_str(&w, AGX_STR("unknown"));
    agx_mp_write_array(&w, unknown != NULL);
    if (unknown)
        agx_mp_write_str(&w, agx_str_from(unknown));
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    peer_emit(p, AGX_EV_RESUME_DONE, agx_buf_peek(&b));
    peer_flush(p, SIZE_MAX);
}

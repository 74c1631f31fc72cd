/*
 * fuzz_server.c: complete connections to the complete server, except listeners and the worker's
 * process: HTTP, WebSocket, Engine.IO, Socket.IO, peers, router, the worker's log. The input is a
 * history of four clients and a worker; the first byte says whether the server requires a token.
 *
 *   OLD, SESSION  keep the protocol; this file makes their messages. The promises to them:
 *                 (1) the server never closes their connection;
 *                 (2) each request gets one terminal event, and nothing follows it;
 *                 (3) in a session, also over lost connections, no event is lost or doubled;
 *                 (4) when the worker has died, no call is left open;
 *   WILD          sends complete and broken Engine.IO and Socket.IO messages of any content;
 *   RAW           sends any bytes, which need not even be HTTP.
 *
 * In every case the server's messages to clients and to the worker are well-formed, and after its
 * end no handle, descriptor or memory is left.
 */
#include "base/log.h"
#include "codec/credit.h"
#include "codec/mp_fields.h"
#include "runtime/server_internal.h"
#include "tests/support/sio_wire.h"
#include "tests/support/still_worker.h"

#include <fcntl.h>

enum { OLD, SESSION, WILD, RAW, CLIENTS };
enum { IDS = 4, MESSAGE_MAX = 1 << 16, SNDBUF = 4096 };

/* What a client knows of a call id. */
struct known {
    bool open;
    uint64_t seq; /* of the last event, in a session */
};

struct client {
    size_t number;
    struct sio_wire wire;
    bool deaf;        /* reads nothing for now */
    char session[33]; /* empty: none */
    bool resumes;     /* resume:done is due */
    struct known ids[IDS];
};

struct world {
    struct agx_loop *loop;
    struct agx_server *server;
    struct agx_server_config config;
    struct client clients[CLIENTS];
    size_t n_calls; /* at least as many as the worker was asked for */
    const uint8_t *at, *end;
};

static uint8_t byte(struct world *w)
{
    return w->at < w->end ? *w->at++ : 0;
}

/* So many bytes of the input as its next byte says. */
static struct agx_str bytes(struct world *w)
{
    size_t n = byte(w), left = (size_t)(w->end - w->at);
    struct agx_str s = agx_str_bytes(w->at, AGX_MIN(n, left));

    w->at += s.len;
    return s;
}

static bool keeps_protocol(const struct client *c)
{
    return c->number == OLD || c->number == SESSION;
}

/* -------- what the server says -------- */

enum { CALL_ID, SEQ, UNKNOWN, N_FIELDS };

/* Calls that the server never received: the client would send them again. */
static void on_resume_done(struct client *c, const struct agx_mp_field *unknown)
{
    FUZZ_CHECK(c->resumes && unknown->present);
    c->resumes = false;
    for (size_t i = 1; i + 1 < unknown->raw.len; i += 2) /* after the array's own byte: a1 'x' */
        c->ids[unknown->raw.ptr[i + 1] - 'a'].open = false;
}

static void check_event(struct client *c, enum agx_remote_event ev, const struct agx_mp_field *f)
{
    struct agx_str id = f[CALL_ID].value.bytes;
    struct known *k;

    FUZZ_CHECK(f[CALL_ID].present && id.len == 1 && id.ptr[0] >= 'a' && id.ptr[0] < 'a' + IDS);
    k = &c->ids[id.ptr[0] - 'a'];
    FUZZ_CHECK(k->open); /* (2) */
    if (c->number == SESSION && ev != AGX_EV_CREDIT && f[SEQ].present) {
        FUZZ_CHECK(f[SEQ].value.u == k->seq + 1); /* (3) */
        k->seq++;
    }
    if (sio_wire_is_terminal(ev))
        k->open = false;
}

static void on_server_event(struct client *c, const struct agx_sio_message *m)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[N_FIELDS] = {
        [CALL_ID] = { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
        [SEQ] = { AGX_STR("seq"), AGX_MP_BIT(AGX_MP_UINT) },
        [UNKNOWN] = { AGX_STR("unknown"), AGX_MP_BIT(AGX_MP_ARRAY) },
    };
    enum agx_remote_event ev;

    if (agx_str_eq(m->packet.nsp, AGX_STR("/log")))
        return;
    FUZZ_CHECK(agx_remote_event_find(m->name, &ev) && m->sole);
    FUZZ_CHECK(agx_mp_read_fields(m->sole->bytes, &limits, f, N_FIELDS, NULL) == 0);
    if (!keeps_protocol(c))
        return;
    if (ev == AGX_EV_RESUME_DONE)
        on_resume_done(c, &f[UNKNOWN]);
    else
        check_event(c, ev, f);
}

/* 40{"sid":...,"agentix":{...,"session":"<32 digits>","resumed":...}} */
static void on_connected(struct client *c, struct agx_str json)
{
    const char *at = memmem(json.ptr, json.len, "\"session\":\"", 11);
    bool resumed = memmem(json.ptr, json.len, "\"resumed\":true", 14);

    if (c->number != SESSION)
        return;
    FUZZ_CHECK(at && resumed == (c->session[0] != '\0')); /* (3) */
    memcpy(c->session, at + 11, 32);
}

static void on_message(void *user, const struct agx_sio_message *m)
{
    if (m->packet.type == AGX_SIO_CONNECT)
        on_connected(user, m->packet.data);
    else if (agx_sio_is_event(m->packet.type))
        on_server_event(user, m);
}

static bool read_client(struct client *c)
{
    char sink[4096];
    bool got;

    if (c->deaf || c->wire.fd < 0)
        return false;
    if (c->number == RAW)
        return recv(c->wire.fd, sink, sizeof(sink), 0) > 0;
    got = sio_wire_read(&c->wire);
    if (c->wire.is_over)
        FUZZ_CHECK(!keeps_protocol(c)); /* (1) */
    return got;
}

/* Until nobody has anything to say. */
static void turn(struct world *w)
{
    int quiet = 0;

    while (quiet < 3) {
        bool read_any = false;

        (void)uv_run(agx_loop_uv(w->loop), UV_RUN_NOWAIT);
        for (size_t i = 0; i < CLIENTS; i++)
            read_any |= read_client(&w->clients[i]);
        quiet = read_any ? 0 : quiet + 1;
    }
}

/* -------- what the clients say -------- */

/* After it was sent, everybody has a turn. */
static void sent(struct world *w, struct client *c, bool all)
{
    FUZZ_CHECK(all || !keeps_protocol(c));
    turn(w);
}

static void emit(struct world *w, struct client *c, struct agx_str name, const struct agx_buf *b)
{
    sent(w, c, sio_wire_emit(&c->wire, name, agx_buf_peek(b)));
}

static void connect_client(struct world *w, struct client *c)
{
    /* Who sends what he likes is held to all rules; the others' Host is nobody's. */
    unsigned from = c->number == RAW ? AGX_FROM_TCP : AGX_FROM_UNIX;
    int fds[2], size = SNDBUF;
    char auth[128] = "40";

    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    FUZZ_CHECK(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
    FUZZ_CHECK(agx_http_server_accept(w->server->http, &fds[0], from, 0, NULL) == 0);
    sio_wire_open(&c->wire, fds[1]);
    c->deaf = false;
    if (c->number == RAW)
        return;
    sent(w, c, sio_wire_upgrade(&c->wire, c->number == WILD ? "" : "Authorization: Bearer t\r\n"));
    if (c->number == WILD)
        return;
    if (c->number == SESSION)
        (void)snprintf(auth, sizeof(auth), "40{\"agentix\":{\"proto\":1,\"session\":\"%s\"}}",
                       c->session);
    sent(w, c, sio_wire_message(&c->wire, AGX_WS_TEXT, agx_str_from(auth)));
}

/* Names every call that it believes to be open. */
static void resume(struct world *w, struct client *c)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;
    size_t n = 0;

    for (size_t i = 0; i < IDS; i++)
        n += c->ids[i].open;
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1);
    agx_mp_write_str(&m, AGX_STR("calls"));
    agx_mp_write_array(&m, n);
    for (size_t i = 0; i < IDS; i++) {
        char name[2] = { (char)('a' + i), 0 };

        if (!c->ids[i].open)
            continue;
        agx_mp_write_array(&m, 4);
        agx_mp_write_str(&m, agx_str_from(name));
        agx_mp_write_uint(&m, c->ids[i].seq);
        agx_mp_write_uint(&m, AGX_CREDIT_ITEMS);
        agx_mp_write_uint(&m, AGX_CREDIT_BYTES);
    }
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    c->resumes = true;
    emit(w, c, AGX_STR("resume"), &b);
}

static void reconnect(struct world *w, struct client *c)
{
    bool has_session = c->session[0];

    sio_wire_close(&c->wire);
    if (!has_session)
        memset(c->ids, 0, sizeof(c->ids));
    connect_client(w, c);
    if (has_session)
        resume(w, c);
}

static void request(struct world *w, struct client *c)
{
    static const char *const events[] = { "unary", "stream", "bidi:start" };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    uint8_t what = byte(w), id = byte(w) % IDS;
    char name[2] = { (char)('a' + id), 0 };
    struct agx_mp_writer m;

    if (c->ids[id].open)
        return;
    c->ids[id] = (struct known){ .open = true };
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 2 + (what >= 192));
    sio_wire_put_str(&m, "call_id", name);
    sio_wire_put_str(&m, "target", what & 16 ? "" : "m::f");
    if (what >= 192) {
        sio_wire_put_uint(&m, "timeout_ms", 0);
    }
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    w->n_calls++;
    emit(w, c, agx_str_from(events[what % 3]), &b);
}

/* About a call that may be over. */
static void message(struct world *w, struct client *c)
{
    static const char *const events[] = { "bidi:in", "bidi:end_in", "cancel", "credit" };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    const char *event = events[byte(w) % 4];
    char name[2] = { (char)('a' + byte(w) % IDS), 0 };
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 5);
    sio_wire_put_str(&m, "call_id", name);
    agx_mp_write_str(&m, AGX_STR("item"));
    agx_mp_write_nil(&m);
    sio_wire_put_uint(&m, "seq", byte(w));
    sio_wire_put_uint(&m, "n", byte(w));
    sio_wire_put_uint(&m, "bytes", (uint64_t)byte(w) << 12);
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    emit(w, c, agx_str_from(event), &b);
}

static void acknowledge(struct world *w, struct client *c)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1);
    agx_mp_write_str(&m, AGX_STR("calls"));
    agx_mp_write_array(&m, (size_t)2 * IDS);
    for (size_t i = 0; i < IDS; i++) {
        char name[2] = { (char)('a' + i), 0 };

        agx_mp_write_str(&m, agx_str_from(name));
        agx_mp_write_uint(&m, c->ids[i].seq);
    }
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    emit(w, c, AGX_STR("ack"), &b);
}

static void wild_event(struct world *w)
{
    enum agx_remote_event ev = (enum agx_remote_event)(byte(w) % AGX_EV_COUNT);
    struct client *c = &w->clients[WILD];

    w->n_calls++;
    sent(w, c, sio_wire_emit(&c->wire, agx_remote_event_name(ev), bytes(w)));
}

/* One frame whose first byte is the input's: any opcode, last of its message or not. */
static void wild_frame(struct world *w)
{
    struct client *c = &w->clients[WILD];
    uint8_t first = byte(w), copy[AGX_WS_CONTROL_MAX], header[2 + AGX_WS_KEY_SIZE];
    struct agx_str s = bytes(w);
    size_t n = AGX_MIN(s.len, sizeof(copy));

    memcpy(copy, s.ptr, n);
    agx_ws_mask(copy, n, sio_wire_key, 0);
    header[0] = first;
    header[1] = (uint8_t)(0x80 | n);
    memcpy(header + 2, sio_wire_key, sizeof(sio_wire_key));
    sent(w, c, sio_wire_send(&c->wire, agx_str_bytes(header, sizeof(header))));
    sent(w, c, sio_wire_send(&c->wire, agx_str_bytes(copy, n)));
}

/* -------- what the worker says -------- */

static void frame_of_call(struct world *w)
{
    static const char *const types[] = { "result",     "error",  "stream_item",
                                         "stream_end", "credit", "lane" };
    static const char zeros[256 << 7];
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(MESSAGE_MAX);
    const char *type = types[byte(w) % 6];
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 8);
    sio_wire_put_str(&m, "type", type);
    sio_wire_put_uint(&m, "id", 1 + byte(w) % (w->n_calls + 1));
    agx_mp_write_str(&m, AGX_STR("value"));
    agx_mp_write_bin(&m, (struct agx_str){ zeros, (size_t)byte(w) << 7 });
    agx_mp_write_str(&m, AGX_STR("error"));
    agx_mp_write_map(&m, 0);
    sio_wire_put_uint(&m, "n", byte(w));
    sio_wire_put_uint(&m, "bytes", 1000);
    sio_wire_put_str(&m, "callable", "m::f");
    sio_wire_put_uint(&m, "lane", byte(w) % 3);
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    still_worker_say(w->server->worker, agx_buf_peek(&b));
}

static void print(struct world *w, bool to_stderr)
{
    struct agx_worker *worker = w->server->worker;
    struct agx_str s = bytes(w);

    (void)!write(to_stderr ? worker->stderr_fd : worker->stdout_fd, s.ptr, s.len);
    (void)!write(to_stderr ? worker->stderr_fd : worker->stdout_fd, "\n", 1);
}

/* -------- the history -------- */

static void step(struct world *w, uint8_t op)
{
    struct client *c = &w->clients[op >> 4 & 3], *good = &w->clients[op >> 4 & 1];
    struct client *wild = &w->clients[WILD], *raw = &w->clients[RAW];
    struct agx_worker *worker = w->server->worker;

    switch (op & 15) {
    case 0:
        request(w, good);
        break;
    case 1:
        message(w, good);
        break;
    case 2:
        acknowledge(w, &w->clients[SESSION]);
        break;
    case 3:
        reconnect(w, c);
        break;
    case 4:
        c->deaf = !c->deaf;
        break;
    case 5:
        sent(w, wild, sio_wire_message(&wild->wire, AGX_WS_TEXT, bytes(w)));
        break;
    case 6:
        sent(w, wild, sio_wire_message(&wild->wire, AGX_WS_BINARY, bytes(w)));
        break;
    case 7:
        wild_event(w);
        break;
    case 8:
        wild_frame(w);
        break;
    case 9:
        sent(w, raw, sio_wire_send(&raw->wire, bytes(w)));
        break;
    case 10:
    case 11:
        frame_of_call(w);
        break;
    case 12:
        still_worker_say(worker, bytes(w));
        break;
    case 13:
        print(w, op & 16);
        break;
    case 14:
        worker->busy = true;
        break;
    default:
        still_worker_check(worker);
        if (op & 128)
            still_worker_die(worker);
        else
            still_worker_drain(worker);
        break;
    }
    turn(w);
}

static void begin(struct world *w)
{
    static const struct agx_log_config quiet = { .level = AGX_LOG_ERROR, .fd = STDERR_FILENO };

    agx_log_setup(&quiet);
    w->config.max_message = MESSAGE_MAX;
    w->config.max_calls = 3;
    w->config.spin_us = 0;
    w->config.has_token = byte(w) & 1;
    agx_sha256(AGX_STR("t"), w->config.token_digest);
    FUZZ_CHECK(agx_loop_open(&w->loop, NULL) == 0);
    FUZZ_CHECK(agx_server_open(w->loop, &w->config, &w->server, NULL) == 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *c = &w->clients[i];

        *c = (struct client){ .number = i, .wire = { .on_message = on_message, .user = c } };
        c->wire.fd = -1;
    }
    for (size_t i = 0; i < CLIENTS; i++)
        connect_client(w, &w->clients[i]);
}

/* Everybody listens again, who was cut off comes back, and the worker dies. */
static void settle(struct world *w)
{
    for (size_t i = 0; i < CLIENTS; i++)
        w->clients[i].deaf = false;
    still_worker_check(w->server->worker);
    still_worker_drain(w->server->worker); /* what had to wait is read now */
    turn(w);
    still_worker_die(w->server->worker);
    turn(w);
    for (size_t i = 0; i <= SESSION; i++) {
        for (size_t id = 0; id < IDS; id++)
            FUZZ_CHECK(!w->clients[i].ids[id].open); /* (4) */
        FUZZ_CHECK(!w->clients[i].resumes);
    }
    FUZZ_CHECK(agx_router_running(w->server->router) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = { .config = AGX_SERVER_CONFIG_INIT, .at = data, .end = data + size };
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;

    FUZZ_CHECK(before >= 0);
    close(before);
    begin(&w);
    while (w.at < w.end)
        step(&w, byte(&w));
    settle(&w);
    agx_server_stop(w.server, true, NULL, NULL);
    for (size_t i = 0; i < CLIENTS; i++)
        sio_wire_close(&w.clients[i].wire);
    agx_loop_run(w.loop);
    FUZZ_CHECK(agx_loop_close(w.loop, NULL) == 0);
    after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FUZZ_CHECK(after == before);
    close(after);
    return 0;
}

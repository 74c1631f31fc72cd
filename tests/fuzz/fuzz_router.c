/*
 * fuzz_router.c: a history of clients and a worker, decoded from the input. It checks the promises
 * of the router:
 *  (1) a request gets at most one terminal event, and nothing follows it;
 *  (2) the numbers of a session's events increase by one;
 *  (3) the worker never has more calls to end than it was given;
 *  (4) when the worker is gone, every request of a client that stayed has had its terminal event.
 *
 * Clients 0 and 1 are old ones, 2 and 3 have sessions. Client 4 sends payloads straight from the
 * input; the only promise to check for it is that the router does not crash.
 */
#include "codec/frame.h"
#include "codec/mp_fields.h"
#include "runtime/router.h"
#include "tests/support/fuzz.h"

#include <limits.h>
#include <string.h>

enum { CLIENTS = 5, WILD = 4, IDS = 4, LANE_MAX = 1 << 14 };

/* What a client knows of one of its call ids. */
struct known {
    unsigned asked, answered; /* requests and terminal events, since it connected */
    bool open;                /* a call that was taken goes on */
    uint64_t seq;             /* of the last event, in a session */
    bool jumps;               /* resumed: what was not kept is missing from the numbers */
    bool refused;             /* the request that is being made */
};

struct client {
    struct agx_client *c; /* NULL: not there */
    bool connected;
    bool holding;     /* resumed, and the resume event is due */
    char session[33]; /* of the last time; empty: none */
    struct known ids[IDS];
};

struct world {
    struct agx_router *rt;
    struct agx_buf lanes[AGX_LANE_COUNT];
    struct client clients[CLIENTS];
    size_t queued;
    size_t n_requests;
    uint64_t now_ms;
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

static bool is_refusal(struct agx_str type)
{
    static const char *const types[] = { "BadRequest", "DuplicateCall",   "TooManyCalls",
                                         "KeyError",   "ValidationError", "ServerShutdown" };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (agx_str_eq(type, agx_str_from(types[i])))
            return true;
    }
    return false;
}

enum { CALL_ID, SEQ, ERROR, N_FIELDS };

static void read_event(struct agx_str payload, struct agx_mp_field f[N_FIELDS])
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

    f[CALL_ID] = (struct agx_mp_field){ AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) };
    f[SEQ] = (struct agx_mp_field){ AGX_STR("seq"), AGX_MP_BIT(AGX_MP_UINT) };
    f[ERROR] = (struct agx_mp_field){ AGX_STR("error"), AGX_MP_BIT(AGX_MP_MAP) };
    FUZZ_CHECK(agx_mp_read_fields(payload, &limits, f, N_FIELDS, NULL) == 0);
}

static struct agx_str error_type(const struct agx_mp_field *error)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) } };

    if (!error->present || agx_mp_read_fields(error->raw, &limits, f, 1, NULL) < 0 || !f[0].present)
        return AGX_STR("");
    return f[0].value.bytes;
}

static bool is_terminal(enum agx_remote_event ev)
{
    return ev == AGX_EV_UNARY_RESULT || ev == AGX_EV_UNARY_ERROR || ev == AGX_EV_STREAM_END ||
           ev == AGX_EV_STREAM_ERROR || ev == AGX_EV_BIDI_END || ev == AGX_EV_BIDI_ERROR;
}

static void check_event(struct client *c, enum agx_remote_event ev, struct agx_str payload)
{
    struct agx_mp_field f[N_FIELDS];
    struct known *k;

    if (ev == AGX_EV_RESUME_DONE)
        return;
    read_event(payload, f);
    FUZZ_CHECK(f[CALL_ID].present && f[CALL_ID].value.bytes.len == 1);
    k = &c->ids[f[CALL_ID].value.bytes.ptr[0] - 'a'];
    if (ev == AGX_EV_CREDIT) {
        FUZZ_CHECK(k->open);
        return;
    }
    if (is_terminal(ev)) {
        FUZZ_CHECK(++k->answered <= k->asked); /* (1) */
        if (is_refusal(error_type(&f[ERROR])) && !f[SEQ].present && c->session[0]) {
            k->refused = true;
            return;
        }
    }
    if (c->session[0]) {
        FUZZ_CHECK(f[SEQ].present);
        FUZZ_CHECK(k->jumps || f[SEQ].value.u == k->seq + 1); /* (2) */
        k->jumps = false;
        k->seq = f[SEQ].value.u;
        FUZZ_CHECK(k->open); /* (1) */
        k->open = !is_terminal(ev);
    } else if (!is_terminal(ev)) {
        FUZZ_CHECK(k->asked > k->answered); /* (1) */
    }
}

static void on_emit(void *user, void *conn, enum agx_remote_event ev, const struct agx_str *parts,
                    size_t n)
{
    _cleanup_buf_ struct agx_buf payload = AGX_BUF_INIT(1 << 20);
    struct world *w = user;
    struct client *c = conn;

    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(agx_buf_append(&payload, parts[i]) == 0);
    FUZZ_CHECK(c->connected);
    if (c != &w->clients[WILD])
        check_event(c, ev, agx_buf_peek(&payload));
}

static size_t on_queued(void *user, void *conn)
{
    (void)conn;
    return ((struct world *)user)->queued;
}

static struct agx_buf *on_lane(void *user, enum agx_remote_lane lane)
{
    return &((struct world *)user)->lanes[lane];
}

static const struct agx_router_io io = { on_emit, on_queued, on_lane };

/* -------- clients -------- */

static void connect_client(struct world *w, size_t i)
{
    struct client *c = &w->clients[i];
    struct agx_client_hello hello = { .proto1 = i >= 2, .session = agx_str_from(c->session) };
    void *old = NULL;
    bool resumed = false;

    if (c->connected)
        return;
    c->connected = true;
    c->c = agx_router_connect(w->rt, &hello, c, &resumed, &old);
    FUZZ_CHECK(!old);
    c->holding = resumed;
    if (resumed)
        return;
    memset(c->ids, 0, sizeof(c->ids));
    c->session[0] = '\0';
    if (i >= 2)
        (void)snprintf(c->session, sizeof(c->session), "%s", agx_client_peek_session(c->c));
}

static void part(struct world *w, size_t i, bool leave)
{
    struct client *c = &w->clients[i];

    if (!c->connected)
        return;
    if (leave)
        agx_router_leave(w->rt, c->c);
    else
        agx_router_disconnect(w->rt, c->c, w->now_ms);
    c->connected = false;
    c->c = NULL;
    if (leave)
        c->session[0] = '\0';
}

static void emit(struct world *w, struct client *c, const char *event, struct agx_buf *payload)
{
    agx_router_event(w->rt, c->c, agx_str_from(event), agx_buf_peek(payload), w->now_ms);
}

static void request(struct world *w, size_t i)
{
    static const char *const events[] = { "unary", "stream", "bidi:start" };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct client *c = &w->clients[i];
    uint8_t what = byte(w), id = byte(w) % IDS;
    struct known *k = &c->ids[id];
    struct agx_mp_writer m;
    char name[2] = { (char)('a' + id), 0 };
    bool begins = c->session[0] && !k->open;
    uint64_t seq = k->seq;

    if (!c->connected)
        return;
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 2 + (what >= 128));
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(name));
    agx_mp_write_str(&m, AGX_STR("target"));
    agx_mp_write_str(&m, what & 16 ? AGX_STR("") : AGX_STR("m::f"));
    if (what >= 128) {
        agx_mp_write_str(&m, AGX_STR("timeout_ms"));
        agx_mp_write_uint(&m, byte(w));
    }
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    k->asked++;
    w->n_requests++;
    k->refused = false;
    if (begins) {
        k->open = true;
        k->seq = 0;
    }
    emit(w, c, events[what % 3], &b);
    if (begins && k->refused) {
        k->open = false;
        k->seq = seq;
    }
}

static void message(struct world *w, size_t i)
{
    static const char *const events[] = { "bidi:in", "bidi:end_in", "cancel", "credit" };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct client *c = &w->clients[i];
    const char *event = events[byte(w) % 4];
    char name[2] = { (char)('a' + byte(w) % IDS), 0 };
    struct agx_mp_writer m;

    if (!c->connected)
        return;
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 5);
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(name));
    agx_mp_write_str(&m, AGX_STR("item"));
    agx_mp_write_nil(&m);
    agx_mp_write_str(&m, AGX_STR("seq"));
    agx_mp_write_uint(&m, byte(w));
    agx_mp_write_str(&m, AGX_STR("n"));
    agx_mp_write_uint(&m, byte(w));
    agx_mp_write_str(&m, AGX_STR("bytes"));
    agx_mp_write_uint(&m, (uint64_t)byte(w) << 8);
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    emit(w, c, event, &b);
}

/* Acknowledges, or names in a resume, what the client has seen; some of it, as the input says. */
static void settle(struct world *w, size_t i, bool resume)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct client *c = &w->clients[i];
    uint8_t which = byte(w);
    struct agx_mp_writer m;
    size_t n = 0;

    if (!c->connected || !c->session[0])
        return;
    if (resume && c->holding) {
        for (size_t id = 0; id < IDS; id++) {
            c->ids[id].open = c->ids[id].open && (which >> id & 1);
            c->ids[id].jumps = true;
        }
        c->holding = false;
    }
    for (size_t id = 0; id < IDS; id++)
        n += which >> id & 1;
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1);
    agx_mp_write_str(&m, AGX_STR("calls"));
    agx_mp_write_array(&m, resume ? n : 2 * n);
    for (size_t id = 0; id < IDS; id++) {
        char name[2] = { (char)('a' + id), 0 };

        if (!(which >> id & 1))
            continue;
        if (resume)
            agx_mp_write_array(&m, 4);
        agx_mp_write_str(&m, agx_str_from(name));
        agx_mp_write_uint(&m, c->ids[id].seq);
        if (resume) {
            agx_mp_write_uint(&m, 64);
            agx_mp_write_uint(&m, 49152);
        }
    }
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    emit(w, c, resume ? "resume" : "ack", &b);
}

static void wild(struct world *w)
{
    struct client *c = &w->clients[WILD];
    enum agx_remote_event ev = (enum agx_remote_event)(byte(w) % AGX_EV_COUNT);
    struct agx_str payload = bytes(w);

    if (!c->connected)
        return;
    w->n_requests++;
    agx_router_event(w->rt, c->c, agx_remote_event_name(ev), payload, w->now_ms);
}

/* -------- the worker -------- */

static void lanes_clear(struct world *w)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_clear(&w->lanes[i]);
}

static void worker_gone(struct world *w)
{
    lanes_clear(w);
    agx_router_worker_gone(w->rt, AGX_STR("WorkerExited"), "gone", -9);
    FUZZ_CHECK(agx_router_running(w->rt) == 0);
    for (size_t i = 0; i < 2; i++) { /* (4) */
        for (size_t id = 0; id < IDS && w->clients[i].connected; id++)
            FUZZ_CHECK(w->clients[i].ids[id].asked == w->clients[i].ids[id].answered);
    }
}

static void frame(struct world *w, struct agx_str f)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    if (agx_router_frame(w->rt, f, &err) < 0) {
        FUZZ_CHECK(err && err->message[0]);
        worker_gone(w); /* who breaks the protocol is killed */
    }
}

static void frame_of_bytes(struct world *w)
{
    frame(w, bytes(w));
}

static void frame_of_call(struct world *w)
{
    static const char *const types[] = { "result",     "error",  "stream_item",
                                         "stream_end", "credit", "lane" };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    const char *type = types[byte(w) % 6];
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 8);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, agx_str_from(type));
    agx_mp_write_str(&m, AGX_STR("id"));
    agx_mp_write_uint(&m, 1 + byte(w) % (w->n_requests + 1));
    agx_mp_write_str(&m, AGX_STR("value"));
    agx_mp_write_uint(&m, byte(w));
    agx_mp_write_str(&m, AGX_STR("error"));
    agx_mp_write_map(&m, 0);
    agx_mp_write_str(&m, AGX_STR("n"));
    agx_mp_write_uint(&m, byte(w));
    agx_mp_write_str(&m, AGX_STR("bytes"));
    agx_mp_write_uint(&m, 1000);
    agx_mp_write_str(&m, AGX_STR("callable"));
    agx_mp_write_str(&m, AGX_STR("m::f"));
    agx_mp_write_str(&m, AGX_STR("lane"));
    agx_mp_write_uint(&m, byte(w) % 3);
    FUZZ_CHECK(agx_mp_writer_end(&m, NULL) == 0);
    frame(w, agx_buf_peek(&b));
}

/* -------- the history -------- */

static void step(struct world *w, uint8_t op)
{
    size_t i = byte(w) % WILD;

    switch (op % 14) {
    case 0:
        connect_client(w, byte(w) % CLIENTS);
        break;
    case 1:
        part(w, i, false);
        break;
    case 2:
        part(w, i, true);
        break;
    case 3:
    case 4:
        request(w, i);
        break;
    case 5:
        message(w, i);
        break;
    case 6:
        settle(w, i, false);
        break;
    case 7:
        settle(w, i, true);
        break;
    case 8:
    case 9:
        frame_of_call(w);
        break;
    case 10:
        if (op & 128)
            frame_of_bytes(w);
        else
            wild(w);
        break;
    case 11:
        w->now_ms += (uint64_t)byte(w) * 100;
        (void)agx_router_tick(w->rt, w->now_ms);
        break;
    case 12:
        w->queued = byte(w) & 1 ? (size_t)1 << 30 : 0;
        if (w->queued == 0 && w->clients[i].connected)
            agx_router_drained(w->rt, w->clients[i].c);
        break;
    default:
        if (op & 128)
            worker_gone(w);
        else
            lanes_clear(w);
        break;
    }
    FUZZ_CHECK(agx_router_running(w->rt) <= w->n_requests); /* (3) */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    struct world w = { .at = data,
                       .end = data + size,
                       .lanes = { AGX_BUF_INIT(LANE_MAX), AGX_BUF_INIT(LANE_MAX) } };

    config.unacked_calls_max = 3;
    config.unacked_bytes_max = 200;
    config.max_calls = 3;
    config.resume_ms = 1000;
    w.rt = agx_router_new(&config, &io, &w);
    for (size_t i = 0; i < CLIENTS; i++)
        connect_client(&w, i);
    while (w.at < w.end)
        step(&w, byte(&w));
    worker_gone(&w);
    agx_router_free(w.rt);
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_done(&w.lanes[i]);
    return 0;
}

/*
 * eio_server.c: Engine.IO requests. The bodies of its errors are the same as those of the peer's
 * server: JSON strings as text/plain.
 */
#include "runtime/eio_server.h"

#include "base/uuid.h"
#include "codec/eio_payload.h"
#include "codec/json_text.h"
#include "codec/ws_handshake.h"
#include "runtime/eio_internal.h"

#include "base/banned.h"

enum { MESSAGE_TEXT_MAX = 1 << 10 }; /* an error's text, which may quote a client's sid */

int agx_eio_server_open(struct agx_loop *l, const struct agx_eio_server_config *config,
                        const struct agx_eio_server_ops *ops, void *user,
                        struct agx_eio_server **ret_server, struct agx_error **err)
{
    struct agx_eio_server *sv = calloc(1, sizeof(*sv));
    struct agx_siphash_key seed;
    int r;

    if (!sv)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for an Engine.IO server");
    *sv = (struct agx_eio_server){ .loop = l, .config = *config, .ops = ops, .user = user };
    r = agx_random_bytes(&seed, sizeof(seed), err);
    if (r < 0) {
        free(sv);
        return r;
    }
    agx_map_init(&sv->sessions, seed);
    sv->n_alive = 1;
    *ret_server = sv;
    return 0;
}

void agx_eio_server_released(struct agx_eio_server *sv)
{
    if (--sv->n_alive > 0)
        return;
    agx_map_done(&sv->sessions);
    free(sv);
}

struct agx_eio_server *agx_eio_server_close(struct agx_eio_server *sv)
{
    void *s;

    if (!sv)
        return NULL;
    sv->closing = true;
    for (size_t at = 0; agx_map_next(&sv->sessions, &at, NULL, &s); at = 0) {
        if (((struct agx_eio_session *)s)->leaving)
            agx_eio_session_finish(s);
        else
            agx_eio_session_close(s, AGX_WS_RESTART, "the server stops");
    }
    agx_eio_server_released(sv);
    return NULL;
}

void agx_eio_answer(struct agx_exchange *x, unsigned status, struct agx_str type,
                    struct agx_str body)
{
    struct agx_http_header headers[2];
    struct agx_http_response a = { status, type, body, headers, 0 };
    struct agx_str wanted;

    if (agx_str_eq(x->head.method, AGX_STR("OPTIONS")) && x->readable_by.len > 0) {
        headers[a.header_count++] =
            (struct agx_http_header){ AGX_STR("Access-Control-Allow-Methods"),
                                      AGX_STR("OPTIONS, GET, POST") };
        if (agx_http_header_get(&x->head, AGX_STR("access-control-request-headers"), &wanted))
            headers[a.header_count++] =
                (struct agx_http_header){ AGX_STR("Access-Control-Allow-Headers"), wanted };
    }
    agx_exchange_answer(x, &a);
}

/* 400 with the text as a JSON string. */
static void answer_bad(struct agx_exchange *x, struct agx_str text, struct agx_str more)
{
    _cleanup_buf_ struct agx_buf plain = AGX_BUF_INIT(MESSAGE_TEXT_MAX),
                                 json = AGX_BUF_INIT(8 * MESSAGE_TEXT_MAX);

    if (agx_buf_append(&plain, text) < 0 || agx_buf_append(&plain, more) < 0 ||
        agx_json_text_quote(&json, agx_buf_peek(&plain)) < 0)
        agx_eio_answer(x, 400, AGX_STR("text/plain"), AGX_STR("\"Bad Request\""));
    else
        agx_eio_answer(x, 400, AGX_STR("text/plain"), agx_buf_peek(&json));
}

static void answer_bad_request(struct agx_exchange *x)
{
    answer_bad(x, AGX_STR("Bad Request"), AGX_STR(""));
}

static void announce(struct agx_eio_session *s, const struct agx_exchange *x)
{
    s->announced = true;
    s->server->ops->open(s->server->user, s, x);
}

/* A session that begins by polling: its first answer is the open packet. */
static void open_polling(struct agx_eio_session *s, struct agx_exchange *x)
{
    _cleanup_buf_ struct agx_buf body = AGX_BUF_INIT(MESSAGE_TEXT_MAX);

    if (agx_buf_push(&body, '0') < 0 || agx_eio_session_hello(s, true, &body) < 0) {
        agx_eio_session_close(s, AGX_WS_INTERNAL, "no memory");
        agx_exchange_answer_detail(x, 503, "no memory");
        return;
    }
    announce(s, x);
    agx_eio_answer(x, 200, AGX_STR("text/plain; charset=UTF-8"), agx_buf_peek(&body));
}

/* A session that is a WebSocket from the start. */
static void open_websocket(struct agx_eio_session *s, struct agx_exchange *x, struct agx_str key)
{
    _cleanup_buf_ struct agx_buf body = AGX_BUF_INIT(MESSAGE_TEXT_MAX);
    struct agx_eio_packet hello = { AGX_EIO_OPEN, false, { 0 } };

    announce(s, x);
    if (s->ended) {
        agx_exchange_answer_detail(x, 503, "the session was refused");
        return;
    }
    s->link = agx_eio_link_new(s, x, key, LINK_ACTIVE);
    if (!s->link)
        agx_exchange_answer_detail(x, 503, "no memory");
    hello.data = agx_eio_session_hello(s, false, &body) < 0 ? AGX_STR("") : agx_buf_peek(&body);
    if (!s->link || hello.data.len == 0 || agx_eio_link_send(s->link, &hello, NULL, 0) < 0)
        agx_eio_session_close(s, AGX_WS_INTERNAL, "no memory");
    else
        agx_eio_session_upgraded(s); /* sends what open() queued */
}

static void handle_connect(struct agx_eio_server *sv, struct agx_exchange *x, bool websocket)
{
    struct agx_eio_session *s = NULL;
    struct agx_str key = { 0 };

    if (websocket && !agx_ws_is_upgrade(&x->head, &key)) {
        answer_bad(x, AGX_STR("Invalid websocket upgrade"), AGX_STR(""));
        return;
    }
    if (sv->closing || sv->sessions.len >= sv->config.sessions_max ||
        agx_eio_session_new(sv, &s, NULL) < 0) {
        agx_exchange_answer_detail(x, 503, "there are too many sessions");
        return;
    }
    if (websocket)
        open_websocket(s, x, key);
    else
        open_polling(s, x);
}

static void handle_get(struct agx_eio_session *s, struct agx_exchange *x, bool websocket)
{
    struct agx_str key;

    if (agx_eio_session_on_websocket(s)) {
        answer_bad(x, AGX_STR("Unexpected HTTP request"), AGX_STR(""));
    } else if (agx_ws_is_upgrade(&x->head, &key)) {
        if (s->link) /* a second attempt: for the client the first has failed */
            agx_eio_link_close(s->link, AGX_WS_NORMAL, "another upgrade began");
        s->link = agx_eio_link_new(s, x, key, LINK_PROBE);
        if (!s->link)
            agx_exchange_answer_detail(x, 503, "no memory");
    } else if (websocket) {
        answer_bad(x, AGX_STR("Invalid transport"), AGX_STR(""));
    } else {
        agx_eio_session_set_get(s, x);
    }
}

/* False when the body is malformed. */
static bool receive_body(struct agx_eio_session *s, struct agx_str body)
{
    /* The limit in packets is for what the client receives; what it sends is limited in bytes. */
    struct agx_eio_limits limits = { SIZE_MAX, s->server->config.message_max };
    struct agx_eio_reader rd;
    struct agx_eio_packet p;
    int r = agx_eio_reader_init(&rd, body, &limits, NULL);

    while (r == 0 && (r = agx_eio_reader_next(&rd, &p, NULL)) > 0) {
        agx_eio_session_receive(s, &p);
        r = 0;
    }
    agx_eio_reader_done(&rd);
    return r == 0;
}

static void handle_post(struct agx_eio_session *s, struct agx_exchange *x)
{
    if (agx_eio_session_on_websocket(s)) {
        answer_bad(x, AGX_STR("Unexpected HTTP request"), AGX_STR(""));
    } else if (!receive_body(s, x->body)) {
        agx_eio_session_close(s, AGX_WS_PROTOCOL_ERROR, "a malformed polling request");
        answer_bad_request(x);
    } else if (s->paused && !s->ended && !s->post) {
        x->user = s;
        s->post = x; /* the client sends more after the answer */
    } else {
        agx_eio_answer(x, 200, AGX_STR("text/plain"), AGX_STR("OK"));
    }
}

struct agx_eio_session *agx_eio_server_find(const struct agx_eio_server *sv,
                                            const struct agx_http_head *head)
{
    struct agx_str sid;

    return agx_http_query_get(head->query, AGX_STR("sid"), &sid) ? agx_map_get(&sv->sessions, sid)
                                                                 : NULL;
}

void agx_eio_server_request(struct agx_eio_server *sv, struct agx_exchange *x)
{
    struct agx_str query = x->head.query, method = x->head.method, transport, sid, eio;
    bool has_sid = agx_http_query_get(query, AGX_STR("sid"), &sid), websocket;
    struct agx_eio_session *s = has_sid ? agx_map_get(&sv->sessions, sid) : NULL;

    if (!agx_http_query_get(query, AGX_STR("transport"), &transport))
        transport = AGX_STR("polling");
    websocket = agx_str_eq(transport, AGX_STR("websocket"));
    (void)agx_http_query_get(query, AGX_STR("EIO"), &eio);
    if (agx_str_eq(method, AGX_STR("OPTIONS"))) {
        agx_eio_answer(x, 200, AGX_STR("text/plain"), AGX_STR("OK"));
    } else if (!websocket && !agx_str_eq(transport, AGX_STR("polling"))) {
        answer_bad(x, AGX_STR("Invalid transport"), AGX_STR(""));
    } else if (!has_sid && !agx_str_eq(eio, AGX_STR("4"))) {
        answer_bad(x, AGX_STR("The client is using an unsupported version of the Socket.IO "),
                   AGX_STR("or Engine.IO protocols"));
    } else if (agx_str_eq(method, AGX_STR("GET")) && !has_sid) {
        handle_connect(sv, x, websocket);
    } else if (!agx_str_eq(method, AGX_STR("GET")) && !agx_str_eq(method, AGX_STR("POST"))) {
        agx_eio_answer(x, 405, AGX_STR("text/plain"), AGX_STR("Method Not Found"));
    } else if (!s) {
        answer_bad(x, AGX_STR("Invalid session "), has_sid ? sid : AGX_STR("None"));
    } else if (s->leaving && agx_str_eq(method, AGX_STR("GET")) && !websocket) {
        agx_eio_session_last_words(s, x);
    } else if (s->leaving) {
        answer_bad(x, AGX_STR("Invalid session "), sid);
    } else if (agx_str_eq(method, AGX_STR("GET"))) {
        handle_get(s, x, websocket);
    } else {
        handle_post(s, x);
    }
}

void agx_eio_server_oversize(struct agx_eio_server *sv, struct agx_exchange *x)
{
    struct agx_eio_session *s = agx_eio_server_find(sv, &x->head);

    if (s)
        agx_eio_session_close(s, AGX_WS_TOO_BIG, "a polling request is too long");
    answer_bad_request(x);
}

void agx_eio_server_gone(struct agx_eio_server *sv, struct agx_exchange *x)
{
    struct agx_eio_session *s = x->user;

    (void)sv;
    if (!s)
        return;
    if (s->get == x)
        s->get = NULL;
    if (s->post == x)
        s->post = NULL;
}

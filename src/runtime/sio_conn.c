/* sio_conn.c: one Engine.IO session as Socket.IO: namespaces `/` and `/log`. server_internal.h has
 * the access rules. */
#include "runtime/server_internal.h"

#include "base/banned.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/sio.h"
#include "codec/ws.h"

#include <stdio.h>

struct agx_sio_conn *agx_sio_conn_new(struct agx_server *s, struct agx_eio_session *session,
                                      bool proven, uint64_t net)
{
    struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
    struct agx_sio_conn *p = agx_new(struct agx_sio_conn);

    limits.bytes_max = s->config->max_message;
    p->server = s;
    p->session = session;
    p->proven = proven;
    p->net = net;
    agx_sio_assembler_init(&p->assembler, &limits);
    agx_list_push_front(&s->peers, &p->node);
    if (!proven) {
        p->prove_by_ms = agx_server_now(s) + AGX_PROVE_MS;
        agx_eio_session_limit(session, AGX_UNPROVEN_BYTES);
        s->n_unproven++;
        agx_server_plan_tick(s);
    }
    return p;
}

void agx_sio_conn_gone(struct agx_sio_conn *p)
{
    struct agx_server *s = p->server;

    if (p->client)
        agx_router_disconnect(s->router, p->client, agx_server_now(s));
    if (!p->proven)
        s->n_unproven--;
    agx_list_remove(&p->node);
    agx_sio_assembler_done(&p->assembler);
    free(p);
    agx_server_conn_gone(s);
}

void agx_sio_conn_close(struct agx_sio_conn *p, unsigned code, const char *reason)
{
    if (p->closing)
        return;
    p->closing = true;
    agx_eio_session_close(p->session, code, reason);
}

/* A peer that reads nothing while its queue is full is disconnected: its session can be resumed.
 */
static void send_text(struct agx_sio_conn *p, struct agx_str text, const struct agx_str *parts,
                      size_t n_parts)
{
    if (!p->closing && agx_eio_session_send(p->session, text, parts, n_parts) < 0)
        agx_sio_conn_close(p, AGX_WS_POLICY, "too much is waiting to be sent");
}

void agx_sio_conn_emit(struct agx_sio_conn *p, enum agx_remote_event ev,
                       const struct agx_str *parts, size_t n_parts)
{
    send_text(p, agx_buf_peek(&p->server->headers[ev]), parts, n_parts);
}

static void send_packet(struct agx_sio_conn *p, const struct agx_sio_packet *packet)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_SIO_HEADER_MAX);

    if (agx_sio_encode(&text, packet) == 0)
        send_text(p, agx_buf_peek(&text), NULL, 0);
}

/* {"sid": ...} and, for protocol 1, what the server offers. */
static void send_connected(struct agx_sio_conn *p, struct agx_str nsp, bool resumed)
{
    const struct agx_server_config *config = p->server->config;
    const char *session = p->client ? agx_client_peek_session(p->client) : NULL;
    const char *sid = agx_eio_session_peek_sid(p->session);
    struct agx_sio_packet packet = { .type = AGX_SIO_CONNECT, .nsp = nsp };
    char json[512];

    if (agx_str_eq(nsp, AGX_STR("/")) && session)
        (void)snprintf(json, sizeof(json),
                       "{\"sid\":\"%s\",\"agentix\":{\"proto\":1,\"session\":\"%s\",\"resumed\":%s,"
                       "\"resume_ms\":%llu,\"max_message\":%zu}}",
                       sid, session, resumed ? "true" : "false",
                       (unsigned long long)config->resume_ms, config->max_message);
    else
        (void)snprintf(json, sizeof(json), "{\"sid\":\"%s\"}", sid);
    packet.data = agx_str_from(json);
    send_packet(p, &packet);
}

static void refuse_connect(struct agx_sio_conn *p, struct agx_str nsp, struct agx_str json)
{
    struct agx_sio_packet packet = { .type = AGX_SIO_CONNECT_ERROR, .nsp = nsp, .data = json };

    send_packet(p, &packet);
}

/* Reads the auth map of a CONNECT. Borrows from `auth`. */
static void read_hello(const json_t *auth, struct agx_client_hello *ret, struct agx_str *ret_token)
{
    json_t *ours = NULL;
    int64_t n = 0;

    *ret = (struct agx_client_hello){ 0 };
    *ret_token = AGX_STR("");
    if (!auth)
        return;
    (void)!agx_json_get_str(auth, "token", ret_token, NULL);
    if (agx_json_get_object(auth, "agentix", &ours, NULL) < 0)
        return;
    (void)!agx_json_get_str(ours, "token", ret_token, NULL);
    (void)!agx_json_get_str(ours, "session", &ret->session, NULL);
    ret->proto1 = agx_json_get_int(ours, "proto", 1, INT64_MAX, &n, NULL) == 0;
    if (agx_json_get_int(ours, "max_message", 1, INT64_MAX, &n, NULL) == 0)
        ret->max_message = (size_t)n;
}

/* True if the peer may continue; otherwise it got an error and is closed. */
static bool prove(struct agx_sio_conn *p, struct agx_str nsp, struct agx_str token)
{
    if (p->proven)
        return true;
    if (agx_server_is_token(p->server, token)) {
        p->proven = true;
        p->server->n_unproven--;
        agx_eio_session_limit(p->session, p->server->config->max_message);
        return true;
    }
    AGX_LOG(AGX_LOG_WARN, "client.refused", AGX_F_STR("why", "missing or wrong token"));
    refuse_connect(p, nsp, AGX_STR("{\"message\":\"missing or wrong token\"}"));
    agx_sio_conn_close(p, AGX_WS_POLICY, "missing or wrong token");
    return false;
}

static void sio_conn_join(struct agx_sio_conn *p, const struct agx_client_hello *hello)
{
    struct agx_server *s = p->server;
    void *old = NULL;
    bool resumed;

    p->client = agx_router_connect(s->router, hello, p, &resumed, &old);
    if (old) {
        struct agx_sio_conn *left = old;

        left->client = NULL;
        agx_sio_conn_close(left, AGX_WS_NORMAL, "its session went on elsewhere");
    }
    send_connected(p, AGX_STR("/"), resumed);
}

static void on_connect(struct agx_sio_conn *p, const struct agx_sio_packet *packet)
{
    _cleanup_json_ json_t *auth = NULL;
    struct agx_client_hello hello;
    struct agx_str token;

    if (packet->data.len > 0 &&
        agx_json_parse(packet->data, AGX_SIO_HEADER_MAX, AGX_DEPTH_MAX, &auth, NULL) < 0) {
        refuse_connect(p, packet->nsp, AGX_STR("{\"message\":\"auth is no JSON object\"}"));
        return;
    }
    read_hello(auth, &hello, &token);
    if (!prove(p, packet->nsp, token))
        return;
    if (agx_str_eq(packet->nsp, AGX_STR("/"))) {
        if (!p->client)
            sio_conn_join(p, &hello);
    } else if (agx_str_eq(packet->nsp, AGX_STR("/log"))) {
        int64_t since = 1;

        if (auth)
            (void)!agx_json_get_int(auth, "since", 1, INT64_MAX, &since, NULL);
        p->in_log = true;
        p->log_next = (uint64_t)since;
        send_connected(p, packet->nsp, false);
        agx_sio_conn_pump_log(p);
    } else {
        refuse_connect(p, packet->nsp, AGX_STR("\"Unable to connect\""));
    }
}

static void on_disconnect(struct agx_sio_conn *p, struct agx_str nsp)
{
    if (agx_str_eq(nsp, AGX_STR("/log")))
        p->in_log = false;
    if (!agx_str_eq(nsp, AGX_STR("/")) || !p->client)
        return;
    /* A goodbye, not a lost connection: the client will not come back for the answers. */
    agx_router_leave(p->server->router, AGX_TAKE_PTR(p->client));
}

static void on_event(struct agx_sio_conn *p, const struct agx_sio_message *m)
{
    struct agx_server *s = p->server;

    if (!p->client || !agx_str_eq(m->packet.nsp, AGX_STR("/")))
        return;
    /* Without exactly one attachment, the router answers as for a request without call_id. */
    agx_router_event(s->router, p->client, m->name, m->sole ? m->sole->bytes : AGX_STR("\x80"),
                     agx_server_now(s));
    if (m->packet.has_id) {
        struct agx_sio_packet ack = { .type = AGX_SIO_ACK,
                                      .has_id = true,
                                      .id = m->packet.id,
                                      .nsp = m->packet.nsp,
                                      .data = AGX_STR("[]") };

        send_packet(p, &ack);
    }
    agx_server_plan_tick(s);
    if (!p->paused && agx_worker_queued(s->worker) > AGX_LANE_HIGH) {
        p->paused = true;
        agx_eio_session_pause(p->session);
    }
}

void agx_sio_conn_message(struct agx_sio_conn *p, const struct agx_eio_packet *packet)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_sio_message m;
    int r;

    if (p->closing)
        return;
    r = agx_sio_assembler_feed(&p->assembler, packet, &m, &err);
    if (r < 0) {
        AGX_LOG(AGX_LOG_WARN, "client.broken", AGX_F_ERR(err));
        agx_sio_conn_close(p, AGX_WS_PROTOCOL_ERROR, "malformed Socket.IO packet");
        return;
    }
    if (r == 0)
        return;
    if (!p->proven && m.packet.type != AGX_SIO_CONNECT) {
        agx_sio_conn_close(p, AGX_WS_POLICY, "a packet before CONNECT");
        return;
    }
    if (agx_sio_is_event(m.packet.type))
        on_event(p, &m);
    else if (m.packet.type == AGX_SIO_CONNECT)
        on_connect(p, &m.packet);
    else if (m.packet.type == AGX_SIO_DISCONNECT)
        on_disconnect(p, m.packet.nsp);
}

void agx_sio_conn_drained(struct agx_sio_conn *p)
{
    if (p->client)
        agx_router_drained(p->server->router, p->client);
    agx_sio_conn_pump_log(p);
}

/* 42/log,["record",{"seq","time","stream","text"[,"lost"]}] */
static void send_record(struct agx_sio_conn *p, const struct agx_wlog_record *rec)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_SIO_HEADER_MAX);
    struct agx_sio_packet packet = { .type = AGX_SIO_EVENT, .nsp = AGX_STR("/log") };
    _cleanup_json_ json_t *event = json_array();
    json_t *body = json_object();

    (void)json_array_append_new(event, json_string("record"));
    (void)json_array_append_new(event, body);
    (void)json_object_set_new(body, "seq", json_integer((json_int_t)rec->seq));
    (void)json_object_set_new(body, "time", json_integer((json_int_t)rec->time_ms));
    (void)json_object_set_new(body, "stream",
                              json_string(rec->stream == AGX_WLOG_STDOUT ? "stdout" : "stderr"));
    (void)json_object_set_new(body, "text", json_stringn(rec->text.ptr, rec->text.len));
    if (rec->lost > 0)
        (void)json_object_set_new(body, "lost", json_integer((json_int_t)rec->lost));
    if (agx_json_write(event, &text, NULL) < 0)
        return;
    packet.data = agx_buf_peek(&text);
    send_packet(p, &packet);
}

void agx_sio_conn_pump_log(struct agx_sio_conn *p)
{
    struct agx_wlog_record rec;

    if (!p->in_log || p->closing)
        return;
    while (agx_eio_session_queued(p->session) < AGX_QUEUE_HIGH &&
           agx_wlog_read(p->server->wlog, &p->log_next, &rec)) {
        send_record(p, &rec);
    }
}

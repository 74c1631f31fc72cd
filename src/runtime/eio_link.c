/* eio_link.c: a WebSocket that carries an Engine.IO session, or will after an upgrade. */
#include "runtime/eio_internal.h"

#include "codec/ws_handshake.h"

#include "base/banned.h"

static void lose_session(struct eio_link *l)
{
    if (l->session)
        l->session->link = NULL;
    l->session = NULL;
    l->state = LINK_ENDED;
}

void agx_eio_link_close(struct eio_link *l, unsigned code, const char *reason)
{
    if (l->state == LINK_ENDED)
        return;
    lose_session(l);
    if (agx_ws_append_close(agx_conn_out(l->conn), code, agx_str_from(reason), NULL) < 0)
        agx_conn_abort(l->conn, NULL);
    else
        agx_conn_close(l->conn);
}

/* Ends the link; an active link ends its session too. */
static void eio_link_end(struct eio_link *l, unsigned code, const char *reason)
{
    struct agx_eio_session *s = l->state == LINK_ACTIVE ? l->session : NULL;

    if (s)
        agx_eio_session_close(s, code, reason);
    else
        agx_eio_link_close(l, code, reason);
}

static int append_packet(struct agx_buf *out, const struct agx_eio_packet *p)
{
    uint8_t digit = (uint8_t)('0' + p->type);
    int r = agx_buf_reserve(out, AGX_WS_HEADER_MAX + 1 + p->data.len);

    if (r < 0)
        return r;
    out->len += agx_ws_header(out->data + out->len, AGX_WS_TEXT, p->data.len + 1, NULL);
    out->data[out->len++] = digit;
    return agx_buf_append(out, p->data);
}

static int append_parts(struct agx_buf *out, const struct agx_str *parts, size_t n_parts,
                        size_t total)
{
    int r = 0;

    out->len += agx_ws_header(out->data + out->len, AGX_WS_BINARY, total, NULL);
    for (size_t i = 0; i < n_parts && r == 0; i++)
        r = agx_buf_append(out, parts[i]);
    return r;
}

int agx_eio_link_send(struct eio_link *l, const struct agx_eio_packet *packet,
                      const struct agx_str *parts, size_t n_parts)
{
    struct agx_buf *out = agx_conn_out(l->conn);
    size_t total = 0;
    int r;

    for (size_t i = 0; i < n_parts; i++)
        total += parts[i].len;
    /* Reserves all the room first, so that either everything is sent or nothing. */
    r = agx_buf_reserve(out, 2 * AGX_WS_HEADER_MAX + 1 + packet->data.len + total);
    if (r == 0)
        r = append_packet(out, packet);
    if (r == 0 && n_parts > 0)
        r = append_parts(out, parts, n_parts, total);
    return r;
}

static void send_or_end(struct eio_link *l, enum agx_eio_type type, struct agx_str data)
{
    struct agx_eio_packet p = { type, false, data };

    if (agx_eio_link_send(l, &p, NULL, 0) < 0)
        eio_link_end(l, AGX_WS_INTERNAL, "no memory");
}

/* The two packets that probe the WebSocket. After anything else, polling continues without it. */
static void on_upgrade_packet(struct eio_link *l, const struct agx_eio_packet *p)
{
    struct agx_eio_session *s = l->session;

    if (l->state == LINK_PROBE && agx_eio_is_probe(p, AGX_EIO_PING)) {
        l->state = LINK_UPGRADE;
        send_or_end(l, AGX_EIO_PONG, AGX_EIO_PROBE);
        if (s->get)
            agx_eio_session_set_get(s, NULL); /* a waiting GET would delay the client */
    } else if (l->state == LINK_UPGRADE && p->type == AGX_EIO_UPGRADE) {
        l->state = LINK_ACTIVE;
        agx_conn_deadline(l->conn, 0);
        agx_eio_session_upgraded(s);
    } else {
        eio_link_end(l, AGX_WS_PROTOCOL_ERROR, "not an upgrade");
    }
}

static void on_message(struct eio_link *l, const struct agx_ws_event *e)
{
    struct agx_eio_packet p = agx_eio_decode_binary(e->data);

    if (e->kind == AGX_WS_TEXT && agx_eio_decode_text(e->data, &p, NULL) < 0)
        eio_link_end(l, AGX_WS_PROTOCOL_ERROR, "not an Engine.IO packet");
    else if (l->state == LINK_ACTIVE)
        agx_eio_session_receive(l->session, &p);
    else
        on_upgrade_packet(l, &p);
}

static void on_event(struct eio_link *l, const struct agx_ws_event *e)
{
    switch (e->kind) {
    case AGX_WS_TEXT:
    case AGX_WS_BINARY:
        on_message(l, e);
        break;
    case AGX_WS_PING:
        if (agx_ws_append(agx_conn_out(l->conn), AGX_WS_PONG, e->data, NULL) < 0)
            eio_link_end(l, AGX_WS_INTERNAL, "no memory");
        break;
    case AGX_WS_PONG:
        break;
    case AGX_WS_CLOSE:
        eio_link_end(l, e->code, "the client closed");
        break;
    }
}

/* The reader's buffer for its next large message counts against the server's limit; past the limit
 * it is freed. The buffer of a message being received does not count. */
static void count_kept(struct eio_link *l)
{
    struct agx_eio_server *sv = l->server;
    size_t kept = l->ws.message ? 0 : l->ws.body.cap;

    sv->kept -= l->kept;
    if (kept > sv->config.kept_max - sv->kept) {
        agx_buf_done(&l->ws.body);
        kept = 0;
    }
    l->kept = kept;
    sv->kept += kept;
}

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct eio_link *l = user;
    struct agx_ws_event e;
    uint8_t *p = data;
    size_t n = len;
    int r = 0;

    if (l->session)
        l->session->heard = true;
    while (l->state != LINK_ENDED && !l->paused && (r = agx_ws_read(&l->ws, &p, &n, &e, NULL)) > 0)
        on_event(l, &e);
    if (r < 0)
        eio_link_end(l, l->ws.fault,
                     l->ws.fault == AGX_WS_TOO_BIG ? "a message is too long"
                                                   : "a malformed message");
    count_kept(l);
    return l->state == LINK_ENDED ? len : len - n;
}

static void on_want(void *user, uint8_t **ret_room, size_t *ret_len)
{
    struct eio_link *l = user;

    agx_ws_want(&l->ws, ret_room, ret_len);
}

static void on_filled(void *user, size_t n)
{
    struct eio_link *l = user;

    agx_ws_filled(&l->ws, n);
}

static void on_drained(void *user)
{
    struct eio_link *l = user;

    if (l->state == LINK_ACTIVE)
        agx_eio_session_drained(l->session);
}

/* Only an upgrade has a deadline. */
static void on_expired(void *user)
{
    eio_link_end(user, AGX_WS_PROTOCOL_ERROR, "the upgrade took too long");
}

static void on_closed(void *user, struct agx_error *error)
{
    struct eio_link *l = user;
    struct agx_eio_server *sv = l->server;
    struct agx_eio_session *s = l->state == LINK_ACTIVE ? l->session : NULL;

    agx_error_free(error);
    lose_session(l);
    if (s)
        agx_eio_session_close(s, AGX_WS_GOING_AWAY, "the connection was lost");
    agx_ws_done(&l->ws);
    sv->kept -= l->kept;
    free(l);
    agx_eio_server_released(sv);
}

static const struct agx_conn_ops link_ops = {
    .data = on_data,
    .want = on_want,
    .filled = on_filled,
    .drained = on_drained,
    .expired = on_expired,
    .closed = on_closed,
};

struct eio_link *agx_eio_link_new(struct agx_eio_session *s, struct agx_exchange *x,
                                  struct agx_str key, enum link_state state)
{
    struct eio_link *l = calloc(1, sizeof(*l));
    char key_copy[32];
    size_t key_len = AGX_MIN(key.len, sizeof(key_copy));

    if (!l)
        return NULL;
    memcpy(key_copy, key.ptr, key_len); /* `key` belongs to the exchange */
    l->server = s->server;
    l->session = s;
    l->state = state;
    agx_ws_init(&l->ws, AGX_WS_SERVER, s->server->config.message_max);
    l->ws.max = s->message_max;
    s->server->n_alive++;
    l->conn = agx_exchange_take_conn(x, &link_ops, l);
    if (state != LINK_ACTIVE)
        agx_conn_deadline(l->conn, s->server->config.upgrade_ms);
    if (agx_ws_write_answer(agx_conn_out(l->conn), agx_str_bytes(key_copy, key_len)) < 0)
        agx_conn_abort(l->conn, NULL);
    return l;
}

/*
 * eio_session.c: one Engine.IO session.
 *
 *     polling --(a link is probed, "5")--> WebSocket          both --end--> close() --> freed
 *
 * Invariants:
 *  (1) a unit (text and attachment) is queued whole, and answered or sent whole, in order;
 *  (2) while the link is not active, everything waits in the queue, and a polling client gets it;
 *  (3) an ended session has no exchange and no link, and accepts nothing to send. Its memory is
 *      freed with its last timer, after close(). It is not in the map, unless it is leaving: then a
 *      polling client may fetch its last packets for a short time.
 */
#include "runtime/eio_internal.h"

#include "base/uuid.h"
#include "codec/base64.h"
#include "codec/eio_open.h"
#include "codec/eio_payload.h"

#include "base/banned.h"

static void on_ping_timer(uv_timer_t *t);

static void arm_ping(struct agx_eio_session *s, uint64_t ms)
{
    (void)uv_timer_start(&s->ping, on_ping_timer, ms, 0);
}

/* 15 random bytes, encoded in characters that need no escaping in a URL. */
static int make_sid(char ret_sid[SID_LEN + 1], struct agx_error **err)
{
    uint8_t bytes[15];
    struct agx_buf text = { .data = (uint8_t *)ret_sid, .cap = SID_LEN, .max = SID_LEN };

    int r = agx_random_bytes(bytes, sizeof(bytes), err);

    if (r < 0)
        return r;
    (void)!agx_base64_encode(&text, agx_str_bytes(bytes, sizeof(bytes)), false);
    for (size_t i = 0; i < SID_LEN; i++)
        ret_sid[i] = ret_sid[i] == '+' ? '-' : ret_sid[i] == '/' ? '_' : ret_sid[i];
    ret_sid[SID_LEN] = '\0';
    return 0;
}

int agx_eio_session_new(struct agx_eio_server *sv, struct agx_eio_session **ret_session,
                        struct agx_error **err)
{
    struct agx_eio_session *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a session");
    s->server = sv;
    s->message_max = sv->config.message_max;
    r = make_sid(s->sid, err);
    if (r < 0) {
        free(s);
        return r;
    }
    if (agx_map_put(&sv->sessions, agx_str_from(s->sid), s, NULL) < 0) {
        free(s);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a session");
    }
    (void)uv_timer_init(agx_loop_uv(sv->loop), &s->ping);
    (void)uv_timer_init(agx_loop_uv(sv->loop), &s->answer);
    s->n_open = 2;
    sv->n_alive++;
    s->silent_until_ms = uv_now(agx_loop_uv(sv->loop)) + sv->config.first_ms;
    arm_ping(s, AGX_MIN(sv->config.first_ms, (uint64_t)sv->config.ping_interval_ms));
    *ret_session = s;
    return 0;
}

bool agx_eio_session_on_websocket(const struct agx_eio_session *s)
{
    return s->link && s->link->state == LINK_ACTIVE;
}

int agx_eio_session_hello(const struct agx_eio_session *s, bool upgrade, struct agx_buf *out)
{
    const struct agx_eio_server_config *c = &s->server->config;

    return agx_eio_open_encode(out, &(struct agx_eio_open){ .sid = agx_str_from(s->sid),
                                                            .upgrade_websocket = upgrade,
                                                            .ping_timeout_ms = c->ping_timeout_ms,
                                                            .ping_interval_ms = c->ping_interval_ms,
                                                            .max_payload = c->message_max });
}

/* -------- the queue of a polling client -------- */

/* The first, or NULL. */
static struct eio_unit *unit_first(const struct agx_eio_session *s)
{
    return AGX_LIST_FIRST(&s->units, struct eio_unit, node);
}

static void unit_drop(struct agx_eio_session *s)
{
    struct eio_unit *u = AGX_LIST_TAKE(&s->units, struct eio_unit, node);

    s->queued -= u->bytes;
    free(u);
}

static int unit_push(struct agx_eio_session *s, const struct agx_eio_packet *packet,
                     const struct agx_str *parts, size_t n_parts)
{
    size_t total = packet->data.len, at = packet->data.len;
    struct eio_unit *u;

    for (size_t i = 0; i < n_parts; i++)
        total += parts[i].len;
    if (total + sizeof(*u) > s->server->config.queue_max - s->queued)
        return -AGX_RESOURCE_EXHAUSTED;
    u = malloc(sizeof(*u) + total);
    if (!u)
        return -AGX_RESOURCE_EXHAUSTED;
    *u = (struct eio_unit){ .n = n_parts > 0 ? 2 : 1, .bytes = total + sizeof(*u) };
    if (packet->data.len > 0)
        memcpy(u->data, packet->data.ptr, packet->data.len);
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].len > 0)
            memcpy(u->data + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    u->packets[0] = *packet;
    u->packets[0].data = (struct agx_str){ u->data, packet->data.len };
    u->packets[1] = agx_eio_decode_binary(
        (struct agx_str){ u->data + packet->data.len, total - packet->data.len });
    agx_list_push_back(&s->units, &u->node);
    s->queued += u->bytes;
    s->was_slow |= s->queued > s->server->config.queue_high;
    return 0;
}

static void answer_get(struct agx_eio_session *s, struct agx_str body)
{
    struct agx_exchange *x = AGX_TAKE_PTR(s->get);

    agx_eio_answer(x, 200, AGX_STR("text/plain; charset=UTF-8"), body);
}

/* Sends as many units as fit; after the last ones of an ended session the close packet. */
static void answer_get_from_queue(struct agx_eio_session *s)
{
    static const struct agx_eio_packet close = { AGX_EIO_CLOSE, false, { "", 0 } };
    _cleanup_buf_ struct agx_buf body = AGX_BUF_INIT(2 * s->server->config.queue_max);
    struct agx_eio_limits limits = { AGX_EIO_PAYLOAD_PACKETS_MAX, body.max };
    struct agx_eio_writer w;
    struct eio_unit *u;
    int r = 1;

    agx_eio_writer_init(&w, &body, &limits);
    while ((u = unit_first(s)) && (r = agx_eio_writer_add(&w, u->packets, u->n, NULL)) > 0)
        unit_drop(s);
    if (r < 0 && body.len == 0 && !s->ended) {
        agx_eio_session_close(s, AGX_WS_INTERNAL, "no memory for an answer");
        return;
    }
    while (r < 0 && unit_first(s)) /* its end is all that it can be told */
        unit_drop(s);
    if (s->ended && !unit_first(s))
        (void)!agx_eio_writer_add(&w, &close, 1, NULL); /* where there is room: it is a courtesy */
    answer_get(s, agx_buf_peek(&body));
    if (!unit_first(s))
        agx_eio_session_drained(s);
}

static void on_answer_timer(uv_timer_t *t)
{
    struct agx_eio_session *s = container_of(t, struct agx_eio_session, answer);

    if (s->get && unit_first(s) && !s->ended)
        answer_get_from_queue(s);
}

void agx_eio_session_set_get(struct agx_eio_session *s, struct agx_exchange *x)
{
    if (s->get)
        answer_get(s, AGX_STR("6")); /* a noop: another GET follows, or the upgrade goes on */
    s->get = x;
    if (!x)
        return;
    x->user = s;
    if (s->link && s->link->state == LINK_UPGRADE)
        answer_get(s, AGX_STR("6"));
    else if (unit_first(s))
        answer_get_from_queue(s);
}

void agx_eio_session_upgraded(struct agx_eio_session *s)
{
    struct eio_unit *u;

    agx_eio_session_set_get(s, NULL);
    if (s->paused)
        agx_eio_session_pause(s);
    for (; (u = unit_first(s)) && s->link; unit_drop(s)) {
        if (agx_eio_link_send(s->link, &u->packets[0], &u->packets[1].data, u->n - 1) < 0) {
            agx_eio_session_close(s, AGX_WS_INTERNAL, "no memory for the upgrade");
            return;
        }
    }
}

void agx_eio_session_drained(struct agx_eio_session *s)
{
    /* was_slow belongs to the queue; the link has its own. */
    if (!agx_eio_session_on_websocket(s) && !s->was_slow)
        return;
    s->was_slow = false;
    if (!s->ended && s->announced && s->server->ops->drained)
        s->server->ops->drained(s->server->user, s);
}

/* -------- packets -------- */

static int send_packet(struct agx_eio_session *s, const struct agx_eio_packet *packet,
                       const struct agx_str *parts, size_t n_parts)
{
    int r;

    if (s->ended)
        return -AGX_UNAVAILABLE;
    if (agx_eio_session_on_websocket(s))
        return agx_eio_link_send(s->link, packet, parts, n_parts);
    r = unit_push(s, packet, parts, n_parts);
    if (r == 0 && s->get && !uv_is_active((uv_handle_t *)&s->answer))
        (void)uv_timer_start(&s->answer, on_answer_timer, 0, 0);
    return r;
}

int agx_eio_session_send(struct agx_eio_session *s, struct agx_str text,
                         const struct agx_str *parts, size_t n_parts)
{
    struct agx_eio_packet p = { AGX_EIO_MESSAGE, false, text };

    return send_packet(s, &p, parts, n_parts);
}

size_t agx_eio_session_queued(const struct agx_eio_session *s)
{
    return agx_eio_session_on_websocket(s) ? agx_conn_queued(s->link->conn) : s->queued;
}

/* Ends a session without a first message, since sessions are limited. True: handled. */
static bool end_silent(struct agx_eio_session *s)
{
    if (s->spoke || uv_now(agx_loop_uv(s->server->loop)) < s->silent_until_ms)
        return false;
    if (s->last_look)
        agx_eio_session_close(s, AGX_WS_POLICY, "no message in time");
    else
        arm_ping(s, AGX_EIO_LAST_LOOK_MS);
    s->last_look = true;
    return true;
}

static void on_ping_timer(uv_timer_t *t)
{
    struct agx_eio_session *s = container_of(t, struct agx_eio_session, ping);
    struct agx_eio_packet ping = { AGX_EIO_PING, false, AGX_STR("") };

    if (end_silent(s))
        return;
    if (s->awaiting_pong && (s->paused || s->heard)) {
        s->heard = false;
        arm_ping(s, s->server->config.ping_timeout_ms);
        return;
    }
    if (s->awaiting_pong) {
        agx_eio_session_close(s, AGX_WS_NORMAL, "ping timeout");
        return;
    }
    s->awaiting_pong = true;
    s->heard = false;
    arm_ping(s, s->server->config.ping_timeout_ms);
    if (send_packet(s, &ping, NULL, 0) < 0)
        agx_eio_session_close(s, AGX_WS_INTERNAL, "no memory for a ping");
}

void agx_eio_session_receive(struct agx_eio_session *s, const struct agx_eio_packet *p)
{
    if (s->ended)
        return;
    switch (p->type) {
    case AGX_EIO_PONG:
        s->awaiting_pong = false;
        arm_ping(s, s->server->config.ping_interval_ms);
        break;
    case AGX_EIO_MESSAGE:
        if (!s->spoke && !s->awaiting_pong)
            arm_ping(s, s->server->config.ping_interval_ms);
        s->spoke = true;
        s->server->ops->message(s->server->user, s, p);
        break;
    case AGX_EIO_CLOSE:
        agx_eio_session_close(s, AGX_WS_NORMAL, "the client closed");
        break;
    case AGX_EIO_OPEN:
    case AGX_EIO_PING:
    case AGX_EIO_UPGRADE:
    case AGX_EIO_NOOP:
        break; /* meaningless here; the peer's server ignores them too */
    }
}

void agx_eio_session_pause(struct agx_eio_session *s)
{
    s->paused = true;
    if (s->link) {
        s->link->paused = true;
        agx_conn_pause(s->link->conn);
    }
}

void agx_eio_session_resume(struct agx_eio_session *s)
{
    struct agx_exchange *post = AGX_TAKE_PTR(s->post);

    s->paused = false;
    if (post)
        agx_eio_answer(post, 200, AGX_STR("text/plain"), AGX_STR("OK"));
    if (s->link) {
        s->link->paused = false;
        agx_conn_resume(s->link->conn);
    }
}

/* -------- the end -------- */

static void handle_closed(struct agx_eio_session *s)
{
    struct agx_eio_server *sv = s->server;

    if (--s->n_open > 0)
        return;
    if (s->announced)
        sv->ops->close(sv->user, s, s->reason);
    while (unit_first(s))
        unit_drop(s);
    free(s);
    agx_eio_server_released(sv);
}

static void on_ping_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_eio_session, ping));
}

static void on_answer_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_eio_session, answer));
}

void agx_eio_session_finish(struct agx_eio_session *s)
{
    s->leaving = false;
    (void)agx_map_remove(&s->server->sessions, agx_str_from(s->sid));
    uv_close((uv_handle_t *)&s->ping, on_ping_closed);
    uv_close((uv_handle_t *)&s->answer, on_answer_closed);
}

static void on_last_words_over(uv_timer_t *t)
{
    agx_eio_session_finish(container_of(t, struct agx_eio_session, ping));
}

void agx_eio_session_last_words(struct agx_eio_session *s, struct agx_exchange *x)
{
    s->get = x;
    answer_get_from_queue(s);
    if (!unit_first(s))
        agx_eio_session_finish(s);
}

void agx_eio_session_close(struct agx_eio_session *s, unsigned code, const char *reason)
{
    struct agx_exchange *post = AGX_TAKE_PTR(s->post);

    if (s->ended)
        return;
    s->ended = true;
    s->reason = reason;
    if (s->get && unit_first(s))
        answer_get_from_queue(s);
    else if (s->get)
        answer_get(s, AGX_STR("1"));
    if (post)
        agx_eio_answer(post, 200, AGX_STR("text/plain"), AGX_STR("OK"));
    s->leaving = unit_first(s) && !agx_eio_session_on_websocket(s) && !s->server->closing;
    if (s->link)
        agx_eio_link_close(s->link, code, reason);
    if (s->leaving)
        (void)uv_timer_start(&s->ping, on_last_words_over, AGX_EIO_LAST_WORDS_MS, 0);
    else
        agx_eio_session_finish(s);
}

void agx_eio_session_limit(struct agx_eio_session *s, size_t message_max)
{
    s->message_max = AGX_MIN(message_max, s->server->config.message_max);
    if (s->link)
        s->link->ws.max = s->message_max;
}

const char *agx_eio_session_peek_sid(const struct agx_eio_session *s)
{
    return s->sid;
}

void agx_eio_session_set_user(struct agx_eio_session *s, void *user)
{
    s->user = user;
}

void *agx_eio_session_user(const struct agx_eio_session *s)
{
    return s->user;
}

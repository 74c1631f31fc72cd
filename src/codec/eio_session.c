/*
 * eio_session.c: the life of one Engine.IO session.
 *
 *     OPENING --open by polling--> POLLING --probe--> UPGRADING --upgrade--> WEBSOCKET
 *        |   (client)                 ^                   |                     |
 *        |                            +---- it failed ----+                     |
 *        +--open by WebSocket---------------------------------------------------+
 *     any state --close, silence, a packet that has no place--> CLOSED
 *
 * Heartbeat. A server sends a ping one interval after the last pong (at first: after the open
 * packet) and gives the client one timeout to answer. A client answers pings, and gives up after
 * interval + timeout without any packet. Hence one deadline is enough:
 *
 *     server, awaiting_pong == false    when the next ping is due
 *     server, awaiting_pong == true     when the pong is late
 *     client                            when the silence is too long
 */
#include "codec/eio_session.h"

#include "base/banned.h"

#include <assert.h>

/* The only place that moves the state. */
static void go(struct agx_eio_session *s, enum agx_eio_state next)
{
    s->state = next;
    if (next == AGX_EIO_STATE_CLOSED)
        s->deadline_ms = UINT64_MAX;
}

static struct agx_eio_action act(enum agx_eio_action_kind kind)
{
    return (struct agx_eio_action){ .kind = kind };
}

static struct agx_eio_action act_send(enum agx_eio_action_kind kind, enum agx_eio_transport via,
                                      enum agx_eio_type type, struct agx_str data)
{
    return (struct agx_eio_action){ .kind = kind,
                                    .via = via,
                                    .packet = { .type = type, .data = data } };
}

static int refuse(struct agx_eio_session *s, enum agx_eio_transport via,
                  const struct agx_eio_packet *p, struct agx_error **err)
{
    bool upgrade = s->state == AGX_EIO_STATE_UPGRADING && via == AGX_EIO_WEBSOCKET;

    go(s, upgrade ? AGX_EIO_STATE_POLLING : AGX_EIO_STATE_CLOSED);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "Engine.IO %s packet has no place %s",
                         agx_eio_type_name(p->type), upgrade ? "in an upgrade" : "in this session");
}

void agx_eio_session_init_server(struct agx_eio_session *s, const struct agx_eio_open *terms,
                                 enum agx_eio_transport via, uint64_t now_ms)
{
    *s = (struct agx_eio_session){
        .role = AGX_EIO_SERVER,
        .state = via == AGX_EIO_WEBSOCKET ? AGX_EIO_STATE_WEBSOCKET : AGX_EIO_STATE_POLLING,
        .ping_interval_ms = terms->ping_interval_ms,
        .ping_timeout_ms = terms->ping_timeout_ms,
        .deadline_ms = now_ms + terms->ping_interval_ms,
    };
}

void agx_eio_session_init_client(struct agx_eio_session *s, uint32_t timeout_ms, uint64_t now_ms)
{
    *s = (struct agx_eio_session){
        .role = AGX_EIO_CLIENT,
        .state = AGX_EIO_STATE_OPENING,
        .deadline_ms = now_ms + timeout_ms,
    };
}

/* A packet by the WebSocket that is being tried out (for a server that may be its first). */
static int recv_upgrade(struct agx_eio_session *s, const struct agx_eio_packet *p,
                        struct agx_eio_action *ret, struct agx_error **err)
{
    bool server = s->role == AGX_EIO_SERVER;

    if (server && agx_eio_is_probe(p, AGX_EIO_PING)) {
        go(s, AGX_EIO_STATE_UPGRADING);
        *ret = act_send(AGX_EIO_ACT_PROBED, AGX_EIO_WEBSOCKET, AGX_EIO_PONG, AGX_EIO_PROBE);
    } else if (server && s->state == AGX_EIO_STATE_UPGRADING && p->type == AGX_EIO_UPGRADE) {
        go(s, AGX_EIO_STATE_WEBSOCKET);
        *ret = act(AGX_EIO_ACT_UPGRADED);
    } else if (!server && s->state == AGX_EIO_STATE_UPGRADING &&
               agx_eio_is_probe(p, AGX_EIO_PONG)) {
        go(s, AGX_EIO_STATE_WEBSOCKET);
        *ret = act_send(AGX_EIO_ACT_UPGRADED, AGX_EIO_WEBSOCKET, AGX_EIO_UPGRADE, AGX_STR(""));
    } else {
        if (s->state == AGX_EIO_STATE_POLLING)
            go(s, AGX_EIO_STATE_UPGRADING); /* refused as an upgrade: the session goes on */
        return refuse(s, AGX_EIO_WEBSOCKET, p, err);
    }
    return 0;
}

static int recv_open(struct agx_eio_session *s, enum agx_eio_transport via,
                     const struct agx_eio_packet *p, struct agx_eio_action *ret,
                     struct agx_error **err)
{
    struct agx_eio_action a = act(AGX_EIO_ACT_OPENED);
    int r;

    if (p->type != AGX_EIO_OPEN)
        return refuse(s, via, p, err);
    r = agx_eio_open_decode(p->data, &a.open, err);
    if (r < 0) {
        go(s, AGX_EIO_STATE_CLOSED);
        return r;
    }
    s->ping_interval_ms = a.open.ping_interval_ms;
    s->ping_timeout_ms = a.open.ping_timeout_ms;
    go(s, via == AGX_EIO_WEBSOCKET ? AGX_EIO_STATE_WEBSOCKET : AGX_EIO_STATE_POLLING);
    *ret = a;
    return 0;
}

/* A packet by the transport that carries the session. */
static int recv_packet(struct agx_eio_session *s, enum agx_eio_transport via,
                       const struct agx_eio_packet *p, uint64_t now_ms, struct agx_eio_action *ret,
                       struct agx_error **err)
{
    bool server = s->role == AGX_EIO_SERVER;
    struct agx_eio_action a = act(AGX_EIO_ACT_NONE);

    switch (p->type) {
    case AGX_EIO_MESSAGE:
        a = act(AGX_EIO_ACT_DELIVER);
        break;
    case AGX_EIO_CLOSE:
        go(s, AGX_EIO_STATE_CLOSED);
        a = act(AGX_EIO_ACT_CLOSED);
        break;
    case AGX_EIO_PING: /* a server ignores it: in this version only servers ping */
        if (!server)
            a = act_send(AGX_EIO_ACT_SEND, agx_eio_session_via(s), AGX_EIO_PONG, p->data);
        break;
    case AGX_EIO_PONG:
        if (server) {
            s->awaiting_pong = false;
            s->deadline_ms = now_ms + s->ping_interval_ms;
        }
        break;
    case AGX_EIO_NOOP:
        break;
    case AGX_EIO_OPEN:
    case AGX_EIO_UPGRADE:
        return refuse(s, via, p, err);
    }
    *ret = a;
    return 0;
}

int agx_eio_session_recv(struct agx_eio_session *s, enum agx_eio_transport via,
                         const struct agx_eio_packet *p, uint64_t now_ms,
                         struct agx_eio_action *ret, struct agx_error **err)
{
    int r;

    if (s->state == AGX_EIO_STATE_CLOSED)
        return refuse(s, via, p, err);
    if (s->state == AGX_EIO_STATE_OPENING)
        r = recv_open(s, via, p, ret, err);
    else if (via == AGX_EIO_WEBSOCKET && s->state != AGX_EIO_STATE_WEBSOCKET)
        r = recv_upgrade(s, p, ret, err);
    else /* after an upgrade, what was under way by polling still counts */
        r = recv_packet(s, via, p, now_ms, ret, err);
    if (s->role == AGX_EIO_CLIENT && r == 0 && s->state != AGX_EIO_STATE_CLOSED)
        s->deadline_ms = now_ms + s->ping_interval_ms + s->ping_timeout_ms;
    return r;
}

struct agx_eio_action agx_eio_session_tick(struct agx_eio_session *s, uint64_t now_ms)
{
    if (now_ms < s->deadline_ms || s->state == AGX_EIO_STATE_CLOSED)
        return act(AGX_EIO_ACT_NONE);
    if (s->role == AGX_EIO_CLIENT || s->awaiting_pong) {
        go(s, AGX_EIO_STATE_CLOSED);
        return act(AGX_EIO_ACT_TIMED_OUT);
    }
    s->awaiting_pong = true;
    s->deadline_ms = now_ms + s->ping_timeout_ms;
    return act_send(AGX_EIO_ACT_SEND, agx_eio_session_via(s), AGX_EIO_PING, AGX_STR(""));
}

struct agx_eio_action agx_eio_session_probe(struct agx_eio_session *s)
{
    assert(s->role == AGX_EIO_CLIENT && s->state == AGX_EIO_STATE_POLLING);
    go(s, AGX_EIO_STATE_UPGRADING);
    return act_send(AGX_EIO_ACT_SEND, AGX_EIO_WEBSOCKET, AGX_EIO_PING, AGX_EIO_PROBE);
}

void agx_eio_session_probe_failed(struct agx_eio_session *s)
{
    if (s->state == AGX_EIO_STATE_UPGRADING)
        go(s, AGX_EIO_STATE_POLLING);
}

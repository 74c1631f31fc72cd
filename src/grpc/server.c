/*
 * server.c: the gRPC server's sockets, timers and its stop.
 *
 *     SERVING --stop()--> NOTICE --AGX_GRPC_GOAWAY_MS--> DRAIN --deadline--> END
 *                            |                            |                  |
 *                            +------- last connection closed ----------------+--> stopped(), freed
 *
 * Invariants:
 *  (1) a `peer` is one connection; its link is freed in closed(), so any end of a connection ends
 *      its calls, in a separate turn;
 *  (2) a peer that does not read is `stalled`: we send nothing more to it and read nothing more
 *      from it until the socket has taken everything. No other peer waits for it;
 *  (3) a refused peer's connection lasts until its first call is answered, or refused_ms: nothing
 *      moves its deadline;
 *  (4) the deadline timer fires no later than the first deadline of the heap.
 */
#include "grpc/server.h"

#include "base/list.h"
#include "base/log.h"
#include "grpc/grpc_internal.h"
#include "loop/conn.h"
#include "loop/listener.h"

#include <assert.h>
#include <sys/socket.h>

#include "base/banned.h"

enum stage { SERVING, NOTICE, DRAIN, END, GONE };

struct peer {
    struct agx_grpc_server *server;
    struct agx_grpc_link *link;
    struct agx_conn *conn;
    bool stalled;
    bool closing;
    bool asked; /* for a sign of life */
    struct agx_list_node node;
};

struct door {
    struct agx_listener *listener;
    struct door *next;
};

struct agx_grpc_server {
    struct agx_grpc_shared host;
    struct agx_loop *loop;
    struct agx_conn_group *group;
    struct agx_list peers; /* of struct peer */
    struct door *doors;
    uv_timer_t deadlines;
    uint64_t armed_ms; /* when that timer fires; UINT64_MAX: not set */
    uv_timer_t stopper;
    uv_idle_t later; /* delivers input of resumed calls, in a separate turn */
    unsigned n_open; /* open ones of the three handles */
    enum stage stage;
    uint64_t stop_ms; /* when the last calls end */
    agx_done_fn stopped;
    void *user;
};

static uint64_t update_now(struct agx_grpc_server *s)
{
    return s->host.now_ms = uv_now(agx_loop_uv(s->loop));
}

/* Moves the link's output to the socket. */
static void server_pump(struct peer *p)
{
    size_t queued = agx_conn_queued(p->conn);

    if (p->stalled || p->closing)
        return;
    if (queued > AGX_CONN_OUT_HIGH ||
        agx_grpc_link_send(p->link, agx_conn_out(p->conn), AGX_CONN_OUT_HIGH + 1 - queued)) {
        p->stalled = true;
        agx_conn_pause(p->conn);
    }
}

static void on_later(uv_idle_t *h);

static void server_settle(struct peer *p)
{
    if (p->link->later)
        (void)uv_idle_start(&p->server->later, on_later);
    if (p->closing || !agx_grpc_link_is_over(p->link) || (p->stalled && !p->link->failed))
        return;
    p->closing = true;
    agx_conn_close(p->conn);
}

/* Call after every event of the link. */
static void server_turn(struct peer *p)
{
    if (p->link->busy)
        return; /* the outer caller of the link will call us */
    do
        server_pump(p);
    while (!p->stalled && !p->closing && agx_grpc_link_writable(p->link));
    server_settle(p);
}

static void on_later(uv_idle_t *h)
{
    struct agx_grpc_server *s = container_of(h, struct agx_grpc_server, later);

    (void)uv_idle_stop(h);
    update_now(s);
    AGX_LIST_FOR_EACH (struct peer, p, &s->peers, node) {
        if (!p->link->later)
            continue;
        agx_grpc_link_deliver(p->link);
        server_turn(p);
    }
}

static void on_wake(struct agx_grpc_link *l)
{
    server_pump(l->io);
    server_settle(l->io);
}

static void on_deadline(uv_timer_t *t);

static void server_arm(struct agx_grpc_server *s)
{
    const struct agx_heap_node *first = agx_heap_peek(&s->host.deadlines);

    if (!first || first->key >= s->armed_ms)
        return;
    s->armed_ms = first->key;
    (void)uv_timer_start(&s->deadlines, on_deadline,
                         first->key > s->host.now_ms ? first->key - s->host.now_ms : 0, 0);
}

static void on_deadline(uv_timer_t *t)
{
    struct agx_grpc_server *s = container_of(t, struct agx_grpc_server, deadlines);

    update_now(s);
    s->armed_ms = UINT64_MAX;
    agx_grpc_shared_expire(&s->host);
    server_arm(s);
}

/* ---- callbacks of a connection ---- */

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct peer *p = user;
    struct agx_grpc_server *s = p->server;

    update_now(s);
    agx_grpc_link_recv(p->link, agx_str_bytes(data, len));
    p->asked = false;
    if (p->link->greeted && p->link->admitted)
        agx_conn_deadline(p->conn, s->host.config.keepalive_ms);
    server_turn(p);
    server_arm(s);
    return len;
}

static void on_eof(void *user)
{
    agx_conn_abort(((struct peer *)user)->conn, NULL);
}

static void on_drained(void *user)
{
    struct peer *p = user;

    if (!p->stalled)
        return;
    p->stalled = false;
    agx_conn_resume(p->conn);
    server_turn(p);
}

static void on_expired(void *user)
{
    struct peer *p = user;
    struct agx_error *err = NULL;

    if (!p->link->admitted || !p->link->greeted || p->asked) {
        (void)agx_error_set(&err, AGX_DEADLINE_EXCEEDED,
                            p->link->admitted ? "the client did not answer a keepalive PING"
                                              : "a client that may not call made no call");
        agx_conn_abort(p->conn, &err);
        return;
    }
    p->asked = true;
    agx_conn_deadline(p->conn, p->server->host.config.keepalive_wait_ms);
    agx_grpc_link_ping(p->link);
    server_turn(p);
}

static void server_ended(struct agx_grpc_server *s);

static void on_closed(void *user, struct agx_error *error)
{
    struct peer *p = user;
    struct agx_grpc_server *s = p->server;

    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "rpc.connection_lost", AGX_F_ERR(error));
    agx_error_free(error);
    update_now(s);
    p->closing = true;
    p->link = agx_grpc_link_free(p->link);
    agx_list_remove(&p->node);
    free(p);
    server_ended(s);
}

static const struct agx_conn_ops conn_ops = {
    .data = on_data,
    .eof = on_eof,
    .drained = on_drained,
    .expired = on_expired,
    .closed = on_closed,
};

int agx_grpc_server_open(struct agx_loop *l, const struct agx_grpc_config *config,
                         struct agx_grpc_server **ret_server, struct agx_error **err)
{
    struct agx_conn_config conn_config = AGX_CONN_CONFIG_INIT;
    struct agx_grpc_server *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a server");
    conn_config.linger_ms = AGX_GRPC_LINGER_MS;
    r = agx_grpc_shared_init(&s->host, config, err);
    if (r == 0)
        r = agx_conn_group_open(l, &conn_config, &s->group, err);
    if (r < 0) {
        agx_grpc_shared_done(&s->host);
        free(s);
        return r;
    }
    s->host.wake = on_wake;
    s->loop = l;
    s->armed_ms = UINT64_MAX;
    (void)uv_timer_init(agx_loop_uv(l), &s->deadlines);
    (void)uv_timer_init(agx_loop_uv(l), &s->stopper);
    (void)uv_idle_init(agx_loop_uv(l), &s->later);
    s->n_open = 3;
    *ret_server = s;
    return 0;
}

int agx_grpc_server_add(struct agx_grpc_server *s, const struct agx_grpc_method *methods, size_t n,
                        void *service, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = agx_grpc_shared_add(&s->host, &methods[i], service, err);
    return r;
}

static struct agx_grpc_peer identify(int fd)
{
    struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
    socklen_t len = sizeof(cred);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
    return (struct agx_grpc_peer){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
}

/* Refused peers have places of their own: they cannot keep others out. */
static int check_room(const struct agx_grpc_server *s, bool admitted, struct agx_error **err)
{
    const struct agx_grpc_config *config = &s->host.config;
    size_t n = admitted ? s->host.stats.conns : s->host.stats.refused;

    if (n >= (admitted ? config->conns_max : config->refused_max))
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "there are already %zu connections%s", n,
                             admitted ? "" : " of clients that may not call");
    return 0;
}

int agx_grpc_server_adopt(struct agx_grpc_server *s, int *take_fd, struct agx_error **err)
{
    const struct agx_grpc_peer who = identify(*take_fd);
    const bool admitted = agx_grpc_shared_admits(&s->host, &who);
    struct peer *p;
    int r;

    if (s->stage != SERVING)
        return agx_error_set(err, AGX_UNAVAILABLE, "the server is shutting down");
    r = check_room(s, admitted, err);
    if (r < 0)
        return r;
    p = calloc(1, sizeof(*p));
    if (!p)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    p->server = s;
    update_now(s);
    r = agx_grpc_link_new(&s->host, &who, admitted, p, &p->link, err);
    if (r == 0)
        r = agx_conn_open(s->group, take_fd, &conn_ops, p, &p->conn, err);
    if (r < 0) {
        p->link = agx_grpc_link_free(p->link);
        free(p);
        return r;
    }
    agx_list_push_front(&s->peers, &p->node);
    agx_conn_deadline(p->conn, admitted ? s->host.config.handshake_ms : s->host.config.refused_ms);
    server_turn(p); /* sends our SETTINGS */
    return 0;
}

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_close_ int owned = fd;

    (void)peer;
    if (agx_grpc_server_adopt(user, &owned, &err) < 0)
        AGX_LOG(AGX_LOG_DEBUG, "rpc.connection_refused", AGX_F_ERR(err));
}

int agx_grpc_server_listen(struct agx_grpc_server *s, struct agx_listener **take_listener,
                           struct agx_error **err)
{
    struct door *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a listener");
    r = agx_listener_start(*take_listener, on_accept, s, err);
    if (r < 0) {
        free(d);
        return r;
    }
    d->listener = AGX_TAKE_PTR(*take_listener);
    d->next = s->doors;
    s->doors = d;
    return 0;
}

/* ---- stop ---- */

static void handle_closed(uv_handle_t *h)
{
    struct agx_grpc_server *s = h->data;

    if (--s->n_open > 0)
        return;
    agx_grpc_shared_done(&s->host);
    s->stopped(s->user, NULL);
    free(s);
}

static void close_handle(struct agx_grpc_server *s, uv_handle_t *h)
{
    h->data = s;
    uv_close(h, handle_closed);
}

/* Called after the last connection of a stopping server closed. */
static void server_ended(struct agx_grpc_server *s)
{
    if (s->stage == SERVING || s->stage == GONE || !agx_list_is_empty(&s->peers))
        return;
    s->stage = GONE;
    s->group = agx_conn_group_close(s->group);
    close_handle(s, (uv_handle_t *)&s->deadlines);
    close_handle(s, (uv_handle_t *)&s->stopper);
    close_handle(s, (uv_handle_t *)&s->later);
}

/* Moves one connection to the stage. */
static void advance(struct peer *p, enum stage stage)
{
    if (stage == NOTICE) {
        agx_grpc_link_end_calls(p->link, true);
        agx_grpc_link_shutdown(p->link);
    } else if (stage == DRAIN) {
        agx_grpc_link_drain(p->link);
    } else {
        agx_grpc_link_end_calls(p->link, false);
    }
    server_turn(p);
    if (stage == END && !p->closing) {
        p->closing = true;
        agx_conn_close(p->conn);
    }
}

static void on_stopper(uv_timer_t *t)
{
    struct agx_grpc_server *s = container_of(t, struct agx_grpc_server, stopper);
    uint64_t now = update_now(s), next = s->stop_ms;

    AGX_LIST_FOR_EACH (struct peer, p, &s->peers, node)
        advance(p, s->stage);
    if (s->stage == NOTICE)
        next = AGX_MIN(now + AGX_GRPC_GOAWAY_MS, s->stop_ms);
    if (s->stage < END) {
        s->stage++;
        (void)uv_timer_start(t, on_stopper, next > now ? next - now : 0, 0);
    }
    server_ended(s);
}

void agx_grpc_server_stop(struct agx_grpc_server *s, uint64_t deadline_ms, agx_done_fn stopped,
                          void *user)
{
    assert(s->stage == SERVING);
    for (struct door *d = s->doors; d; d = d->next)
        agx_listener_take_waiting(d->listener);
    s->stage = NOTICE;
    s->stopped = stopped;
    s->user = user;
    s->stop_ms = uv_now(agx_loop_uv(s->loop)) + deadline_ms;
    while (s->doors) {
        struct door *d = s->doors;

        s->doors = d->next;
        d->listener = agx_listener_close(d->listener);
        free(d);
    }
    (void)uv_timer_start(&s->stopper, on_stopper, 0, 0); /* never inside a handler */
}

void agx_grpc_server_stats(const struct agx_grpc_server *s, struct agx_grpc_stats *ret)
{
    *ret = s->host.stats;
}

/*
 * server_internal.h: shared by server.c (joins the subsystems), server_http.c (requests) and
 * sio_conn.c. A peer is one Socket.IO connection on an Engine.IO session: its packets, its client
 * at the router, and its position in the worker's log.
 *
 * Access rules:
 *  - with a token configured, a session whose first request did not carry it in a header is
 * *unproven*: it may only CONNECT, with the token in its auth map, within AGX_PROVE_MS; unproven
 * sessions are limited in number;
 *  - one network has only a part of the places for sessions that have not sent CONNECT;
 *  - everything else needs a proven session;
 *  - without a token, a request's head and its connection decide (server_access.c).
 */
#ifndef AGX_RUNTIME_SERVER_INTERNAL_H
#define AGX_RUNTIME_SERVER_INTERNAL_H

#include "base/list.h"
#include "codec/sio_assembler.h"
#include "loop/addr.h"
#include "loop/conn.h"
#include "runtime/capture.h"
#include "runtime/eio_server.h"
#include "runtime/server.h"
#include "runtime/spin.h"
#include "runtime/worker.h"

#include <uv.h>

struct agx_listener;

/* The kind of a connection's peer: `from` of its exchanges. */
enum agx_server_from {
    AGX_FROM_UNIX, /* the socket's mode admitted it */
    AGX_FROM_TCP,  /* from anywhere, or a user that may call */
    AGX_FROM_OTHER_USER,
    AGX_FROM_UNKNOWN_USER,
};

struct agx_sio_conn {
    struct agx_server *server;
    struct agx_eio_session *session;
    struct agx_sio_assembler assembler;
    struct agx_client *client; /* NULL: not connected to `/` */
    uint64_t net;              /* agx_server_access_net() of its client */
    bool proven;
    bool in_log;               /* connected to `/log` */
    uint64_t log_next;         /* number of the next record to send */
    uint64_t prove_by_ms;      /* loop time; while unproven */
    bool paused;               /* by us: the worker has too much to do */
    bool closing;              /* we have ended the session */
    struct agx_list_node node; /* in server->peers */
};

/* CLOSED: worker, HTTP and sessions are ending; shared state is freed with the last peer. */
enum server_state { SERVER_OPEN, SERVER_DRAINING, SERVER_STOPPING, SERVER_CLOSED };

struct agx_server {
    struct agx_loop *loop;
    const struct agx_server_config *config;
    enum server_state state;
    struct agx_listener *listeners[2];
    struct agx_conn_group *conns;
    struct agx_http_server *http;
    struct agx_eio_server *eio;
    struct agx_router *router;
    struct agx_worker *worker;
    struct agx_wlog *wlog;
    uint64_t worker_log_from;        /* the number of the first record of this worker */
    struct agx_capture *captures[2]; /* stdout, stderr */
    struct agx_spin *spin;
    struct agx_list peers; /* of struct agx_sio_conn */
    size_t n_unproven;
    int owner_fd; /* for asking who owns a connection (sockowner.h); -1: not needed */
    struct agx_buf headers[AGX_EV_COUNT]; /* the text before each event's attachment */
    uv_timer_t tick;                      /* deadlines of the router and of unproven peers */
    uv_timer_t drain;                     /* while DRAINING: checks whether the calls have ended */
    uint64_t drain_until_ms;
    void (*stopped)(void *user);
    void *stopped_user;
};

/* sio_conn.c */
struct agx_sio_conn *agx_sio_conn_new(struct agx_server *s, struct agx_eio_session *session,
                                      bool proven, uint64_t net);
void agx_sio_conn_message(struct agx_sio_conn *p, const struct agx_eio_packet *packet);
void agx_sio_conn_emit(struct agx_sio_conn *p, enum agx_remote_event ev,
                       const struct agx_str *parts, size_t n_parts);
void agx_sio_conn_drained(struct agx_sio_conn *p);
/* The session has ended; frees the peer. */
void agx_sio_conn_gone(struct agx_sio_conn *p);
void agx_sio_conn_close(struct agx_sio_conn *p, unsigned code, const char *reason);
/* Sends log records to it, as far as its queue allows. */
void agx_sio_conn_pump_log(struct agx_sio_conn *p);

/* server.c: sets the tick to the next deadline. */
void agx_server_plan_tick(struct agx_server *s);
/* Call after removing a peer from the list. */
void agx_server_conn_gone(struct agx_server *s);
uint64_t agx_server_now(const struct agx_server *s);

/* server_access.c */
/* Opens the socket for asking the kernel who owns a connection, if needed. */
int agx_server_access_open(struct agx_server *s, struct agx_error **err) AGX_MUST_CHECK;
enum agx_server_from agx_server_access_from(struct agx_server *s, int fd,
                                            const struct agx_addr *peer);
/* The same number for addresses that one peer has: its IPv4 address, the first half of its IPv6
 * address, or the Unix socket. */
uint64_t agx_server_access_net(const struct agx_addr *peer);
/* Why a request is refused, whatever its path; a constant. NULL: it is not. */
const char *agx_server_access_refusal(const struct agx_server *s, const struct agx_exchange *x);
/* The Origin of a request, if an option allows it; else empty. */
struct agx_str agx_server_access_named(const struct agx_server *s,
                                       const struct agx_http_head *head);

/* server_http.c */
extern const struct agx_http_server_ops agx_server_http_ops; /* its user is the server */
/* If a token is required: is it this one? Constant time. */
bool agx_server_is_token(const struct agx_server *s, struct agx_str text);
/* True also if none is required. */
bool agx_server_has_token(const struct agx_server *s, const struct agx_http_head *head);

#endif

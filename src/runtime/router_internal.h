/*
 * router_internal.h: shared by the files of the router.
 *
 *   router.c         clients, sessions, deadlines
 *   router_call.c    one call: its life and its kept output
 *   router_unacked.c    unacknowledged output of sessions, and sending it
 *   router_client.c  events from clients
 *   router_error.c   errors that the server makes
 *   router_worker.c  frames from the worker
 *
 * The life of a call. Two parties must be done with it before it is freed: the worker (it owes an
 * end for every call frame), and the client (it got the terminal event and, with protocol 1,
 * acknowledged it).
 *
 *                    +--> client done (terminal event sent) --> acknowledged --+
 *     request -------+                                                         +--> freed
 *                    +--> worker done (result, error, end, or its death) ------+
 *
 * Invariants:
 *  (1) a call is in rt->by_id exactly while the worker owes its end;
 *  (2) it is in client->calls exactly while its client may ask for it; then `client` becomes NULL;
 *  (3) each call sends one terminal event: only one place sends it and sets `done`, and nothing is
 *      sent after it;
 *  (4) kept output is in ascending sequence, without acknowledged events;
 *  (5) of a session, only kept events wait for a slow client: its connection's queue gets a little
 *      at a time, of one call after the other; events after an unsent event of a call are unsent
 *      too.
 */
#ifndef AGX_RUNTIME_ROUTER_INTERNAL_H
#define AGX_RUNTIME_ROUTER_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "codec/credit.h"
#include "codec/mp_writer.h"
#include "runtime/lane_hints.h"
#include "runtime/router.h"

#include <limits.h>

/* One event that the client has not acknowledged. */
struct agx_unacked {
    struct agx_list_node node; /* in call->unacked */
    uint64_t seq;
    enum agx_remote_event ev;
    size_t len;
    uint8_t payload[];
};

struct agx_router_call {
    struct agx_client *client; /* NULL: nobody waits for it any more */
    struct agx_str call_id;    /* owned bytes; the client's name for it, which may hold a NUL */
    uint64_t id;               /* the worker's name for it */
    enum agx_remote_kind kind;
    enum agx_remote_lane lane;
    bool worker_owes;      /* (1) */
    bool done;             /* (3) */
    bool starved;          /* gets credit when its client's queue has drained */
    bool named;            /* during a resume: the client named it */
    uint64_t seq;          /* of the last event, sent or not */
    uint64_t sent_seq;     /* sessions: of the last event sent, on any connection */
    uint64_t lost_seq;     /* of the last event that could not be kept; 0: none */
    uint64_t in_seq;       /* of the last input received */
    struct agx_credit out; /* sent by the worker */
    struct agx_credit out_granted;
    struct agx_credit in; /* sent by the client */
    struct agx_credit in_granted;
    struct agx_list unacked;       /* of struct agx_unacked */
    struct agx_unacked *unsent;    /* (5): the first one; NULL: none */
    struct agx_list_node behind;   /* client->behind, while something is unsent */
    struct agx_heap_node deadline; /* rt->deadlines, where it has one */
    struct agx_list_node ended;    /* client->ended */
};

struct agx_client {
    char session[33]; /* 128 bits in hex; empty without protocol 1 */
    bool proto1;
    bool holding; /* resumed, before the resume event: send nothing */
    void *conn;   /* NULL: away */
    size_t max_message;
    struct agx_heap_node away; /* rt->windows, while it is away */
    struct agx_map calls;      /* call_id -> struct agx_router_call */
    bool starving;             /* at least one call is starved */
    struct agx_list ended; /* calls that are unacknowledged, with something kept; oldest first */
    size_t n_ended, unacked_bytes;
    struct agx_list behind;    /* calls with something unsent, whose turn is next first */
    struct agx_list_node node; /* rt->clients */
};

struct agx_router {
    struct agx_router_config config;
    struct agx_router_io io;
    void *user;
    struct agx_siphash_key seed;
    struct agx_list clients; /* of struct agx_client */
    struct agx_map sessions; /* session -> struct agx_client */
    struct agx_map by_id;    /* 8 bytes of id -> struct agx_router_call */
    uint64_t last_id;
    bool draining; /* no new calls */
    struct agx_lane_hints *hints;
    struct agx_buf scratch;    /* for the message being composed */
    struct agx_heap deadlines; /* of calls */
    struct agx_heap windows;   /* of clients that are away */
};

/* router_call.c */
struct agx_router_call *agx_router_call_new(struct agx_router *rt, struct agx_client *c,
                                            struct agx_str call_id, enum agx_remote_kind kind);
struct agx_router_call *agx_router_call_find(struct agx_router *rt, uint64_t id);
/* A value for the client: the result, or an item. `value` is raw msgpack. */
void agx_router_call_value(struct agx_router *rt, struct agx_router_call *call,
                           struct agx_str value);
/* The terminal events; after `done` they do nothing. The call may be dead afterwards. */
void agx_router_call_end(struct agx_router *rt, struct agx_router_call *call);
void agx_router_call_error(struct agx_router *rt, struct agx_router_call *call,
                           struct agx_str error);
void agx_router_call_fail(struct agx_router *rt, struct agx_router_call *call, struct agx_str type,
                          const char *fmt, ...) AGX_PRINTF(4, 5);
/* Ends it with an error, and tells the worker to stop it. */
void agx_router_call_abort(struct agx_router *rt, struct agx_router_call *call, struct agx_str type,
                           const char *message);
void agx_router_call_worker_done(struct agx_router *rt, struct agx_router_call *call);
/* The client has everything up to `seq`. */
void agx_router_call_ack(struct agx_router *rt, struct agx_router_call *call, uint64_t seq);
/* The client will not ask for it again. */
void agx_router_call_forget(struct agx_router *rt, struct agx_router_call *call);
/* After a resume: what is kept is to be sent again. agx_unacked_pump() does it. */
void agx_router_call_replay(struct agx_router *rt, struct agx_router_call *call);
/* Grants the worker output credit on behalf of a client without protocol 1, where due. */
void agx_router_call_grant(struct agx_router *rt, struct agx_router_call *call);

/* router_unacked.c; all for clients with a session. */
/* An event of a call, whose number is call->seq: keeps it, and sends it now or when it can be. */
void agx_unacked_output(struct agx_router *rt, struct agx_router_call *call,
                        enum agx_remote_event ev, const struct agx_str *parts, size_t n);
/* The terminal event of a call is kept. Forgets the oldest answers past the session's bounds. */
void agx_unacked_ended(struct agx_router *rt, struct agx_router_call *call);
/* Drops what is kept of a call up to and with `seq`. */
void agx_unacked_drop(struct agx_router_call *call, uint64_t seq);
void agx_unacked_unlist(struct agx_router_call *call);
/* All that is kept of the call is to be sent again. */
void agx_unacked_unsend(struct agx_router_call *call);
/* Sends what is unsent, as far as the queue of the connection takes it. */
void agx_unacked_pump(struct agx_router *rt, struct agx_client *c);
/* The connection is closed: nothing waits for it. */
void agx_unacked_disconnected(struct agx_router *rt, struct agx_client *c);

/* router_error.c */
/* An error event that belongs to no call. */
void agx_router_refuse(struct agx_router *rt, struct agx_client *c, enum agx_remote_kind kind,
                       struct agx_str call_id, struct agx_str type, const char *message);
/* Appends an error object: {type, message, traceback: nil, cancelled[, returncode]}. */
void agx_router_write_error(struct agx_mp_writer *w, struct agx_str type, const char *message,
                            int returncode);
/* Frames to the worker about a call that it knows. */
void agx_router_send_cancel(struct agx_router *rt, struct agx_router_call *call);
void agx_router_send_credit(struct agx_router *rt, struct agx_router_call *call);
/* Tells a client of protocol 1 how much input the worker takes, and which of it is here. */
void agx_router_send_input_credit(struct agx_router *rt, struct agx_router_call *call);

static inline struct agx_str agx_id_key(const uint64_t *id)
{
    return agx_str_bytes(id, sizeof(*id));
}

#endif

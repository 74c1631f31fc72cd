/*
 * session_internal.h: what the files of the session share.
 *
 *   session.c         the connection's states, deadlines
 *   session_call.c    what the user does with a call
 *   session_event.c   events of the server about a call
 *   session_resume.c  what happens to calls when a connection ends or comes back
 *
 * The states of the connection:
 *
 *                +------ a call starts ------+
 *                v                           |
 *     new --> DIALING --> HANDSHAKE --+--> READY <--resume:done-- RESUMING
 *                ^            |       |      |                      ^  |
 *                |            |       +------|-- resumed -----------+  |
 *                |            v              v                         |
 *                +-- retry -- WAITING <------+-------------------------+
 *                               |
 *                               +-- no session to resume, or its time is over --> DOWN
 *
 * Invariants:
 *  (1) link.state is not IDLE exactly in HANDSHAKE, RESUMING and READY;
 *  (2) a call is in `calls` until the server has acknowledged nothing more of it can come
 *      (`flow.closed`) and the user has freed it (`abandoned`) and its end was acknowledged (not
 *      `dirty`);
 *  (3) a call ends for the user once: `over` is set in end_call() only, and nothing is queued after
 *      it;
 *  (4) `request` is kept until the server is known to have it (`flow.known`);
 *  (5) kept input is in ascending sequence, and holds what codec/remote_flow.h says;
 *  (6) functions that emit only note a failure in `fault`; agx_session_settle(), at the end of each
 *      entry, turns it into the loss of the connection. So no call is freed while a list is walked.
 */
#ifndef AGX_CLIENT_SESSION_INTERNAL_H
#define AGX_CLIENT_SESSION_INTERNAL_H

#include "base/heap.h"
#include "base/limits.h"
#include "base/map.h"
#include "client/hello.h"
#include "client/items.h"
#include "client/link.h"
#include "client/session.h"
#include "codec/remote_message.h"

enum agx_session_phase {
    AGX_SESSION_DOWN,
    AGX_SESSION_DIALING,
    AGX_SESSION_HANDSHAKE,
    AGX_SESSION_RESUMING,
    AGX_SESSION_READY,
    AGX_SESSION_WAITING,
};

enum { AGX_CALL_ID_SIZE = 32 };

struct agx_call {
    struct agx_session *session;
    struct agx_call *next, *prev; /* session->calls, in the order of their start */
    char id[AGX_CALL_ID_SIZE];
    char *target; /* owned */
    struct agx_remote_flow flow;
    void *user;
    struct agx_buf request; /* (4) */
    bool sent;              /* the request went out on some connection */
    bool over;              /* (3) */
    bool abandoned;         /* the user has freed it */
    bool cancelled;         /* its end was asked for */
    bool named;             /* during a resume: the server has not answered for it yet */
    struct agx_error *error;
    uint64_t timeout_ms;
    struct agx_heap_node deadline;

    struct agx_items items;    /* not taken yet */
    struct agx_item *borrowed; /* what the user took last */
    struct agx_items kept;     /* (5) */

    bool dirty; /* in session->dirty: events of it are not acknowledged */
    struct agx_call *dirty_next;
    bool news; /* in session->news */
    struct agx_call *news_next, *news_prev;
};

struct agx_session {
    struct agx_session_config config;
    char *host, *token; /* owned */
    enum agx_session_phase phase;
    struct agx_link link;
    uint64_t now;     /* of the present entry */
    uint64_t attempt; /* number of the last attempt to connect */
    uint64_t phase_deadline;
    uint64_t heard;                     /* when the last bytes came */
    uint64_t retry_ms;                  /* the next pause */
    uint64_t give_up;                   /* when open calls are given up; valid from the loss on */
    char id[AGX_HELLO_SESSION_MAX + 1]; /* the server's name for the session; empty: none */
    uint64_t resume_ms;                 /* how long the server keeps it */
    size_t server_max;                  /* the largest message that the server takes */
    struct agx_error *fault;            /* (6) */
    struct agx_error *reason;           /* why it is DOWN */
    struct agx_map by_id;
    struct agx_call *calls, *calls_last;
    uint64_t last_call;
    struct agx_heap deadlines;
    struct agx_call *dirty;
    size_t unacked;  /* events since the last acknowledgement; large ones count more */
    uint64_t ack_at; /* valid while `dirty` */
    struct agx_call *news, *news_last;
    struct agx_buf scratch; /* for the message that is being composed */
};

static inline bool agx_session_is_ready(const struct agx_session *s)
{
    return s->phase == AGX_SESSION_READY && !s->fault;
}

/* session.c */
void agx_session_settle(struct agx_session *s);
void agx_session_dial(struct agx_session *s);
/* Sends what is in scratch; `status` is what its writer says. */
void agx_session_emit(struct agx_session *s, enum agx_remote_event ev, int status);
void agx_session_emit_payload(struct agx_session *s, enum agx_remote_event ev,
                              struct agx_str payload);
/* {call_id} or {call_id, n, bytes}. */
void agx_session_emit_cancel(struct agx_session *s, const struct agx_call *call);
void agx_session_emit_credit(struct agx_session *s, const struct agx_call *call);
void agx_session_emit_acks(struct agx_session *s);

/* session_call.c */
void agx_session_note(struct agx_call *call);
/* The end that the user sees; takes *take_error, NULL: a good one. */
void agx_session_end_call(struct agx_call *call, struct agx_error **take_error);
/* The same with an error of our own making, of that remote type (or NULL). */
void agx_session_fail_call(struct agx_call *call, enum agx_code code, const char *type,
                           const char *fmt, ...) AGX_PRINTF(4, 5);
void agx_session_send_request(struct agx_call *call);
void agx_session_send_input(struct agx_call *call);
/* Takes it out of every list and frees it. */
void agx_session_drop_call(struct agx_call *call);
/* Drops it if nobody needs it any more. */
void agx_session_collect(struct agx_call *call);
/* The `n` oldest pieces of kept input. */
void agx_session_drop_input(struct agx_call *call, size_t n);

/* session_event.c */
void agx_session_event(struct agx_session *s, struct agx_str name, struct agx_str payload);

/* session_resume.c */
void agx_session_connected(struct agx_session *s, struct agx_str answer);
void agx_session_resume_done(struct agx_session *s, struct agx_str payload);
/* Ends every open call: no connection is to be had. */
void agx_session_abandon_all(struct agx_session *s, const struct agx_error *why);

#endif

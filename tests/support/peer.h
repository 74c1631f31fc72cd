/*
 * peer.h: the server's side of a client's connection, made with our codecs, for tests without
 * sockets: it answers the handshake, records the client's events and sends the test's events.
 */
#ifndef AGX_TESTS_PEER_H
#define AGX_TESTS_PEER_H

#include "client/session.h"
#include "codec/http1.h"
#include "codec/remote_call.h"
#include "codec/sio_assembler.h"
#include "codec/ws.h"

enum { PEER_EVENTS = 4096 };

struct peer_event {
    enum agx_remote_event ev;
    char *payload; /* owned */
    size_t len;
};

struct peer {
    struct agx_session *s;
    uint64_t now;
    struct agx_ws ws;
    struct agx_sio_assembler assembler;
    struct agx_buf in;  /* the client's HTTP request */
    struct agx_buf out; /* to the client, until peer_flush() */
    bool open;          /* the WebSocket is open */
    char hello[1024];   /* the auth map of the client's CONNECT */
    struct peer_event events[PEER_EVENTS];
    size_t n_events, seen; /* `seen`: number that peer_expect() has read */
};

/* Makes a peer whose client dials, or one that is connected as session "s1". It is on the heap,
 * because the record of events is large. */
struct peer *peer_new_dialing(void);
struct peer *peer_new(void);
void peer_freep(struct peer **p);
#define _cleanup_peer_ _cleanup_(peer_freep)

/* Makes a session that dials. */
void peer_init(struct peer *p, uint64_t reconnect_ms);
void peer_done(struct peer *p);

/* Connects the socket and answers the client's upgrade; its CONNECT is in p->hello. */
void peer_accept(struct peer *p);
/* Answers CONNECT. */
void peer_connect(struct peer *p, const char *session, bool resumed);
/* Cuts the connection; the client dials again. */
void peer_cut(struct peer *p);
/* Calls peer_cut(), and makes a new connection up to CONNECT. */
void peer_reconnect(struct peer *p, const char *session, bool resumed);

/* Queues raw text, or a binary message: one event with its payload. */
void peer_text(struct peer *p, struct agx_str text);
void peer_emit(struct peer *p, enum agx_remote_event ev, struct agx_str payload);
/* Queues {call_id[, seq][, value (msgpack)]}. */
void peer_value(struct peer *p, enum agx_remote_event ev, const char *call_id, uint64_t seq,
                struct agx_str value);
/* Queues an error event. */
void peer_error(struct peer *p, enum agx_remote_event ev, const char *call_id, uint64_t seq,
                const char *type, bool cancelled, int returncode);
/* Queues credit for input. */
void peer_credit(struct peer *p, const char *call_id, uint64_t n, uint64_t bytes, uint64_t seq);
/* Sends the queue to the client in pieces of `step` bytes, then records the client's answers. */
void peer_flush(struct peer *p, size_t step);

/* Asserts that the client's next event is this one; returns its payload, borrowed. */
struct agx_str peer_expect(struct peer *p, enum agx_remote_event ev);
/* Asserts that there is no further event. */
void peer_expect_none(struct peer *p);
/* Fields of a payload. */
char *peer_id(struct agx_str payload); /* owned; its call_id */
uint64_t peer_number(struct agx_str payload, const char *name);

/* Starts a call of "m::f" with {"n": 1}. */
struct agx_call *peer_start(struct peer *p, enum agx_remote_kind kind, uint64_t timeout_ms);
/* The same, and the server has read it; the caller owns *ret_id. */
struct agx_call *peer_start_known(struct peer *p, enum agx_remote_kind kind, char **ret_id);
int peer_take(struct peer *p, struct agx_call *call, struct agx_str *ret, struct agx_error **err);
/* Assert what the call gives next: this value, the end, or this failure (`type` NULL: not one of
 * the server's). */
void peer_expect_value(struct peer *p, struct agx_call *call, struct agx_str want);
void peer_expect_end(struct peer *p, struct agx_call *call);
void peer_expect_failure(struct peer *p, struct agx_call *call, enum agx_code code,
                         const char *type);
/* Queues the answer to resume, with at most one call each (or NULL). */
void peer_resume_done(struct peer *p, const char *known, uint64_t seq, const char *unknown);

#endif

/*
 * session.h: the calls of one client and the session that outlives its connections, without I/O:
 * bytes in, bytes out, time as an argument (docs/design/runtime-protocol.md, section 2).
 *
 * The caller owns the socket:
 *
 *     agx_session_attempt()   0: no connection is wanted. Another number than that of the socket it
 *                             has: close that one and connect anew
 *     agx_session_dialed()    the socket is connected; agx_session_pending() has the first bytes
 *     agx_session_read()      bytes came, straight or by agx_session_want() and _filled()
 *     agx_session_lost()      the socket failed, or could not be connected
 *     agx_session_tick()      at agx_session_deadline() at the latest
 *
 * None of these fails: what goes wrong ends the connection or a call, and shows there.
 */
#ifndef AGX_CLIENT_SESSION_H
#define AGX_CLIENT_SESSION_H

#include "base/buf.h"
#include "base/siphash.h"
#include "codec/remote_call.h"

struct agx_session;
struct agx_call;

struct agx_session_config {
    struct agx_str host;         /* Host header */
    struct agx_str token;        /* empty: none */
    size_t max_message;          /* of a message in either direction */
    uint64_t connect_timeout_ms; /* of one attempt */
    uint64_t reconnect_ms;       /* how long calls outlive their connection */
    struct agx_siphash_key seed; /* random */
    void *owner;                 /* what agx_session_owner() gives back */
};

struct agx_call_request {
    enum agx_remote_kind kind;
    struct agx_str target;
    struct agx_str args, kwargs; /* one msgpack array, one msgpack map; empty: none */
    uint64_t timeout_ms;         /* 0: none */
    void *user;
};

/* Begins with an attempt to connect. The strings are copied. */
int agx_session_new(const struct agx_session_config *config, uint64_t now_ms,
                    struct agx_session **ret, struct agx_error **err) AGX_MUST_CHECK;
/* Frees its calls too. */
struct agx_session *agx_session_free(struct agx_session *s);
void *agx_session_owner(const struct agx_session *s);

uint64_t agx_session_attempt(const struct agx_session *s);
void agx_session_dialed(struct agx_session *s, uint64_t now_ms);
void agx_session_read(struct agx_session *s, uint8_t *data, size_t len, uint64_t now_ms);
void agx_session_want(struct agx_session *s, uint8_t **ret_room, size_t *ret_len);
void agx_session_filled(struct agx_session *s, size_t n);
struct agx_str agx_session_pending(const struct agx_session *s);
void agx_session_sent(struct agx_session *s, size_t n);
/* Takes *take_error. */
void agx_session_lost(struct agx_session *s, struct agx_error **take_error, uint64_t now_ms);
/* UINT64_MAX: none. */
uint64_t agx_session_deadline(const struct agx_session *s);
void agx_session_tick(struct agx_session *s, uint64_t now_ms);

/* 1: connected and usable; 0: being connected; negative: it failed, with a copy of the reason. */
int agx_session_state(const struct agx_session *s, struct agx_error **err);
/* Queues the goodbye: acknowledgements, then the end of the session. */
void agx_session_goodbye(struct agx_session *s);

/* The next call with news, or NULL. */
struct agx_call *agx_session_next(struct agx_session *s);

/* The functions of agentix/runtime.h that need no waiting, with the time as an argument. */
int agx_session_call(struct agx_session *s, const struct agx_call_request *request, uint64_t now_ms,
                     struct agx_call **ret_call, struct agx_error **err) AGX_MUST_CHECK;
struct agx_session *agx_session_of(const struct agx_call *call);
enum agx_remote_kind agx_session_call_kind(const struct agx_call *call);
int agx_session_take(struct agx_call *call, struct agx_str *ret_value, uint64_t now_ms,
                     struct agx_error **err) AGX_MUST_CHECK;
bool agx_session_can_send(const struct agx_call *call);
/* It could send, had it more credit. */
bool agx_session_wants_credit(const struct agx_call *call);
int agx_session_send(struct agx_call *call, struct agx_str item, uint64_t now_ms,
                     struct agx_error **err) AGX_MUST_CHECK;
int agx_session_end_input(struct agx_call *call, uint64_t now_ms,
                          struct agx_error **err) AGX_MUST_CHECK;
void agx_session_cancel(struct agx_call *call, uint64_t now_ms);
struct agx_call *agx_session_release(struct agx_call *call, uint64_t now_ms);

#endif

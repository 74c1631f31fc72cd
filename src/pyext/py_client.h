/*
 * py_client.h: the objects of the extension module agentix._client.
 *
 * Three types. A Plan describes a function: its pickle, its name, the type of its result. A Call is
 * one remote call: an awaitable (unary) or an async iterator (stream, bidi). A Session has the open
 * calls and, if there is one, the connection: WebSocket frames on a descriptor or on an asyncio
 * transport. Calls outlive connections: a session may lose one and get another.
 *
 *     owner (Python: connects, reads the handshake, makes exceptions)
 *       |  Session -- borrows --> Call <-- holds -- the task that waits, or the user's iterator
 *       |     |                    |
 *       +-----+---- holds ---------+
 *
 * Invariants:
 *  1. session->calls has a call exactly while its state is WAITING or SENT. The pointers are
 *     borrowed: a call without references cancels itself when it is freed.
 *  2. No Python code of the user runs while received bytes are being parsed: calls that can
 *     continue are put into session->woken, and run after the last byte.
 *  3. Everything belongs to the thread of the event loop. Only the release of a call may happen in
 *     another thread.
 */
#ifndef AGX_PYEXT_PY_CLIENT_H
#define AGX_PYEXT_PY_CLIENT_H

#include "pyext/py_msgpack.h"

#include "base/buf.h"
#include "base/map.h"
#include "codec/remote_message.h"
#include "codec/ws.h"

struct client_module {
    struct agx_py_codec codec;
    PyObject *plan_type, *call_type, *step_type, *session_type;
    PyObject *cancelled_error, *invalid_state; /* of asyncio */
    PyObject *name_run;                        /* "run" */
    struct agx_buf headers[AGX_EV_COUNT];      /* the text in front of each event, ready to send */
};

struct plan {
    PyObject_HEAD enum agx_remote_kind kind;
    PyObject *name;     /* display name, str */
    PyObject *prefix;   /* bytes: the request's fields that are the same for each call */
    PyObject *failure;  /* the exception of every call (no pickle), or NULL */
    PyObject *dump;     /* callable(args, kwargs) -> (args, kwargs), if annotations need it */
    PyObject *fallback; /* for objects that msgpack cannot express: py_msgpack.h */
    PyObject *type;     /* a result of exactly this type needs no check, or NULL */
    PyObject *validate; /* callable(value) -> value, or NULL */
};

/* A received item that was not yet taken. */
struct call_item {
    PyObject *value;
    size_t bytes;
};

/* A piece of bidi input that may have to be sent again: inputs[i] has the number
 * flow.in_acked + 1 + i. */
struct call_input {
    struct agx_buf bytes; /* the whole message */
    bool last;            /* a bidi:end_in */
};

enum call_state {
    CALL_NEW,     /* nothing was sent; the call holds its arguments */
    CALL_WAITING, /* for a connection */
    CALL_SENT,
    CALL_ENDED, /* the outcome is known: result, exception, or end of the items */
};

struct call {
    PyObject_HEAD struct client_module *module;
    struct session *session; /* owned */
    struct plan *plan;       /* owned */
    PyObject *args, *kwargs; /* until the request is encoded */
    double timeout_s;        /* 0: none */
    PyObject *timer;         /* of the deadline, or NULL */
    enum call_state state;
    uint64_t number; /* ascends over a session's calls in the order of their start */
    char *id;
    size_t id_len;
    struct agx_buf request; /* kept until the call ends: it may have to be sent again */
    struct agx_remote_flow flow;

    /* The outcome, once state is CALL_ENDED. */
    PyObject *result, *exception;
    bool cancelled; /* by this side: result() raises CancelledError */
    bool taken;     /* the outcome was returned or raised */
    bool awaited;   /* a unary call can only be awaited once */

    /* Items: a queue. */
    struct call_item *items;
    size_t items_len, items_cap, items_head;

    /* asyncio's future protocol: the task that waits for the call's outcome or next item. */
    bool blocking;
    bool woken; /* is in session->woken */
    PyObject *callback, *context;

    /* With unacknowledged events the call is in the list session->unacked_calls. */
    struct call *ack_prev, *ack_next;
    bool ack_listed;

    /* Bidi input. */
    struct call_input *inputs;
    size_t inputs_len, inputs_cap;
    PyObject *credit_waiter; /* asyncio future, or NULL */
};

/* One anext() of a call. */
struct step {
    PyObject_HEAD struct call *call; /* owned, or NULL */
};

enum session_state {
    SESSION_DETACHED, /* no connection */
    SESSION_GREETING, /* connected; the owner does the handshake */
    SESSION_RESUMING, /* resume was sent, resume:done has not come yet */
    SESSION_OPEN,
    SESSION_CLOSED, /* permanently */
};

/* Random bytes for masking keys, fetched by one system call: enough for 256 frames. */
enum { SESSION_KEYS = 1024, SESSION_READ = 65536 };

/* The largest buffer that a session keeps for its next request. */
enum { SPARE_MOST = 2 << 20 };

struct session {
    PyObject_HEAD struct client_module *module;
    PyObject *owner;
    PyObject *loop;      /* while attached */
    PyObject *transport; /* NULL: the session owns `fd` */
    int fd;
    enum session_state state;
    unsigned proto;      /* 1: our server; 0: one of 0.1.5 */
    size_t max_send;     /* largest message that the server takes */
    uint64_t generation; /* counts connections: shows if the one being read was replaced */
    uint64_t reads;      /* how often bytes came */
    unsigned long thread;
    bool context_ids; /* call_context() was used: ask owner for an id first */

    struct agx_map calls;
    char id_prefix[16];
    uint64_t next_id;

    /* In. */
    struct agx_ws ws;
    uint8_t *in;
    bool reading;   /* bytes are being parsed or calls woken: output is sent at the end */
    bool has_event; /* a header has come, its attachment is next */
    enum agx_remote_event event;
    bool known_event;
    struct call **woken; /* owned references */
    size_t woken_len, woken_cap;

    /* Out. */
    struct agx_buf out, scratch;
    struct agx_buf spare; /* the buffer of a finished request, for the next one */
    size_t out_at;        /* bytes of `out` that were sent */
    bool flush_due, writer;
    uint8_t keys[SESSION_KEYS];
    size_t keys_at;

    /* Acknowledgements. */
    struct call *unacked_calls;
    struct agx_buf acks; /* of ended calls: id, seq, id, seq, ... */
    size_t acks_len;     /* pairs in it */
    size_t unacked;      /* weight of the events: a large one counts more than once */
    PyObject *ack_timer;
};

static inline struct agx_str pyclient_call_id(const struct call *c)
{
    return (struct agx_str){ c->id, c->id_len };
}

/* True: there is an outcome or an item, so the waiting task can continue. */
static inline bool pyclient_call_is_ready(const struct call *c)
{
    return c->state == CALL_ENDED || c->items_len > 0;
}

#endif

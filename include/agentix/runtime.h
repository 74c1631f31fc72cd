/*
 * runtime.h: calls functions in a runtime (agentix-server) from C.
 *
 * A function is named by reference: "module::qualname" is a Python function,
 * "c:<library>::<function>" one of a shared object. Arguments and results are msgpack
 * (agentix/msgpack.h).
 *
 * From a blocking program:
 *
 *     agx_runtime_open(&options, &rt, &err);
 *     agx_call_start(rt, &call_options, &call, &err);
 *     r = agx_call_wait(call, -1, &bytes, &len, &err);
 *     agx_call_free(call);
 *     agx_runtime_close(rt);
 *
 * From an event loop: watch agx_runtime_fd() for agx_runtime_events() for at most
 * agx_runtime_timeout_ms(), then call agx_runtime_dispatch(), then handle each call that
 * agx_runtime_next() returns. Every function of this header may change the three values, so read
 * them again before each wait.
 *
 * The client reconnects when the connection is lost, and every call continues where it was: no item
 * is lost or comes twice, and a function runs at most once. If that is not possible, the call fails
 * with an error that says so.
 *
 * Nothing here prints, aborts, installs a signal handler or starts a thread. One runtime and its
 * calls belong to one thread at a time; different runtimes are independent.
 */
#ifndef AGENTIX_RUNTIME_H
#define AGENTIX_RUNTIME_H

#include <agentix/error.h>

#include <stdint.h>

AGX_BEGIN_DECLS

struct agx_runtime;
struct agx_call;

struct agx_runtime_options {
    size_t size;                 /* of this structure: set by AGX_RUNTIME_OPTIONS_INIT */
    const char *url;             /* "unix:///path" or "http://host:port" */
    const char *token;           /* the bearer token, or NULL */
    uint32_t connect_timeout_ms; /* for one attempt to connect */
    uint32_t reconnect_ms;       /* how long calls outlive their connection; 0: not at all */
    size_t max_message;          /* the largest message taken or sent; 0: 256 MiB */
};
#define AGX_RUNTIME_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct agx_runtime_options), 0, 0, 10000, 60000, 0                                  \
    }

/*
 * Begins to connect and does not wait for it (a host name is looked up here, which may block).
 * Calls may be started at once. If connecting fails, the waiting calls fail with AGX_UNAVAILABLE,
 * and the next one tries again. -AGX_UNIMPLEMENTED for https://.
 */
AGX_PUBLIC int agx_runtime_open(const struct agx_runtime_options *options,
                                struct agx_runtime **ret_runtime, struct agx_error **err);
/* Blocks until the client is connected. Optional. timeout_ms as in agx_call_wait(). */
AGX_PUBLIC int agx_runtime_wait(struct agx_runtime *rt, int timeout_ms, struct agx_error **err);
/* Ends the session and cancels running calls. Free the calls before. Accepts NULL; returns NULL. */
AGX_PUBLIC struct agx_runtime *agx_runtime_close(struct agx_runtime *rt);

/* For event loops. -1 while there is no descriptor to watch. */
AGX_PUBLIC int agx_runtime_fd(const struct agx_runtime *rt);
/* The events to watch for now: POLLIN and POLLOUT of <poll.h>. */
AGX_PUBLIC short agx_runtime_events(const struct agx_runtime *rt);
/* Milliseconds until agx_runtime_dispatch() must be called even without events; -1: no limit. */
AGX_PUBLIC int agx_runtime_timeout_ms(const struct agx_runtime *rt);
/* Does everything that is possible without waiting. Each call reports its own failure. */
AGX_PUBLIC void agx_runtime_dispatch(struct agx_runtime *rt);
/* A call with news since it was last returned here: something to take, its end, or room for input
 * again. Take from it until there is nothing left. NULL: no call has news. */
AGX_PUBLIC struct agx_call *agx_runtime_next(struct agx_runtime *rt);

enum agx_call_kind {
    AGX_CALL_UNARY,  /* one result */
    AGX_CALL_STREAM, /* items from the function */
    AGX_CALL_BIDI    /* items both ways */
};

struct agx_call_options {
    size_t size; /* of this structure: set by AGX_CALL_OPTIONS_INIT */
    enum agx_call_kind kind;
    const char *target; /* "module::qualname" or "c:<library>::<function>" */
    const void *args;   /* one msgpack array, or NULL: no positional arguments */
    size_t args_len;
    const void *kwargs; /* one msgpack map with text keys, or NULL: no named arguments */
    size_t kwargs_len;
    uint32_t timeout_ms; /* for the whole call, then it fails with AGX_DEADLINE_EXCEEDED; 0: none */
    void *user;          /* agx_call_user() returns it */
};
#define AGX_CALL_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct agx_call_options), AGX_CALL_UNARY, 0, 0, 0, 0, 0, 0, 0                       \
    }

/* Everything in the options is copied. */
AGX_PUBLIC int agx_call_start(struct agx_runtime *rt, const struct agx_call_options *options,
                              struct agx_call **ret_call, struct agx_error **err);
AGX_PUBLIC void *agx_call_user(const struct agx_call *call);

/*
 * Cancels the call: it then fails with AGX_CANCELLED, unless it ended before. The function sees the
 * cancellation.
 */
AGX_PUBLIC void agx_call_cancel(struct agx_call *call);

/* Frees the call; cancels it if it still runs. Accepts NULL; returns NULL. */
AGX_PUBLIC struct agx_call *agx_call_free(struct agx_call *call);

enum agx_take {
    AGX_TAKE_NOTHING = 0, /* not yet */
    AGX_TAKE_VALUE = 1,   /* a result or an item */
    AGX_TAKE_END = 2      /* there will be no more */
};

/*
 * Takes received data without waiting. Returns an enum agx_take, or the code of the call's failure
 * (each time). The value is msgpack, borrowed until the next take, wait or free of this
 * call. Codes: AGX_CANCELLED; AGX_DEADLINE_EXCEEDED ("CallTimeout"); AGX_UNAVAILABLE: no server, or
 * one that stops; AGX_ABORTED ("WorkerExited"); AGX_DATA_LOSS ("ResultUnavailable": it may or may
 * not have run); AGX_RESOURCE_EXHAUSTED; AGX_INVALID_ARGUMENT ("BadRequest"); AGX_UNKNOWN: the
 * function itself failed.
 */
AGX_PUBLIC int agx_call_take(struct agx_call *call, const void **ret_value, size_t *ret_len,
                             struct agx_error **err);

/*
 * Blocks until the unary call has its result, which is borrowed until agx_call_free(). timeout_ms
 * limits this wait (-1: no limit). After it, the function returns -AGX_DEADLINE_EXCEEDED, without a
 * type, and the call continues.
 */
AGX_PUBLIC int agx_call_wait(struct agx_call *call, int timeout_ms, const void **ret_value,
                             size_t *ret_len, struct agx_error **err);

/* Blocks until the next item of a stream or bidi call. 1: an item; 0: its end. Otherwise as
 * agx_call_wait(). */
AGX_PUBLIC int agx_stream_next(struct agx_call *call, int timeout_ms, const void **ret_item,
                               size_t *ret_len, struct agx_error **err);

/* Input of a bidi call: may an item be sent now? False while the function has enough of them. */
AGX_PUBLIC bool agx_call_can_send(const struct agx_call *call);
/* One msgpack value. -AGX_FAILED_PRECONDITION while agx_call_can_send() is false. */
AGX_PUBLIC int agx_call_send(struct agx_call *call, const void *item, size_t len,
                             struct agx_error **err);
/* The same, waiting for room first. */
AGX_PUBLIC int agx_call_send_wait(struct agx_call *call, int timeout_ms, const void *item,
                                  size_t len, struct agx_error **err);
/* No more input. Sending it twice does nothing. */
AGX_PUBLIC int agx_call_end_input(struct agx_call *call, struct agx_error **err);

AGX_END_DECLS

#endif

/*
 * fetch.h: an HTTP/1.1 client on the loop, for one server: libcurl's multi interface, no thread.
 *
 *     agx_fetch_open(loop, &config, &fetch, err);
 *     agx_fetch_start(fetch, &request, user, &call, err);      request.done follows, once
 *     agx_fetch_cancel(call);                                  done does not follow
 *     fetch = agx_fetch_close(fetch);
 *
 * Connections are kept for the next call, but never used for a POST or an upload: those begin on a
 * new connection, because libcurl repeats a request when a kept connection turns out to be dead,
 * and these must not be done twice. Redirects are not followed, proxies of the environment are not
 * used, and names are resolved on a thread of libcurl. SIGPIPE is ignored in this process
 * (loop/signals.h), because otherwise TLS would end it when a peer disconnects. Loop thread only.
 */
#ifndef AGX_FETCH_FETCH_H
#define AGX_FETCH_FETCH_H

#include "base/limits.h"
#include "base/str.h"
#include "loop/loop.h"

#include <sys/types.h>

struct agx_fetch;
struct agx_fetch_call;
struct agx_fetch_answer;

/* The server. Strings are borrowed for the call of open. */
struct agx_fetch_endpoint {
    const char *unix_socket;                    /* path; NULL: TCP */
    const char *base;                           /* "http://engine", "https://host:2376" */
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, and no client
                                                 * certificate */
    bool insecure;                              /* TLS without verifying the server's certificate */
};

struct agx_fetch_config {
    struct agx_fetch_endpoint endpoint;
    size_t connections_max; /* at a time; further calls wait for one */
    size_t idle_max;        /* idle connections that are kept */
};
#define AGX_FETCH_CONFIG_INIT                                                                      \
    {                                                                                              \
        .connections_max = AGX_FETCH_CONNECTIONS_MAX, .idle_max = AGX_FETCH_IDLE_MAX               \
    }

/* Called when the socket accepts more: returns the bytes put into `buf`, 0 at the end,
 * -AGX_UNAVAILABLE when there are none yet (agx_fetch_more() later), or any other negative code to
 * abort the call. It must not call functions of fetch.h. */
typedef ssize_t (*agx_fetch_read_fn)(void *user, void *buf, size_t size);

/* Everything except the functions' `user` is copied by agx_fetch_start(). */
struct agx_fetch_request {
    const char *method;         /* "GET" */
    const char *path;           /* appended to the server's base; with its query, already escaped */
    const char *const *headers; /* "Name: value" each, ends with NULL; NULL: none */
    struct agx_str body;        /* at most one of these: bytes, or an upload of unknown length */
    agx_fetch_read_fn read;
    uint64_t connect_ms;  /* until connected; 0: no limit, also below */
    uint64_t deadline_ms; /* for the whole call, from the start */
    uint64_t quiet_ms;    /* without a byte in either direction */
    size_t body_max;      /* of a collected answer; 0: AGX_JSON_MAX */
    /* Optional pair, for a 2xx answer: its head has come (without a body yet); a piece of its body,
     * which is then not collected. */
    void (*begun)(void *user, const struct agx_fetch_answer *answer);
    void (*piece)(void *user, struct agx_str bytes);
    /* Exactly once, never inside start; `call` is then invalid. The callee owns `error`: NULL for a
     * complete answer of any status. With an error, `answer` is what came before it (status 0:
     * nothing). -AGX_UNAVAILABLE: no connection (sys_errno says why, where known), or a broken one;
     * -AGX_DEADLINE_EXCEEDED; -AGX_RESOURCE_EXHAUSTED: more than body_max; or the code of
     * `read`. */
    void (*done)(void *user, const struct agx_fetch_answer *answer, struct agx_error *error);
};

/* Borrowed for the call of begun or done. */
struct agx_fetch_answer {
    unsigned status;     /* 0: there was none */
    struct agx_str body; /* the collected part */
    void *curl;          /* for agx_fetch_answer_header() */
};

int agx_fetch_open(struct agx_loop *l, const struct agx_fetch_config *config,
                   struct agx_fetch **ret_fetch, struct agx_error **err) AGX_MUST_CHECK;

/* Cancels every call and closes every connection. May be called in any callback except `read`.
 * Accepts and returns NULL. */
struct agx_fetch *agx_fetch_close(struct agx_fetch *f);

/* The caller may use *ret_call (which may be NULL) until done. */
int agx_fetch_start(struct agx_fetch *f, const struct agx_fetch_request *request, void *user,
                    struct agx_fetch_call **ret_call, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more, and `call` is invalid; its connection is closed. Accepts NULL. */
void agx_fetch_cancel(struct agx_fetch_call *call);

/* `read` has more bytes, or its end: it will be called. */
void agx_fetch_more(struct agx_fetch_call *call);

/* Pausing stops reading from the server. No further piece comes (except what the current turn has),
 * and a paused call does not count as quiet. Pausing or resuming twice has no effect. */
void agx_fetch_pause(struct agx_fetch_call *call);
void agx_fetch_resume(struct agx_fetch_call *call);

/* A header's value, or NULL. Borrowed for the call of begun or done. */
const char *agx_fetch_answer_header(const struct agx_fetch_answer *answer, const char *name);

#endif

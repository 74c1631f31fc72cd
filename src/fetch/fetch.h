/*
 * fetch.h: an HTTP/1.1 client on the loop, for one server: libcurl's multi interface, no thread.
 *
 *     agx_fetch_open(loop, &config, &fetch, err);
 *     agx_fetch_start(fetch, &request, user, &call, err);      request.done follows, once
 *     agx_fetch_cancel(call);                                  or it does not: the call is gone
 *     fetch = agx_fetch_close(fetch);
 *
 * Connections are kept for the next call, but never for a POST or an upload: those begin on a new
 * connection, since libcurl sends a request again when a kept one turns out to be dead, and these
 * must not be done twice. Redirects are not followed, proxies of the environment are not used, and
 * names are resolved on a thread of libcurl's. SIGPIPE is ignored in this process (loop/signals.h),
 * or TLS would end it when a peer goes. Loop thread only.
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
struct agx_fetch_where {
    const char *unix_socket;                    /* path; NULL: TCP */
    const char *base;                           /* "http://engine", "https://host:2376" */
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, and no certificate */
    bool insecure;                              /* TLS without a look at the server's certificate */
};

struct agx_fetch_config {
    struct agx_fetch_where where;
    size_t connections_max; /* at a time; calls past that wait for one */
    size_t idle_max;        /* connections that are kept while nobody uses them */
};
#define AGX_FETCH_CONFIG_INIT                                                                      \
    {                                                                                              \
        .connections_max = AGX_FETCH_CONNECTIONS_MAX, .idle_max = AGX_FETCH_IDLE_MAX               \
    }

/* Asked for when the socket takes more: bytes put into `buf`, 0 at the end, -AGX_UNAVAILABLE while
 * there are none (agx_fetch_more() later), any other negative code to give the call up. No function
 * of fetch.h may be called in it. */
typedef ssize_t (*agx_fetch_read_fn)(void *user, void *buf, size_t size);

/* Everything is copied by agx_fetch_start() but the functions' `user`. */
struct agx_fetch_request {
    const char *method;         /* "GET" */
    const char *path;           /* behind the server's base; with its query, escaped already */
    const char *const *headers; /* "Name: value" each, ends with NULL; NULL: none */
    struct agx_str body;        /* one of these at most: bytes, or an upload of unknown length */
    agx_fetch_read_fn read;
    uint64_t connect_ms;  /* until the connection stands; 0: no limit, as in those below */
    uint64_t deadline_ms; /* for all of it, from the start */
    uint64_t quiet_ms;    /* without a byte in either direction */
    size_t body_max;      /* of an answer that is collected; 0: AGX_JSON_MAX */
    /* Optional pair, for an answer of 2xx: its head has come (without a body yet); a piece of its
     * body, which is then not collected. */
    void (*begun)(void *user, const struct agx_fetch_answer *answer);
    void (*piece)(void *user, struct agx_str bytes);
    /* Exactly once, never inside start; `call` is dead. The callee owns `error`: NULL when there is
     * a whole answer, of whatever status. With an error `answer` is what came before it (status 0:
     * nothing). -AGX_UNAVAILABLE: no connection
     * (its sys_errno says why, where the system knew), or one that broke; -AGX_DEADLINE_EXCEEDED;
     * -AGX_RESOURCE_EXHAUSTED: more than body_max; the code that `read` gave. */
    void (*done)(void *user, const struct agx_fetch_answer *answer, struct agx_error *error);
};

/* Borrowed for the call of begun or done. */
struct agx_fetch_answer {
    unsigned status;     /* 0: none came */
    struct agx_str body; /* what was collected */
    void *curl;          /* for agx_fetch_answer_header() */
};

int agx_fetch_open(struct agx_loop *l, const struct agx_fetch_config *config,
                   struct agx_fetch **ret_fetch, struct agx_error **err) AGX_MUST_CHECK;

/* Cancels every call and closes every connection. May be called in any callback but `read`. Returns
 * NULL and accepts it. */
struct agx_fetch *agx_fetch_close(struct agx_fetch *f);

/* The caller may use *ret_call (which may be NULL) until done. */
int agx_fetch_start(struct agx_fetch *f, const struct agx_fetch_request *request, void *user,
                    struct agx_fetch_call **ret_call, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more and `call` is dead; its connection is closed. Accepts NULL. */
void agx_fetch_cancel(struct agx_fetch_call *call);

/* `read` has bytes again, or its end: it will be asked. */
void agx_fetch_more(struct agx_fetch_call *call);

/* No piece comes from now on (but what the present turn has), and the server is not read from; it
 * does not count as quiet. Pausing a paused call changes nothing; nor resuming one that is not. */
void agx_fetch_pause(struct agx_fetch_call *call);
void agx_fetch_resume(struct agx_fetch_call *call);

/* A header's value, NULL when it did not come. Borrowed for the call of begun or done. */
const char *agx_fetch_answer_header(const struct agx_fetch_answer *answer, const char *name);

#endif

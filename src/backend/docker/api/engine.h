/*
 * engine.h: calls to a Docker Engine.
 *
 *     _cleanup_free_ char *path = agx_docker_path("/containers/%s/start", id);
 *
 *     agx_docker_call(e, &(struct agx_docker_request){ .method = "POST", .path = path,
 *                     .what = "start container 'x'" }, done, user, &call, err);
 *
 * The API version is negotiated before the first call, and again after the engine was away: the
 * engine's newest, at most the newest that we know. An engine older than 20.10 is refused by name.
 * Errors carry the engine's own message behind the request's name:
 *
 *     400 INVALID_ARGUMENT   403 PERMISSION_DENIED   404 NOT_FOUND   409 ALREADY_EXISTS
 *     401 UNAUTHENTICATED    other 4xx FAILED_PRECONDITION           5xx INTERNAL, 503 UNAVAILABLE
 *     no connection, or one that broke: UNAVAILABLE    too slow: DEADLINE_EXCEEDED
 *     a malformed answer: DATA_LOSS
 *
 * 304 (started already, stopped already) is success. Loop thread only.
 */
#ifndef AGX_BACKEND_DOCKER_API_ENGINE_H
#define AGX_BACKEND_DOCKER_API_ENGINE_H

#include "backend/docker/api/engine_endpoint.h"
#include "base/json.h"
#include "base/limits.h"
#include "fetch/fetch.h"

struct agx_docker_engine;
struct agx_docker_call;

struct agx_docker_engine_config {
    const struct agx_engine_endpoint *endpoint; /* copied */
    const char *api_version;                    /* "1.41": always this one; NULL: negotiated */
    uint64_t connect_ms;
    uint64_t deadline_ms; /* of calls without their own */
    size_t answer_max;    /* bytes of an answer */
    size_t object_max;    /* bytes of one object of a stream */
};
#define AGX_DOCKER_ENGINE_CONFIG_INIT                                                              \
    {                                                                                              \
        .connect_ms = AGX_DOCKER_CONNECT_MS, .deadline_ms = AGX_DOCKER_CALL_MS,                    \
        .answer_max = AGX_DOCKER_ANSWER_MAX, .object_max = AGX_DOCKER_OBJECT_MAX                   \
    }

/* Sends nothing to the engine yet. */
int agx_docker_engine_open(struct agx_loop *l, const struct agx_docker_engine_config *config,
                           struct agx_docker_engine **ret_engine,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Ends all calls without a callback. May be called in any of their callbacks except `read`. Accepts
 * and returns NULL. */
struct agx_docker_engine *agx_docker_engine_close(struct agx_docker_engine *e);

struct agx_loop *agx_docker_engine_loop(const struct agx_docker_engine *e);

/*
 * A path with its query: like printf(), but only %s, %u and %%, and each %s is escaped. Owned; NULL
 * when it is longer than AGX_DOCKER_PATH_MAX or without memory, which the calls below refuse.
 */
char *agx_docker_path(const char *fmt, ...) AGX_PRINTF(1, 2);

/* Strings and body are copied. */
struct agx_docker_request {
    const char *method;
    const char *path;   /* from agx_docker_path(), without the version */
    const char *what;   /* prefix of every error: "start container 'x'" */
    const json_t *body; /* borrowed for the call; NULL: none */
    const char *auth;   /* X-Registry-Auth; NULL: none */
    /* An upload (application/x-tar); `user` is that of done; see fetch.h. Not with `body`. */
    agx_fetch_read_fn read;
    uint64_t deadline_ms; /* 0: the engine's default; of a stream: none */
    uint64_t quiet_ms;    /* time limit without a byte; 0: none */
};

/* Borrowed for the call of done. */
struct agx_docker_answer {
    unsigned status; /* 0: there was none */
    json_t *json;    /* json_incref() to keep it; NULL: none, or an error */
    const struct agx_fetch_answer *fetched;
};

/* NULL: the header is missing. Borrowed for the call of done. */
const char *agx_docker_answer_header(const struct agx_docker_answer *a, const char *name);

/* Exactly once, on the loop thread, never inside the call that started it; the call is then
 * invalid. The callee owns `error`. */
typedef void (*agx_docker_done_fn)(void *user, const struct agx_docker_answer *answer,
                                   struct agx_error *error);

/* *ret_call (which may be NULL) may be used until done. */
int agx_docker_call(struct agx_docker_engine *e, const struct agx_docker_request *q,
                    agx_docker_done_fn done, void *user, struct agx_docker_call **ret_call,
                    struct agx_error **err) AGX_MUST_CHECK;

struct agx_docker_stream_ops {
    void (*begun)(void *user);                  /* the engine has begun to answer; may be NULL */
    void (*object)(void *user, json_t *object); /* borrowed; json_incref() to keep it */
    agx_docker_done_fn done;                    /* without an error: the engine ended the stream */
};

/* A call that is answered by a sequence of JSON objects: events, pulls. */
int agx_docker_stream(struct agx_docker_engine *e, const struct agx_docker_request *q,
                      const struct agx_docker_stream_ops *ops, void *user,
                      struct agx_docker_call **ret_call, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more, and `call` is invalid. The engine may still finish what it has begun.
 * Accepts NULL. */
void agx_docker_cancel(struct agx_docker_call *call);

/* The request's `read` has more bytes, or its end. */
void agx_docker_more(struct agx_docker_call *call);

#endif

/*
 * engine.h: calls to a Docker Engine.
 *
 *     _cleanup_free_ char *path = agx_docker_path("/containers/%s/start", id);
 *
 *     agx_docker_call(e, &(struct agx_docker_request){ .method = "POST", .path = path,
 *                     .what = "start container 'x'" }, done, user, &call, err);
 *
 * The version of the API is agreed on before the first call, and again after the engine was away:
 * the engine's newest, at most the newest that we know; an engine older than 20.10 is refused by
 * name. Failures carry the engine's own words behind what was asked:
 *
 *     400 INVALID_ARGUMENT   403 PERMISSION_DENIED   404 NOT_FOUND   409 ALREADY_EXISTS
 *     401 UNAUTHENTICATED    other 4xx FAILED_PRECONDITION           5xx INTERNAL, 503 UNAVAILABLE
 *     no connection, or one that broke: UNAVAILABLE    too slow: DEADLINE_EXCEEDED
 *     an answer that is not what it should be: DATA_LOSS
 *
 * 304 (started already, stopped already) is success. Loop thread only.
 */
#ifndef AGX_BACKEND_DOCKER_ENGINE_H
#define AGX_BACKEND_DOCKER_ENGINE_H

#include "backend/docker/where.h"
#include "base/json.h"
#include "base/limits.h"
#include "fetch/fetch.h"

struct agx_docker_engine;
struct agx_docker_call;

struct agx_docker_engine_config {
    const struct agx_docker_where *where; /* copied */
    const char *api_version;              /* "1.41": no other is asked for; NULL: agreed on */
    uint64_t connect_ms;
    uint64_t deadline_ms; /* of calls that name none */
    size_t answer_max;    /* bytes of an answer */
    size_t object_max;    /* bytes of one object of a stream */
};
#define AGX_DOCKER_ENGINE_CONFIG_INIT                                                              \
    {                                                                                              \
        .connect_ms = AGX_DOCKER_CONNECT_MS, .deadline_ms = AGX_DOCKER_CALL_MS,                    \
        .answer_max = AGX_DOCKER_ANSWER_MAX, .object_max = AGX_DOCKER_OBJECT_MAX                   \
    }

/* Nothing is asked of the engine yet. */
int agx_docker_engine_open(struct agx_loop *l, const struct agx_docker_engine_config *config,
                           struct agx_docker_engine **ret_engine,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Ends all that was asked of it without a callback. May be called in any of their callbacks
 * but `read`. Returns NULL and accepts it. */
struct agx_docker_engine *agx_docker_engine_close(struct agx_docker_engine *e);

struct agx_loop *agx_docker_engine_loop(const struct agx_docker_engine *e);

/* Borrowed; lives as long as the engine. */
const struct agx_docker_where *agx_docker_engine_peek_where(const struct agx_docker_engine *e);

/* What was agreed on: 41 for "1.41"; 0 before the first call, and while the engine is away. */
unsigned agx_docker_engine_version(const struct agx_docker_engine *e);

/*
 * A path with its query: as printf() with %s, %u and %% only, each %s escaped. Owned; NULL when it
 * is longer than AGX_DOCKER_PATH_MAX or there is no memory, which the calls below refuse.
 */
char *agx_docker_path(const char *fmt, ...) AGX_PRINTF(1, 2);

/* Strings and body are copied. */
struct agx_docker_request {
    const char *method;
    const char *path;   /* of agx_docker_path(), without the version */
    const char *what;   /* in front of every error: "start container 'x'" */
    const json_t *body; /* borrowed for the call; NULL: none */
    const char *auth;   /* X-Registry-Auth; NULL: none */
    /* An upload (application/x-tar), with the done's `user`; see fetch.h. Not with `body`. */
    agx_fetch_read_fn read;
    uint64_t deadline_ms; /* 0: the engine's default; of a stream: none */
    uint64_t quiet_ms;    /* without a byte; 0: no limit */
};

/* Borrowed for the call of done. */
struct agx_docker_answer {
    unsigned status; /* 0: none came */
    json_t *json;    /* json_incref() to keep it; NULL: none came, or an error */
    const struct agx_fetch_answer *fetched;
};

/* NULL when it did not come. Borrowed for the call of done. */
const char *agx_docker_answer_header(const struct agx_docker_answer *a, const char *name);

/* Exactly once, on the loop thread, never inside the call that started it; the call is dead. The
 * callee owns `error`. */
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

/* A call whose answer is JSON objects one after the other: events, pulls. */
int agx_docker_stream(struct agx_docker_engine *e, const struct agx_docker_request *q,
                      const struct agx_docker_stream_ops *ops, void *user,
                      struct agx_docker_call **ret_call, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more and `call` is dead. What the engine has begun it may well finish.
 * Accepts NULL. */
void agx_docker_cancel(struct agx_docker_call *call);

/* The request's `read` has bytes again, or its end. */
void agx_docker_more(struct agx_docker_call *call);

#endif

/* engine_internal.h: what the files of engine.h share. */
#ifndef AGX_BACKEND_DOCKER_API_ENGINE_INTERNAL_H
#define AGX_BACKEND_DOCKER_API_ENGINE_INTERNAL_H

#include "backend/docker/api/engine.h"
#include "base/list.h"
#include "base/mem.h"

struct docker_wait;

/* Copies a small string; NULL for NULL. Aborts without memory, as agx_new() does. */
static inline char *docker_dup(const char *s)
{
    char *copy = s ? strdup(s) : NULL;

    if (s && !copy)
        abort();
    return copy;
}

struct docker_wait_kind {
    /* The version is known: start it. Negative: nothing was started. */
    int (*go)(struct docker_wait *w, struct agx_error **err);
    /* It could not be started; the last call. Takes `error`. */
    void (*fail)(struct docker_wait *w, struct agx_error *error);
    /* The engine closes: end without a callback. */
    void (*drop)(struct docker_wait *w);
};

/* A pending request: calls and hijacks embed it first. */
struct docker_wait {
    const struct docker_wait_kind *kind;
    struct agx_docker_engine *engine;
    struct agx_list_node node; /* in `waiting` (for the version) or in `running` of the engine */
    unsigned round;            /* of the engine's when it began to wait */
};

struct agx_docker_engine {
    struct agx_loop *loop;
    struct agx_docker_engine_config config; /* its strings are in `where` and `fixed` */
    struct agx_engine_endpoint endpoint;
    struct agx_fetch *fetch;
    unsigned fixed;   /* the configured version; 0: negotiated */
    unsigned version; /* 0: unknown, or the engine was away since */
    struct agx_fetch_call *ping;
    struct agx_list waiting; /* of struct docker_wait, in the order of their calls */
    struct agx_list running;
    unsigned round; /* grows with each answer to a ping */
    bool waking;    /* those who waited for it are being told */
    unsigned pins;  /* functions of ours that go on after a callback */
    bool closed;
};

/* Calls kind->go() at once when the version is known, else after a ping. Negative: it failed, or
 * will not be called. */
int docker_wait_start(struct docker_wait *w, struct agx_error **err) AGX_MUST_CHECK;
/* Removes it from the engine's lists. */
void docker_wait_end(struct docker_wait *w);

/* "/v1.41/containers": owned, NULL without memory. */
char *docker_versioned(const struct agx_docker_engine *e, const char *path);

/* The engine did not answer, or not completely: turns fetch's error into ours. */
int docker_unreached(struct agx_docker_engine *e, struct agx_error **take_error,
                     struct agx_error **err);

/* The engine answered with a failure status: its own message. */
int docker_refused(unsigned status, struct agx_str body, struct agx_error **err);

#endif

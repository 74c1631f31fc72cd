/*
 * events.h: what happens to containers of ours, as the engine tells it: GET /events, and again
 * after a pause whenever that ends.
 *
 * An event says "look", not what is there, and may be told twice: an engine answers somewhat before
 * it listens for events, so it is asked for those too that came since its last answer ended, or
 * since the beginning. What it does not keep is found by looking after `up`. Loop thread only.
 */
#ifndef AGX_BACKEND_DOCKER_EVENTS_H
#define AGX_BACKEND_DOCKER_EVENTS_H

#include "backend/docker/engine.h"

struct agx_docker_events;

enum agx_docker_happened {
    AGX_DOCKER_START,
    AGX_DOCKER_DIE,
    AGX_DOCKER_OOM,
    AGX_DOCKER_DESTROY,
    AGX_DOCKER_HEALTH, /* its health changed */
};

/* Borrowed for the call. */
struct agx_docker_event {
    enum agx_docker_happened what;
    const char *container;    /* its id */
    const json_t *attributes; /* an object: the container's labels, `name`, `exitCode`, ... */
};

/* An attribute that is text, or NULL. Borrowed as the event. */
const char *agx_docker_event_get(const struct agx_docker_event *ev, const char *attribute);

struct agx_docker_events_config {
    const char *label;                     /* "io.agentix.instance=..."; copied */
    uint64_t retry_first_ms, retry_max_ms; /* pauses, doubling */
    uint64_t stable_ms;                    /* a stream that lived so long begins anew */
};
#define AGX_DOCKER_EVENTS_CONFIG_INIT                                                              \
    {                                                                                              \
        .retry_first_ms = AGX_DOCKER_EVENTS_FIRST_MS, .retry_max_ms = AGX_DOCKER_EVENTS_MAX_MS,    \
        .stable_ms = AGX_DOCKER_EVENTS_STABLE_MS                                                   \
    }

/* All may be NULL. */
struct agx_docker_events_ops {
    void (*up)(void *user); /* events flow from now on: at first, and after each break */
    /* They do not: the engine is away or refuses. At first, and after each `up`; not for each
     * further attempt. The callee owns `error`. */
    void (*down)(void *user, struct agx_error *error);
    void (*event)(void *user, const struct agx_docker_event *ev);
};

int agx_docker_events_open(struct agx_docker_engine *e,
                           const struct agx_docker_events_config *config,
                           const struct agx_docker_events_ops *ops, void *user,
                           struct agx_docker_events **ret_events,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Before the engine is closed. No callback follows. Returns NULL and accepts it. */
struct agx_docker_events *agx_docker_events_close(struct agx_docker_events *v);

#endif

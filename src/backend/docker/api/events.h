/*
 * events.h: the engine's events about our containers: GET /events, which is repeated after a pause
 * whenever it ends.
 *
 * An event means "look": it does not describe the state, and may come twice. An engine answers
 * shortly before it subscribes to its events, so we request events since the end of its last
 * answer, or since the beginning. Looking after `up` finds what the engine does not keep. Loop
 * thread only.
 */
#ifndef AGX_BACKEND_DOCKER_API_EVENTS_H
#define AGX_BACKEND_DOCKER_API_EVENTS_H

#include "backend/docker/api/engine.h"

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

/* A text attribute, or NULL. Borrowed like the event. */
const char *agx_docker_event_get(const struct agx_docker_event *ev, const char *attribute);

struct agx_docker_events_config {
    const char *label;                     /* "io.agentix.instance=..."; copied */
    uint64_t retry_first_ms, retry_max_ms; /* pauses, doubling */
    uint64_t stable_ms;                    /* after a stream that lived this long, pauses start
                                            * over */
};
#define AGX_DOCKER_EVENTS_CONFIG_INIT                                                              \
    {                                                                                              \
        .retry_first_ms = AGX_DOCKER_EVENTS_FIRST_MS, .retry_max_ms = AGX_DOCKER_EVENTS_MAX_MS,    \
        .stable_ms = AGX_DOCKER_EVENTS_STABLE_MS                                                   \
    }

/* All may be NULL. */
struct agx_docker_events_ops {
    void (*up)(void *user); /* events arrive from now on: at first, and after each break */
    /* No events arrive: the engine is away or refuses. Called at first and after each `up`, not for
     * further attempts. The callee owns `error`. */
    void (*down)(void *user, struct agx_error *error);
    void (*event)(void *user, const struct agx_docker_event *ev);
};

int agx_docker_events_open(struct agx_docker_engine *e,
                           const struct agx_docker_events_config *config,
                           const struct agx_docker_events_ops *ops, void *user,
                           struct agx_docker_events **ret_events,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Call it before the engine is closed. No callback follows. Accepts and returns NULL. */
struct agx_docker_events *agx_docker_events_close(struct agx_docker_events *v);

#endif

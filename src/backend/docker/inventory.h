/* inventory.h: the inventory: our containers and networks, as the engine lists them. */
#ifndef AGX_BACKEND_DOCKER_INVENTORY_H
#define AGX_BACKEND_DOCKER_INVENTORY_H

#include "backend/docker/docker_internal.h"

/* The engine's names. */
enum agx_docker_status {
    AGX_DOCKER_CREATED, /* never started */
    AGX_DOCKER_RUNNING,
    AGX_DOCKER_PAUSED,
    AGX_DOCKER_RESTARTING,
    AGX_DOCKER_REMOVING,
    AGX_DOCKER_EXITED,
    AGX_DOCKER_DEAD, /* removing it failed */
    AGX_DOCKER_STATUS_COUNT,
};

struct agx_docker_found {
    char *id; /* of the container or network */
    char *sandbox_id;
    enum agx_docker_component component;
    size_t companion;
    enum agx_docker_status status; /* containers only */
    enum agx_seen seen;            /* the same as the daemon's enum */
    bool held;                     /* a primary whose init waits for our GO */
    char *network;                 /* name of the network a container was made for */
    char *network_id;              /* ... and its id, once the container was started */
};

struct agx_docker_inventory {
    struct agx_docker_found *items;
    size_t len;
};

/* `filters` of a list request, as JSON: our objects, of one sandbox or (NULL) of all. Owned; NULL
 * without memory. */
char *agx_docker_inventory_filters(const struct agx_docker *d, const char *sandbox_id);

/* Adds our objects from an answer of GET /containers/json or GET /networks. */
int agx_docker_inventory_add(struct agx_docker_inventory *c, const struct agx_docker *d,
                             const json_t *list, struct agx_error **err) AGX_MUST_CHECK;

/* Asks for containers, and networks, of one sandbox or of all; `answered` adds them. */
int agx_docker_inventory_ask(struct agx_op *op, const char *sandbox_id, bool networks,
                             agx_docker_answered_fn answered,
                             struct agx_error **err) AGX_MUST_CHECK;

/* The primary; NULL: none. Borrowed. */
const struct agx_docker_found *agx_docker_inventory_primary(const struct agx_docker_inventory *c);

/* Accepts NULL; empty afterwards. */
void agx_docker_inventory_done(struct agx_docker_inventory *c);

/* Parses "State" of an inspect. */
enum agx_docker_status agx_docker_status_parse(const char *text);
enum agx_seen agx_docker_status_seen(enum agx_docker_status s, bool oom_killed);
/* The engine counts in whole seconds. */
static inline unsigned agx_docker_grace_s(uint64_t grace_ms)
{
    return (unsigned)AGX_MIN((grace_ms + 999) / 1000, 3600);
}

/* The container runs, or will restart by itself. */
static inline bool agx_docker_status_runs(enum agx_docker_status s)
{
    return s == AGX_DOCKER_RUNNING || s == AGX_DOCKER_PAUSED || s == AGX_DOCKER_RESTARTING;
}

#endif

/*
 * pull.h: makes sure that an image is on the engine, and reads its configuration.
 *
 *     agx_docker_puller_open(engine, &config, &puller, err);
 *     agx_docker_ensure(puller, "python:3.11", &ops, user, &want, err);   ops->done follows, once
 *     agx_docker_ensure_cancel(want);                                     or it does not
 *
 * An image that exists is never pulled again. Requests for the same image share one pull, which
 * ends early when the last of them is cancelled. Loop thread only.
 */
#ifndef AGX_BACKEND_DOCKER_PULL_H
#define AGX_BACKEND_DOCKER_PULL_H

#include "backend/docker/api/engine.h"
#include "backend/docker/api/pull_progress.h"
#include "backend/docker/image.h"

struct agx_docker_puller;
struct agx_docker_want;

struct agx_docker_ensure_ops {
    /* Progress of a pull: at its start, and then every AGX_DOCKER_PROGRESS_MS at most. May be
     * NULL. */
    void (*progress)(void *user, const struct agx_pull *p);
    /* Once. The callee may move *image out (and init it again); the rest is freed. NULL with an
     * error, which the callee owns. */
    void (*done)(void *user, struct agx_docker_image *image, struct agx_error *error);
};

struct agx_docker_puller_config {
    const struct agx_docker_env *env; /* for credentials; copied; NULL: none are used */
    uint64_t quiet_ms;                /* a pull without news for this long is given up */
};
#define AGX_DOCKER_PULLER_CONFIG_INIT                                                              \
    {                                                                                              \
        .quiet_ms = AGX_DOCKER_PULL_QUIET_MS                                                       \
    }

int agx_docker_puller_open(struct agx_docker_engine *e,
                           const struct agx_docker_puller_config *config,
                           struct agx_docker_puller **ret_puller,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Call it before the engine is closed: ends all pulls without a callback. Accepts and returns
 * NULL. */
struct agx_docker_puller *agx_docker_puller_close(struct agx_docker_puller *p);

/* -AGX_INVALID_ARGUMENT for text that does not name an image. */
int agx_docker_ensure(struct agx_docker_puller *p, const char *image,
                      const struct agx_docker_ensure_ops *ops, void *user,
                      struct agx_docker_want **ret_want, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more, and `want` is invalid. Accepts NULL. */
void agx_docker_ensure_cancel(struct agx_docker_want *want);

#endif

/*
 * pull.h: makes sure that an image is in the store: it exists, or is pulled from its registry, or
 * is taken from a local Docker Engine ("docker-daemon:REF", which is stored under the name REF).
 *
 *     agx_puller_open(loop, images, &config, &puller, err);
 *     agx_puller_ensure(puller, "python:3.13-slim", &ops, user, &want, err);   ops->done follows,
 *                                                                              once
 *     agx_puller_cancel(want);                                                 or it does not
 *
 * Requests for the same name share one pull, which ends early when the last of them is cancelled;
 * of two pulls that need the same layer, only one fetches it. ensure() never pulls what is in the
 * store; pull() always asks the source of the name. Loop thread only.
 */
#ifndef AGX_IMAGE_PULL_H
#define AGX_IMAGE_PULL_H

#include "core/pull.h"
#include "fetch/fetch.h"
#include "image/credentials.h"
#include "image/images.h"

struct agx_puller;
struct agx_puller_want;

struct agx_puller_ops {
    /* Progress of a pull: at its start, and then every AGX_PULL_PROGRESS_MS at most. May be
     * NULL. */
    void (*progress)(void *user, const struct agx_pull *p);
    /* Once, never inside the start; the want is then invalid. `image` is borrowed (agx_image_ref()
     * keeps it); NULL with an error, which the callee owns: those of registry.h and ingest.h, and
     * -AGX_FAILED_PRECONDITION for something that is not an image for this machine. */
    void (*done)(void *user, struct agx_image *image, struct agx_error *error);
};

/* Everything is copied by open. */
struct agx_puller_config {
    const struct agx_credentials_env *env;   /* for credentials; NULL: none are used */
    const char *const *insecure;             /* as in registry.h */
    const struct agx_fetch_endpoint *engine; /* for "docker-daemon:"; NULL: none */
    const char *no_engine;                   /* why there is none, for the message; may be NULL */
    size_t layers_at_once;                   /* of one pull */
    unsigned tries;                          /* as in registry.h, also those below */
    uint64_t retry_ms, connect_ms, quiet_ms;
};
#define AGX_PULLER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .layers_at_once = AGX_PULL_LAYERS, .tries = AGX_PULL_TRIES, .retry_ms = AGX_PULL_RETRY_MS, \
        .connect_ms = AGX_PULL_CONNECT_MS, .quiet_ms = AGX_PULL_QUIET_MS                           \
    }

/* -AGX_INVALID_ARGUMENT for an invalid insecure registry. */
int agx_puller_open(struct agx_loop *l, struct agx_images *images,
                    const struct agx_puller_config *config, struct agx_puller **ret_puller,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Call it before the store is closed: ends all pulls without a callback. Accepts and returns
 * NULL. */
struct agx_puller *agx_puller_close(struct agx_puller *p);

/* -AGX_INVALID_ARGUMENT for text that does not name an image; -AGX_NOT_FOUND for an id that is not
 * in the store. */
int agx_puller_ensure(struct agx_puller *p, const char *ref, const struct agx_puller_ops *ops,
                      void *user, struct agx_puller_want **ret_want,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_puller_pull(struct agx_puller *p, const char *ref, const struct agx_puller_ops *ops,
                    void *user, struct agx_puller_want **ret_want,
                    struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more, and `want` is invalid. Accepts NULL. */
void agx_puller_cancel(struct agx_puller_want *want);

#endif

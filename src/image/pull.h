/*
 * pull.h: sees to it that an image is in the store: there already, or pulled from its registry, or
 * taken from a local Docker Engine ("docker-daemon:REF", which is kept under the name REF).
 *
 *     agx_puller_open(loop, images, &config, &puller, err);
 *     agx_puller_ensure(puller, "python:3.13-slim", &ops, user, &want, err);   ops->done follows,
 * once agx_puller_cancel(want);                                                 or it does not
 *
 * Those who want the same name share one pull, which ends early when the last of them cancels; of
 * two pulls that need the same layer one gets it. What is in the store is never pulled again by
 * ensure(); pull() always asks where the name comes from. Loop thread only.
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
    /* A pull goes on: at its start, and then every AGX_PULL_PROGRESS_MS at most. May be NULL. */
    void (*progress)(void *user, const struct agx_pull *p);
    /* Once, never inside the start; the want is dead. `image` is borrowed (agx_image_ref() keeps
     * it); NULL with an error, which the callee owns: those of registry.h and intake.h, and
     * -AGX_FAILED_PRECONDITION for what is no image for this machine. */
    void (*done)(void *user, struct agx_image *image, struct agx_error *error);
};

/* All is copied by open. */
struct agx_puller_config {
    const struct agx_credentials_env *env; /* for credentials; NULL: none are used */
    const char *const *insecure;           /* as in registry.h */
    const struct agx_fetch_where *engine;  /* for "docker-daemon:"; NULL: there is none */
    const char *no_engine;                 /* why there is none, for the message; may be NULL */
    size_t layers_at_once;                 /* of one pull */
    unsigned tries;                        /* as in registry.h, and those below */
    uint64_t retry_ms, connect_ms, quiet_ms;
};
#define AGX_PULLER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .layers_at_once = AGX_PULL_LAYERS, .tries = AGX_PULL_TRIES, .retry_ms = AGX_PULL_RETRY_MS, \
        .connect_ms = AGX_PULL_CONNECT_MS, .quiet_ms = AGX_PULL_QUIET_MS                           \
    }

/* -AGX_INVALID_ARGUMENT for an insecure registry that is none. */
int agx_puller_open(struct agx_loop *l, struct agx_images *images,
                    const struct agx_puller_config *config, struct agx_puller **ret_puller,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Before the store is closed: ends all pulls without a callback. Returns NULL and accepts it. */
struct agx_puller *agx_puller_close(struct agx_puller *p);

/* -AGX_INVALID_ARGUMENT for text that names no image; -AGX_NOT_FOUND for the id of one that is not
 * in the store. */
int agx_puller_ensure(struct agx_puller *p, const char *ref, const struct agx_puller_ops *ops,
                      void *user, struct agx_puller_want **ret_want,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_puller_pull(struct agx_puller *p, const char *ref, const struct agx_puller_ops *ops,
                    void *user, struct agx_puller_want **ret_want,
                    struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more and `want` is dead. Accepts NULL. */
void agx_puller_cancel(struct agx_puller_want *want);

#endif

/*
 * registry.h: reads one repository of a registry by the OCI distribution protocol.
 *
 *     agx_registry_open(loop, &config, &registry, err);
 *     agx_registry_get(registry, &request, user, &call, err);     request.done follows, once
 *     agx_registry_cancel(call);                                  or it does not
 *     registry = agx_registry_close(registry);
 *
 * A call authenticates when required, follows redirects, and is tried again when a connection
 * breaks or the registry is busy; a body that comes in pieces continues where it broke. Loop thread
 * only.
 */
#ifndef AGX_IMAGE_REGISTRY_H
#define AGX_IMAGE_REGISTRY_H

#include "base/limits.h"
#include "base/str.h"
#include "image/credentials.h"

struct agx_registry;
struct agx_registry_call;

/* Everything is copied. */
struct agx_registry_config {
    const char *host;                          /* "docker.io", "registry:5000" */
    const char *repository;                    /* "library/python" */
    const struct agx_credentials *credentials; /* NULL: none */
    /* Registries ("host:port") that are used without TLS, as the local machine always is; ends with
     * NULL; NULL: none. */
    const char *const *insecure;
    unsigned tries;    /* of a request without progress, at least 1 */
    uint64_t retry_ms; /* first pause between two tries; it doubles */
    uint64_t connect_ms, quiet_ms;
};
#define AGX_REGISTRY_CONFIG_INIT                                                                   \
    {                                                                                              \
        .tries = AGX_PULL_TRIES, .retry_ms = AGX_PULL_RETRY_MS, .connect_ms = AGX_PULL_CONNECT_MS, \
        .quiet_ms = AGX_PULL_QUIET_MS                                                              \
    }

/* Copied by get, except `user`. */
struct agx_registry_request {
    const char *path;   /* relative to the repository: "manifests/latest", "blobs/sha256:..." */
    const char *accept; /* NULL: anything */
    uint64_t max_bytes; /* limit of the body: one byte more is -AGX_DATA_LOSS */
    bool is_exact;      /* the body has exactly max_bytes */
    /* Optional pair. `piece` gets bytes of the body, which is then not collected; it returns 1 to
     * pause until agx_registry_resume(), or a negative code with *err, which ends the call. The
     * other says that what came is to be discarded: the body starts again. */
    int (*piece)(void *user, struct agx_str bytes, struct agx_error **err);
    void (*restart)(void *user);
    /* Once, never inside get; the call is then invalid. `body` is the collected body, borrowed; the
     * callee owns `error`. -AGX_NOT_FOUND, -AGX_PERMISSION_DENIED, -AGX_UNAVAILABLE,
     * -AGX_DEADLINE_EXCEEDED, -AGX_RESOURCE_EXHAUSTED (rate limit), -AGX_DATA_LOSS (malformed
     * answer). */
    void (*done)(void *user, struct agx_str body, struct agx_error *error);
};

/* -AGX_INVALID_ARGUMENT for an invalid host. */
int agx_registry_open(struct agx_loop *l, const struct agx_registry_config *config,
                      struct agx_registry **ret_registry, struct agx_error **err) AGX_MUST_CHECK;

/* Cancels every call. May be called in any callback except `piece`. Accepts and returns NULL. */
struct agx_registry *agx_registry_close(struct agx_registry *r);

void agx_registry_get(struct agx_registry *r, const struct agx_registry_request *request,
                      void *user, struct agx_registry_call **ret_call);

/* No callback comes any more, and `call` is invalid. Not in `piece`. Accepts NULL. */
void agx_registry_cancel(struct agx_registry_call *call);

/* `piece` accepts more. */
void agx_registry_resume(struct agx_registry_call *call);

#endif

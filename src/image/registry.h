/*
 * registry.h: reads one repository of a registry by the OCI distribution protocol.
 *
 *     agx_registry_open(loop, &config, &registry, err);
 *     agx_registry_get(registry, &request, user, &call, err);     request.done follows, once
 *     agx_registry_cancel(call);                                  or it does not
 *     registry = agx_registry_close(registry);
 *
 * A call shows who we are when it is asked to, follows redirects, and is tried again when a
 * connection breaks or the registry is busy; a body that comes in pieces goes on where it broke.
 * Loop thread only.
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
    /* Registries ("host:port") that are spoken to without TLS, as the host's own machine always is;
     * ends with NULL; NULL: none. */
    const char *const *insecure;
    unsigned tries;    /* of a request that brings nothing, at least 1 */
    uint64_t retry_ms; /* the first pause between two; it doubles */
    uint64_t connect_ms, quiet_ms;
};
#define AGX_REGISTRY_CONFIG_INIT                                                                   \
    {                                                                                              \
        .tries = AGX_PULL_TRIES, .retry_ms = AGX_PULL_RETRY_MS, .connect_ms = AGX_PULL_CONNECT_MS, \
        .quiet_ms = AGX_PULL_QUIET_MS                                                              \
    }

/* Copied by get, but for `user`. */
struct agx_registry_request {
    const char *path;   /* behind the repository: "manifests/latest", "blobs/sha256:..." */
    const char *accept; /* NULL: anything */
    uint64_t max_bytes; /* of the body: one byte more is -AGX_DATA_LOSS */
    bool is_exact;      /* it has max_bytes, not less either */
    /* Optional pair: bytes of the body, which is then not collected (1: pause until
     * agx_registry_resume(); a negative code ends the call, which tells it with *err); and: what
     * came is to be thrown away, the body begins anew. */
    int (*piece)(void *user, struct agx_str bytes, struct agx_error **err);
    void (*restart)(void *user);
    /* Once, never inside get; the call is dead. `body` is what was collected, borrowed; the callee
     * owns `error`. -AGX_NOT_FOUND, -AGX_PERMISSION_DENIED, -AGX_UNAVAILABLE,
     * -AGX_DEADLINE_EXCEEDED, -AGX_RESOURCE_EXHAUSTED (it asks for less), -AGX_DATA_LOSS (an answer
     * that is none). */
    void (*done)(void *user, struct agx_str body, struct agx_error *error);
};

/* -AGX_INVALID_ARGUMENT for a host that is none. */
int agx_registry_open(struct agx_loop *l, const struct agx_registry_config *config,
                      struct agx_registry **ret_registry, struct agx_error **err) AGX_MUST_CHECK;

/* Cancels every call. May be called in any callback but `piece`. Returns NULL and accepts it. */
struct agx_registry *agx_registry_close(struct agx_registry *r);

void agx_registry_get(struct agx_registry *r, const struct agx_registry_request *request,
                      void *user, struct agx_registry_call **ret_call);

/* No callback comes any more and `call` is dead. Not in `piece`. Accepts NULL. */
void agx_registry_cancel(struct agx_registry_call *call);

/* `piece` takes more. */
void agx_registry_resume(struct agx_registry_call *call);

#endif

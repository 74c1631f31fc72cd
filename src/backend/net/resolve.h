/*
 * resolve.h: resolves the names of egress lists to addresses, and follows their changes.
 *
 *     agx_resolver_open(loop, NULL, &resolver, err);                   one for a daemon
 *     agx_resolve_start(resolver, list, n, changed, user, &v, err);    one for a sandbox
 *
 * Each name is looked up at once and then every AGX_RESOLVE_EVERY_MS, once for all sandboxes that
 * use it. An address that is no longer in the answers stays for AGX_RESOLVE_KEEP_MS, so that a
 * client that learned it a moment ago still gets through. While lookups fail, addresses stay.
 *
 * Only public addresses count: the owner of a name's zone must not open the LAN or the host. A name
 * that does not exist is not an error: it has no addresses until it exists.
 */
#ifndef AGX_BACKEND_NET_RESOLVE_H
#define AGX_BACKEND_NET_RESOLVE_H

#include "backend/net/subnets.h"
#include "base/limits_backend.h"
#include "core/egress.h"
#include "loop/loop.h"

struct agx_resolver;
struct agx_resolve;

/* Pool thread: adds the addresses of a name, possibly none; fails when no server answers. */
typedef int (*agx_lookup_fn)(void *user, const char *name, struct agx_subnet_list *out,
                             struct agx_error **err);

struct agx_resolver_config {
    agx_lookup_fn lookup; /* NULL: getaddrinfo() */
    void *user;
    uint64_t every_ms, keep_ms, first_ms;
};
#define AGX_RESOLVER_CONFIG_INIT                                                                   \
    {                                                                                              \
        .every_ms = AGX_RESOLVE_EVERY_MS, .keep_ms = AGX_RESOLVE_KEEP_MS,                          \
        .first_ms = AGX_RESOLVE_FIRST_MS                                                           \
    }

int agx_resolver_open(struct agx_loop *l, const struct agx_resolver_config *config,
                      struct agx_resolver **ret_resolver, struct agx_error **err) AGX_MUST_CHECK;

/* Stop every agx_resolve first. `closed` may be NULL. */
void agx_resolver_close(struct agx_resolver *r, agx_done_fn closed, void *user);

/* The list, with each name replaced by one entry per address, in which the name is kept; borrowed
 * for the call. Called first when every name was looked up or when first_ms have passed, then on
 * every change. Never inside start. */
typedef void (*agx_resolved_fn)(void *user, const struct agx_egress *list, size_t n);

/* `list` is copied. One without names is reported once and never changes. */
int agx_resolve_start(struct agx_resolver *r, const struct agx_egress *list, size_t n,
                      agx_resolved_fn changed, void *user, struct agx_resolve **ret_resolve,
                      struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more; allowed inside `changed`. Accepts and returns NULL. */
struct agx_resolve *agx_resolve_stop(struct agx_resolve *v);

#endif

/* server_shared.c: the server's state that all connections share. */
#include "grpc/grpc_internal.h"

#include "base/uuid.h"

#include "base/banned.h"

int agx_grpc_shared_init(struct agx_grpc_shared *h, const struct agx_grpc_config *config,
                         struct agx_error **err)
{
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    *h = (struct agx_grpc_shared){ .config = *config };
    agx_map_init(&h->methods, seed);
    return 0;
}

void agx_grpc_shared_done(struct agx_grpc_shared *h)
{
    void *entry;

    for (size_t at = 0; agx_map_next(&h->methods, &at, NULL, &entry);)
        free(entry);
    agx_map_done(&h->methods);
    agx_heap_done(&h->deadlines);
}

int agx_grpc_shared_add(struct agx_grpc_shared *h, const struct agx_grpc_method *method,
                        void *service, struct agx_error **err)
{
    struct agx_str path = agx_str_from(method->path);
    struct agx_grpc_entry *entry;

    if (agx_map_get(&h->methods, path))
        return agx_error_set(err, AGX_ALREADY_EXISTS, "the method '%s' is already registered",
                             method->path);
    entry = malloc(sizeof(*entry));
    if (entry)
        *entry = (struct agx_grpc_entry){ method, service };
    if (!entry || agx_map_put(&h->methods, path, entry, NULL) < 0) {
        free(entry);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for the method '%s'",
                             method->path);
    }
    return 0;
}

bool agx_grpc_shared_admits(const struct agx_grpc_shared *h, const struct agx_grpc_peer *peer)
{
    return !h->config.admit || h->config.admit(h->config.user, peer);
}

void agx_grpc_shared_expire(struct agx_grpc_shared *h)
{
    struct agx_heap_node *n;

    while ((n = agx_heap_peek(&h->deadlines)) && n->key <= h->now_ms) {
        struct agx_grpc_call *c = container_of(n, struct agx_grpc_call, deadline);
        struct agx_grpc_link *l = c->link;

        agx_heap_remove(&h->deadlines, n);
        if (c->finished)
            agx_grpc_call_reset(c, NGHTTP2_CANCEL); /* its client does not read the rest */
        else
            agx_grpc_call_end(c, AGX_DEADLINE_EXCEEDED, "the call's deadline has passed");
        agx_grpc_link_wake(l);
    }
}

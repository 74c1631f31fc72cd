/*
 * subnets.h: chooses the address range of the next sandbox network.
 *
 *     struct agx_subnet_list taken = { 0 };
 *     agx_subnets_host(&taken, err);                used by the host's routes and addresses
 *     agx_subnet_list_add(&taken, &network, err);   used by the engine's networks
 *     agx_subnets_next(&pool, &taken, &subnet, err);
 *
 * The pool is cut into pieces of one size. Each call continues behind the piece that was given
 * last, so that a range is reused as late as possible: by then the kernel has forgotten the
 * connections of its last owner.
 */
#ifndef AGX_BACKEND_NET_SUBNETS_H
#define AGX_BACKEND_NET_SUBNETS_H

#include "core/subnet.h"

struct agx_subnet_list {
    struct agx_subnet *items;
    size_t len, cap;
};

/* -AGX_RESOURCE_EXHAUSTED without memory, or past AGX_SUBNETS_TAKEN_MAX. */
int agx_subnet_list_add(struct agx_subnet_list *list, const struct agx_subnet *s,
                        struct agx_error **err) AGX_MUST_CHECK;
void agx_subnet_list_done(struct agx_subnet_list *list);

struct agx_subnets {
    struct agx_subnet pool;
    uint8_t prefix; /* of each piece */
    uint64_t next;  /* where the search begins */
};

/* -AGX_INVALID_ARGUMENT when the pieces do not fit into the pool, are too small for two sandbox
 * addresses (IPv4: /29 is the smallest), or number more than 2^32. `start` is any number: two
 * daemons that begin at different pieces seldom collide. */
int agx_subnets_init(struct agx_subnets *s, const struct agx_subnet *pool, unsigned prefix,
                     uint64_t start, struct agx_error **err) AGX_MUST_CHECK;

/* The next piece that overlaps nothing in `taken`, which the call sorts. -AGX_RESOURCE_EXHAUSTED
 * when none is left; the message names the pool and its size. */
int agx_subnets_next(struct agx_subnets *s, struct agx_subnet_list *taken, struct agx_subnet *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Adds what the host uses: the destinations of its routes (except the default route) and its
 * addresses, both families, by rtnetlink, in the network namespace of the caller. Blocks for less
 * than a millisecond on most hosts. */
int agx_subnets_host(struct agx_subnet_list *taken, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * subnets.h: which range of addresses the next sandbox's network gets.
 *
 *     struct agx_subnet_list taken = { 0 };
 *     agx_subnets_host(&taken, err);                what the host's routes and addresses use
 *     agx_subnet_list_add(&taken, &network, err);   and what the engine's networks do
 *     agx_subnets_next(&pool, &taken, &subnet, err);
 *
 * The pool is cut into pieces of one size. Each call goes on behind the last piece it gave, so that
 * a range comes back as late as can be: connections of its last owner that the kernel still
 * remembers are then long over.
 */
#ifndef AGX_BACKEND_SUBNETS_H
#define AGX_BACKEND_SUBNETS_H

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
    uint64_t next;  /* piece to begin with */
};

/* -AGX_INVALID_ARGUMENT when the pieces do not fit into the pool, are too small for two sandbox
 * addresses (IPv4: /29 is the smallest), or when there would be more than 2^32 of them. `start` is
 * any number: two daemons that begin at different pieces seldom meet. */
int agx_subnets_init(struct agx_subnets *s, const struct agx_subnet *pool, unsigned prefix,
                     uint64_t start, struct agx_error **err) AGX_MUST_CHECK;

/* The next piece that overlaps nothing in `taken`, which is sorted by the call.
 * -AGX_RESOURCE_EXHAUSTED when none is left; its message names the pool and its size. */
int agx_subnets_next(struct agx_subnets *s, struct agx_subnet_list *taken, struct agx_subnet *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Adds what the host uses: the destinations of its routes (but the default one) and its addresses,
 * both families, by rtnetlink, in the network namespace of the caller. Blocks for less than a
 * millisecond on most hosts. */
int agx_subnets_host(struct agx_subnet_list *taken, struct agx_error **err) AGX_MUST_CHECK;

#endif

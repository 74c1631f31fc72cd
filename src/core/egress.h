/*
 * egress.h: one entry of a sandbox's egress allow-list.
 *
 *     203.0.113.7            an address, every port
 *     10.0.0.0/8:443         a network, one port
 *     2001:db8::/32          IPv6
 *     [2001:db8::1]:443      IPv6 with a port
 *     pypi.org:443           a name: a packet filter sees only addresses, so the daemon resolves
 *                            it, again and again
 */
#ifndef AGX_CORE_EGRESS_H
#define AGX_CORE_EGRESS_H

#include "core/subnet.h"

/* Bytes of a name, a DNS limit. */
#define AGX_EGRESS_NAME_MAX 253

struct agx_egress {
    struct agx_str name;  /* borrowed from the text; empty: an address */
    struct agx_subnet to; /* the address, or one address of the name */
    uint16_t port;        /* 0: all */
};

/* A name whose address is not known. */
static inline bool agx_egress_is_unknown(const struct agx_egress *e)
{
    return e->name.len > 0 && e->to.prefix == 0;
}

/* A name has at least one dot and no wildcard. -AGX_INVALID_ARGUMENT for other texts. */
int agx_egress_parse(struct agx_str text, struct agx_egress *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

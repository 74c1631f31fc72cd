/*
 * egress.h: one entry of a sandbox's egress allow-list.
 *
 *     203.0.113.7            an address, every port
 *     10.0.0.0/8:443         a network, one port
 *     2001:db8::/32          IPv6
 *     [2001:db8::1]:443      IPv6 with a port
 *
 * Addresses only: a packet filter sees no names, and a name that is resolved once is wrong soon.
 */
#ifndef AGX_CORE_EGRESS_H
#define AGX_CORE_EGRESS_H

#include "base/error.h"
#include "base/str.h"

struct agx_egress {
    bool ipv6;
    uint8_t address[16]; /* network byte order; IPv4 in the first four; bits past prefix are 0 */
    uint8_t prefix;      /* 0..32 or 0..128 */
    uint16_t port;       /* 0: all */
};

/* -AGX_INVALID_ARGUMENT for other texts. */
int agx_egress_parse(struct agx_str text, struct agx_egress *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

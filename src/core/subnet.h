/* subnet.h: a range of addresses, IPv4 or IPv6, as address and prefix: 10.213.0.0/28. */
#ifndef AGX_CORE_SUBNET_H
#define AGX_CORE_SUBNET_H

#include "base/error.h"
#include "base/str.h"

struct agx_subnet {
    bool ipv6;
    uint8_t prefix;      /* 0..32 or 0..128 */
    uint8_t address[16]; /* network byte order; IPv4 in the first four; bits past prefix are 0 */
};

/* Room for the longest text and its NUL. */
#define AGX_SUBNET_TEXT 50

/* "10.0.0.0/8", "2001:db8::/32", or an address alone; bits past the prefix are cleared.
 * -AGX_INVALID_ARGUMENT for other texts. */
int agx_subnet_parse(struct agx_str text, struct agx_subnet *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Clears the bits past the prefix. */
void agx_subnet_mask(struct agx_subnet *s);

/* Always with the prefix; IPv6 in its shortest form. Returns `out`. */
char *agx_subnet_format(const struct agx_subnet *s, char out[AGX_SUBNET_TEXT]);

/* Does `outer` contain all of `inner`? Two subnets overlap when one contains the other. */
bool agx_subnet_contains(const struct agx_subnet *outer, const struct agx_subnet *inner);
bool agx_subnet_overlaps(const struct agx_subnet *a, const struct agx_subnet *b);

/* Only ranges routed on the Internet: not private, shared, loopback, link-local, multicast or
 * reserved ones, nor a range that contains such addresses. */
bool agx_subnet_is_public(const struct agx_subnet *s);

#endif

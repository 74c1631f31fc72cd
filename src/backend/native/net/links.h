/*
 * links.h: network links, addresses and routes, by rtnetlink. Blocking, but fast.
 *
 * Every call takes a socket: a link is made and changed in the network namespace in which that
 * socket was opened, whatever namespace the caller is in.
 */
#ifndef AGX_BACKEND_NATIVE_NET_LINKS_H
#define AGX_BACKEND_NATIVE_NET_LINKS_H

#include "core/subnet.h"
#include "core/text.h"

#include <net/if.h>

/* A socket for the calls below, in the network namespace of the calling thread. */
int agx_links_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/* Whether the kernel has IPv6 at all. (Looking in /proc/sys gets slower with each network
 * namespace.) */
bool agx_links_ipv6(void);

/* Link names: "agx" and eight random digits. */
int agx_links_name(char ret[IF_NAMESIZE], struct agx_error **err) AGX_MUST_CHECK;

/* A veth pair: `name` here, `peer` in the network namespace `net_fd`. Both are down.
 * -AGX_ALREADY_EXISTS when the name is taken. */
int agx_links_veth(int fd, const char *name, int net_fd, const char *peer,
                   struct agx_error **err) AGX_MUST_CHECK;

/* A bridge without spanning tree, which agx_links_find() finds by `owner` from the moment it exists
 * (NULL: no owner). -AGX_ALREADY_EXISTS when the name is taken. */
int agx_links_bridge(int fd, const char *name, const char *owner,
                     struct agx_error **err) AGX_MUST_CHECK;

struct agx_links_up {
    const char *name;
    const char *alias;                /* NULL: none */
    const char *bridge;               /* the bridge it becomes a port of; NULL: none */
    const struct agx_subnet *network; /* the network it gets an address of; NULL: none */
    uint8_t number;                   /* number of that address in the network */
    uint8_t gateway;                  /* number of the default gateway's address; 0: none */
    bool steady_mac; /* a MAC address derived from that address, as the previous link there had */
};

/* Applies all of it and sets the link up; the link gets no automatic IPv6 address. */
int agx_links_up(int fd, const struct agx_links_up *up, struct agx_error **err) AGX_MUST_CHECK;

/* Deletes a link and its peer. A missing link is not an error. Slow: 25 ms. */
int agx_links_remove(int fd, const char *name, struct agx_error **err);

bool agx_links_has(int fd, const char *name);

/* Adds the names of all links with that alias, and of bridges that were made for it but never got
 * it. */
int agx_links_find(const char *alias, struct agx_words *out, struct agx_error **err) AGX_MUST_CHECK;

/* Address `number` of an IPv4 network, as text. */
void agx_links_address(const struct agx_subnet *network, uint8_t number, char ret[16]);

#endif

/*
 * links.h: network links, addresses and routes, by rtnetlink. Blocking, and quick.
 *
 * Every call names the socket that it goes through: a link is made and changed in the network
 * namespace in which the socket was opened, wherever its user is.
 */
#ifndef AGX_BACKEND_NATIVE_LINKS_H
#define AGX_BACKEND_NATIVE_LINKS_H

#include "core/subnet.h"
#include "core/text.h"

#include <net/if.h>

/* A socket for what follows, in the network namespace of the calling thread. */
int agx_links_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/* Whether the kernel has IPv6 at all. (To look for it in /proc/sys costs time with each namespace
 * that there is.) */
bool agx_links_ipv6(void);

/* Names of links: "agx" and eight digits, new by chance. */
int agx_links_name(char ret[IF_NAMESIZE], struct agx_error **err) AGX_MUST_CHECK;

/* A pair: `name` here, `peer` in the network namespace `net_fd`. Both are down. -AGX_ALREADY_EXISTS
 * when the name is taken. */
int agx_links_veth(int fd, const char *name, int net_fd, const char *peer,
                   struct agx_error **err) AGX_MUST_CHECK;

/* A bridge without spanning tree, which agx_links_find() finds by `owner` (NULL: nobody's) from its
 * first moment on. -AGX_ALREADY_EXISTS when the name is taken. */
int agx_links_bridge(int fd, const char *name, const char *owner,
                     struct agx_error **err) AGX_MUST_CHECK;

struct agx_links_up {
    const char *name;
    const char *alias;                /* NULL: none */
    const char *bridge;               /* that it becomes a port of; NULL: none */
    const struct agx_subnet *network; /* that it has an address of; NULL: none */
    uint8_t number;                   /* of that address in the network */
    uint8_t gateway;                  /* number of the one for the default route; 0: none */
    bool steady_mac; /* one that follows from that address, as the last link's there did */
};

/* Sets all of it and raises the link, which gets no IPv6 address by itself. */
int agx_links_up(int fd, const struct agx_links_up *up, struct agx_error **err) AGX_MUST_CHECK;

/* Takes a link away; with it goes its peer. One that is not there is no error. Slow: 25 ms. */
int agx_links_remove(int fd, const char *name, struct agx_error **err);

bool agx_links_has(int fd, const char *name);

/* Adds the names of all links with that alias, and of bridges that did not come to have it. */
int agx_links_find(const char *alias, struct agx_words *out, struct agx_error **err) AGX_MUST_CHECK;

/* Address `number` of an IPv4 network, as text. */
void agx_links_address(const struct agx_subnet *network, uint8_t number, char ret[16]);

#endif

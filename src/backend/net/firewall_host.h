/* firewall_host.h: what the firewall needs to know about the host: uplinks and name servers. */
#ifndef AGX_BACKEND_NET_FIREWALL_HOST_H
#define AGX_BACKEND_NET_FIREWALL_HOST_H

#include "backend/net/subnets.h"
#include "core/text.h"

struct agx_firewall_host {
    /* Interfaces with a default route or a route by a gateway. A bridge without either is a network
     * of containers or virtual machines on this host. */
    struct agx_words uplinks;
    /* Name servers of the host, except those on loopback addresses. */
    struct agx_subnet_list resolvers;
};

/* Blocks. A missing resolv.conf, and entries in it that are not addresses, are skipped. */
int agx_firewall_host_read(struct agx_firewall_host *h, struct agx_error **err) AGX_MUST_CHECK;

/* The name servers in the text of a resolv.conf; also for tests. */
int agx_firewall_host_resolvers(struct agx_firewall_host *h, struct agx_str text,
                                struct agx_error **err) AGX_MUST_CHECK;

void agx_firewall_host_done(struct agx_firewall_host *h);

#endif

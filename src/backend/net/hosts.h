/*
 * hosts.h: name resolution in a sandbox with an egress list.
 *
 * The sandbox may only use name servers on its list: a server that answers any query would carry
 * data out in the names that are queried. So the engine's own resolver gets no other server, and
 * the names on the list are written to the sandbox's hosts file, with the addresses that they had
 * when it was made. Those addresses then become entries of the list.
 */
#ifndef AGX_BACKEND_NET_HOSTS_H
#define AGX_BACKEND_NET_HOSTS_H

#include "base/json.h"
#include "core/egress.h"
#include "core/text.h"

/* Name servers for its containers: those on the list with their port, or an unreachable one. NULL
 * without memory. */
json_t *agx_hosts_dns(const struct agx_words *egress);

/* Adds a resolved name: its line to the hosts file, and its address to the list. */
int agx_hosts_add(const struct agx_egress *e, struct agx_words *hosts, struct agx_words *entries,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * hosts.h: how a sandbox with an egress list knows names.
 *
 * No name server is open to it but those on the list: one that may be asked for anything carries
 * data out, in the names that it is asked for. So the engine's own resolver is told of no other,
 * and the names on the list stand in the sandbox's hosts file, with the addresses that they had
 * when it was made. These are entries of the list from then on.
 */
#ifndef AGX_BACKEND_HOSTS_H
#define AGX_BACKEND_HOSTS_H

#include "base/json.h"
#include "core/egress.h"
#include "core/text.h"

/* Name servers for its containers: those on the list with their port, or one that is nowhere.
 * NULL when there is no memory. */
json_t *agx_hosts_dns(const struct agx_words *egress);

/* What a name turned out to be: its line for the hosts file, and its entry for the list. */
int agx_hosts_add(const struct agx_egress *e, struct agx_words *hosts, struct agx_words *entries,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif

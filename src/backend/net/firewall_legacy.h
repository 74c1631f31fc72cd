/*
 * firewall_legacy.h: does the work of firewall_docker_user.h on hosts whose engine keeps its rules
 * in the older packet filter (ip_tables). nftables does not show that filter and its verdicts do
 * not override it, so the host's own ip_tables program is run.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_LEGACY_H
#define AGX_BACKEND_NET_FIREWALL_LEGACY_H

#include "base/error.h"

/* Sets both rules in the chain of that filter, or removes them when not `wanted`. Does nothing
 * where there is no such chain. Blocks; any thread. */
int agx_firewall_legacy_set(const char *mark, bool wanted, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * egress_dns.h: the egress watch: the firewall follows the addresses of the names on a sandbox's
 * egress list.
 *
 * The list is also in a label of the network, so that a restarted daemon continues the watch.
 */
#ifndef AGX_BACKEND_DOCKER_EGRESS_DNS_H
#define AGX_BACKEND_DOCKER_EGRESS_DNS_H

#include "backend/docker/firewall_networks.h"

struct agx_docker_egress_dns;

/* Adds the sandbox to the firewall when its names were resolved, and updates it whenever their
 * addresses change. `done` follows once, for the first time. An existing watch is replaced. */
int agx_docker_egress_dns_start(struct agx_docker *d, const char *sandbox_id,
                                const struct agx_docker_net *net, const char *egress,
                                agx_done_fn done, void *user,
                                struct agx_error **err) AGX_MUST_CHECK;

/* `done` is not called any more; the watch goes on. */
void agx_docker_egress_dns_abandon(struct agx_docker *d, const char *sandbox_id);

bool agx_docker_egress_dns_has(const struct agx_docker *d, const char *sandbox_id);
void agx_docker_egress_dns_stop(struct agx_docker *d, const char *sandbox_id);
/* For the end of the backend. */
void agx_docker_egress_dns_stop_all(struct agx_docker *d);

/* Parses a list as in the label; `ret` has room for AGX_FIREWALL_EGRESS_MAX, and its names are
 * borrowed from the text. */
int agx_docker_egress_parse(const char *text, struct agx_egress *ret, size_t *ret_n,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

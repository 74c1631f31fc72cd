/*
 * firewall_networks.h: networks of sandboxes, in the firewall.
 *
 * Before the first rule, the firewall gets all our networks that the engine has; calls that come
 * meanwhile wait for that.
 */
#ifndef AGX_BACKEND_DOCKER_FIREWALL_NETWORKS_H
#define AGX_BACKEND_DOCKER_FIREWALL_NETWORKS_H

#include "backend/docker/docker_internal.h"

enum { AGX_DOCKER_NET_SUBNETS = 4 };

/* A network in the firewall's terms. */
struct agx_docker_net {
    char name[48]; /* of a former spare network: spare_networks.h; "": named after its sandbox */
    char bridge[16];
    struct agx_subnet subnets[AGX_DOCKER_NET_SUBNETS];
    size_t n_subnets;
};

/* The list of a spec as in the label of a network, owned: entries separated by blanks, or "" for
 * none. NULL: the sandbox has no list. */
int agx_docker_egress_text(const struct agx_spec *spec, char **ret,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Parses the engine's description. -AGX_FAILED_PRECONDITION for a network that the firewall cannot
 * cover. */
int agx_docker_net_parse(struct agx_docker_net *n, const json_t *network,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Chooses a bridge name and, where we have an address pool, a range, also as text. */
int agx_docker_net_plan(struct agx_docker *d, struct agx_docker_net *n,
                        char ret_subnet[AGX_SUBNET_TEXT], struct agx_error **err) AGX_MUST_CHECK;

/* The firewall's key for it: a former spare existed before its sandbox. */
static inline const char *agx_docker_net_key(const struct agx_docker_net *n, const char *sandbox_id)
{
    return n->name[0] ? n->name : sandbox_id;
}

struct agx_docker_firewalling;

/* Adds a sandbox (by the key above) to the firewall, with its egress list (NULL: none). 0: `done`
 * follows, once; 1: isolation is off, nothing follows. */
int agx_docker_firewall_put(struct agx_docker *d, const char *sandbox_id,
                            const struct agx_docker_net *n, const char *egress, agx_done_fn done,
                            void *user, struct agx_docker_firewalling **ret_firewalling,
                            struct agx_error **err) AGX_MUST_CHECK;
/* `done` is not called any more. Accepts NULL. */
void agx_docker_firewall_abandon(struct agx_docker_firewalling *f);

/* The engine may have other networks than we know. */
void agx_docker_firewall_sync(struct agx_docker *d);

#endif

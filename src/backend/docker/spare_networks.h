/*
 * spare_networks.h: spare networks, made before a sandbox needs one.
 *
 * Making a network takes a good part of a create. A few spares are kept, each with its firewall
 * rules, and a create takes one of them. An engine cannot rename or relabel a network: it keeps its
 * name, and it belongs to the sandbox whose container was made for it. So one without a container
 * has no owner; a daemon that starts removes those and makes new ones.
 */
#ifndef AGX_BACKEND_DOCKER_SPARE_NETWORKS_H
#define AGX_BACKEND_DOCKER_SPARE_NETWORKS_H

#include "backend/docker/firewall_networks.h"

struct agx_docker_spare_networks;

/* The engine answers, and the firewall knows all networks: starts to keep `networks_ready` spares.
 * Only the first call has an effect. */
void agx_docker_spare_networks_begin(struct agx_docker *d);

/* True: *ret is the caller's, and is in the firewall under its name. */
bool agx_docker_spare_networks_take(struct agx_docker *d, struct agx_docker_net *ret);

/* A network of that name was once a spare. No sandbox has such a name. */
bool agx_docker_spare_networks_is(const char *network);

#endif

/*
 * ready.h: networks that are made before a sandbox needs one.
 *
 * To make a network is a good part of what a create takes. A few are kept, each with its isolation,
 * and a create takes one of them. An engine cannot name a network anew, nor label it: it keeps its
 * own name, and whose it is follows from the container that was made for it. So one without a
 * container is nobody's; a daemon that starts removes those and makes new ones.
 */
#ifndef AGX_BACKEND_DOCKER_READY_H
#define AGX_BACKEND_DOCKER_READY_H

#include "backend/docker/isolate.h"

struct agx_docker_ready;

/* The engine answers, and the fence knows what is there: sees to it that `networks_ready` of them
 * are kept. Every time but the first it does nothing. */
void agx_docker_ready_begin(struct agx_docker *d);

/* True: *ret is the caller's, and stands in the fence under its name. */
bool agx_docker_ready_take(struct agx_docker *d, struct agx_docker_net *ret);

/* A network of that name was kept ready once. No sandbox has a name like it. */
bool agx_docker_ready_is(const char *network);

#endif

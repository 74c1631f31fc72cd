/*
 * dup_networks.h: duplicate networks of a sandbox.
 *
 * A daemon that is killed leaves requests behind that the engine has not carried out, and network
 * names are not unique: the network that it requested may appear after the next daemon has made
 * another. It is not used, but neither can then be found by name.
 */
#ifndef AGX_BACKEND_DOCKER_DUP_NETWORKS_H
#define AGX_BACKEND_DOCKER_DUP_NETWORKS_H

#include "backend/docker/docker_internal.h"

/* Removes the networks of a sandbox that no container of it is in, all but one where none is in
 * use. Nothing is removed while a task other than `task` (NULL: any) is under way, which may be
 * about to use one. `done` (may be NULL: a failure is logged) follows once. */
struct agx_op *agx_docker_dup_networks_remove(struct agx_docker *d, const char *sandbox_id,
                                              const struct agx_sandbox_op *task, agx_done_fn done,
                                              void *user);

#endif

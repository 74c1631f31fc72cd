/*
 * twins.h: second networks of a sandbox.
 *
 * A daemon that is killed leaves requests behind that the engine has not done yet, and names of
 * networks are not unique: the network that it asked for may come when the next daemon has made
 * another. Nobody uses it, but by its name neither can be found any more.
 */
#ifndef AGX_BACKEND_DOCKER_TWINS_H
#define AGX_BACKEND_DOCKER_TWINS_H

#include "backend/docker/docker_internal.h"

/* Removes the networks of a sandbox that no container of it is in, all but one where none is in
 * use. Nothing is removed while a task other than `task` (NULL: any) is under way, which may be
 * about to use one. `done` (may be NULL: a failure is logged) follows once. */
struct agx_step *agx_docker_twins_remove(struct agx_docker *d, const char *sandbox_id,
                                         const struct agx_task *task, agx_done_fn done, void *user);

#endif

/*
 * guard.h: sandboxes with an egress list: the fence follows the addresses of its names.
 *
 * The list is in a label of the network too, so that a restarted daemon guards what runs.
 */
#ifndef AGX_BACKEND_DOCKER_GUARD_H
#define AGX_BACKEND_DOCKER_GUARD_H

#include "backend/docker/isolate.h"

struct agx_docker_guard;

/* Puts the sandbox into the fence when its names were asked for, and from then on whenever their
 * addresses change. `done` follows once, for the first time. One that is guarded gets another. */
int agx_docker_guard_start(struct agx_docker *d, const char *sandbox_id,
                           const struct agx_docker_net *net, const char *egress, agx_done_fn done,
                           void *user, struct agx_error **err) AGX_MUST_CHECK;

/* `done` will not come; it goes on. */
void agx_docker_guard_abandon(struct agx_docker *d, const char *sandbox_id);

bool agx_docker_guard_has(const struct agx_docker *d, const char *sandbox_id);
void agx_docker_guard_stop(struct agx_docker *d, const char *sandbox_id);
/* For the end of the backend. */
void agx_docker_guard_stop_all(struct agx_docker *d);

/* The entries of a list as the label has it; `ret` has room for AGX_FENCE_EGRESS_MAX, and its names
 * are borrowed from the text. */
int agx_docker_egress_parse(const char *text, struct agx_egress *ret, size_t *ret_n,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * isolate.h: networks of sandboxes, in the fence.
 *
 * Before the first rule the fence is told of all networks of ours that the engine has; whoever
 * comes meanwhile waits for that.
 */
#ifndef AGX_BACKEND_DOCKER_ISOLATE_H
#define AGX_BACKEND_DOCKER_ISOLATE_H

#include "backend/docker/docker_internal.h"

enum { AGX_DOCKER_NET_SUBNETS = 4 };

/* A network as the fence sees it. */
struct agx_docker_net {
    char name[48]; /* of one that was kept ready: ready.h; "": it is named after its sandbox */
    char bridge[16];
    struct agx_subnet subnets[AGX_DOCKER_NET_SUBNETS];
    size_t n_subnets;
};

/* The list of a spec as the label of a network has it, owned: entries with blanks between them, or
 * "" for none. NULL: the sandbox has no list. */
int agx_docker_egress_text(const struct agx_spec *spec, char **ret,
                           struct agx_error **err) AGX_MUST_CHECK;

/* From the engine's description. -AGX_FAILED_PRECONDITION for one that cannot be fenced. */
int agx_docker_net_parse(struct agx_docker_net *n, const json_t *network,
                         struct agx_error **err) AGX_MUST_CHECK;

/* A bridge and, where we have a pool of addresses, a range of them, also as text. */
int agx_docker_net_plan(struct agx_docker *d, struct agx_docker_net *n,
                        char ret_subnet[AGX_SUBNET_TEXT], struct agx_error **err) AGX_MUST_CHECK;

/* What the fence knows it by: one that was kept ready was there before its sandbox. */
static inline const char *agx_docker_net_key(const struct agx_docker_net *n, const char *sandbox_id)
{
    return n->name[0] ? n->name : sandbox_id;
}

struct agx_docker_fencing;

/* Puts a sandbox (by the key above) into the fence, with its egress list (NULL: none). 0: `done`
 * follows, once; 1: isolation is off, nothing follows. */
int agx_docker_fence_put(struct agx_docker *d, const char *sandbox_id,
                         const struct agx_docker_net *n, const char *egress, agx_done_fn done,
                         void *user, struct agx_docker_fencing **ret_fencing,
                         struct agx_error **err) AGX_MUST_CHECK;
/* `done` will not come. Accepts NULL. */
void agx_docker_fence_abandon(struct agx_docker_fencing *f);

/* The engine may have other networks than we know. */
void agx_docker_fence_sync(struct agx_docker *d);

#endif

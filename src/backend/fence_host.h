/* fence_host.h: what the fence must know of the host: ways out, and who answers for names. */
#ifndef AGX_BACKEND_FENCE_HOST_H
#define AGX_BACKEND_FENCE_HOST_H

#include "backend/subnets.h"
#include "core/text.h"

struct agx_fence_host {
    /* Interfaces with a default route or one by a gateway. A bridge that has neither is a network
     * of containers or virtual machines on this host. */
    struct agx_words uplinks;
    /* Name servers of the host, without those on a loopback address. */
    struct agx_subnet_list resolvers;
};

/* Blocks. What resolv.conf says that is no address is skipped, a file that is missing too. */
int agx_fence_host_read(struct agx_fence_host *h, struct agx_error **err) AGX_MUST_CHECK;

/* The name servers in the text of a resolv.conf; for tests also. */
int agx_fence_host_resolvers(struct agx_fence_host *h, struct agx_str text,
                             struct agx_error **err) AGX_MUST_CHECK;

void agx_fence_host_done(struct agx_fence_host *h);

#endif

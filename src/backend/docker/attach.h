/*
 * attach.h: the link to the init of a container whose control channel is its standard input and
 * output, over the engine's attach. See backend/initstream.h.
 */
#ifndef AGX_BACKEND_DOCKER_ATTACH_H
#define AGX_BACKEND_DOCKER_ATTACH_H

#include "backend/docker/engine.h"
#include "backend/initlink.h"

/*
 * The link is closed before the engine is. `key` is that of the container's environment;
 * -AGX_INVALID_ARGUMENT when it is none.
 */
int agx_docker_attach_open(struct agx_docker_engine *e, const char *container, const char *key,
                           const struct agx_initlink_ops *ops, void *user,
                           struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * initlink_attach.h: the link to a container's init whose control channel is its standard input and
 * output, by the engine's attach. See backend/exec/initstream.h.
 */
#ifndef AGX_BACKEND_DOCKER_INITLINK_ATTACH_H
#define AGX_BACKEND_DOCKER_INITLINK_ATTACH_H

#include "backend/docker/api/engine.h"
#include "backend/exec/initlink.h"

/*
 * Close the link before the engine. `key` is the one in the container's environment;
 * -AGX_INVALID_ARGUMENT for an invalid one.
 */
int agx_initlink_attach_open(struct agx_docker_engine *e, const char *container, const char *key,
                             const struct agx_initlink_ops *ops, void *user,
                             struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

#endif

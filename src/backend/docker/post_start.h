/* post_start.h: commands that a companion has run in the primary once it is healthy. */
#ifndef AGX_BACKEND_DOCKER_POST_START_H
#define AGX_BACKEND_DOCKER_POST_START_H

#include "backend/docker/docker_internal.h"

/* By itself from here on, also in later daemons; nothing happens for a companion without such
 * commands. `place` is the companion's in the spec. */
void agx_docker_post_start_start(struct agx_docker_box *box, const struct agx_companion *companion,
                                 size_t place, const char *container);

/* What an earlier daemon has begun goes on. */
void agx_docker_post_start_restore(struct agx_docker *d);

/* The sandbox is about to stop or to be made again, or is gone. */
void agx_docker_post_start_cancel(struct agx_docker_box *box);

#endif

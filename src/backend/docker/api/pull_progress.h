/* pull_progress.h: the progress of a pull: sums up the engine's lines about layers. */
#ifndef AGX_BACKEND_DOCKER_API_PULL_PROGRESS_H
#define AGX_BACKEND_DOCKER_API_PULL_PROGRESS_H

#include "base/json.h"
#include "base/map.h"
#include "core/pull.h"

struct agx_docker_pull_progress {
    struct agx_map by_id;
};

/* `seed` is random: a registry chooses the ids. */
void agx_docker_pull_progress_init(struct agx_docker_pull_progress *l, struct agx_siphash_key seed);
/* Empties it. Accepts NULL. */
void agx_docker_pull_progress_done(struct agx_docker_pull_progress *l);

/* Takes one object of the stream; false: it is not about a layer. */
bool agx_docker_pull_progress_note(struct agx_docker_pull_progress *l, const json_t *line);

/* Sets all except the image. Counts the layers known so far: totals grow while the engine finds out
 * what it needs. */
void agx_docker_pull_progress_sum(const struct agx_docker_pull_progress *l, struct agx_pull *ret);

#endif

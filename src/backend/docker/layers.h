/* layers.h: how far a pull is: the engine's lines about layers, added up. */
#ifndef AGX_BACKEND_DOCKER_LAYERS_H
#define AGX_BACKEND_DOCKER_LAYERS_H

#include "base/json.h"
#include "base/map.h"
#include "core/pull.h"

struct agx_docker_layers {
    struct agx_map by_id;
};

/* `seed` is random: a registry chooses the ids. */
void agx_docker_layers_init(struct agx_docker_layers *l, struct agx_siphash_key seed);
/* Empties it. Accepts NULL. */
void agx_docker_layers_done(struct agx_docker_layers *l);

/* One object of the stream; false: it is about something else than a layer. */
bool agx_docker_layers_note(struct agx_docker_layers *l, const json_t *line);

/* Sets all but the image. Of layers that are known by now: totals grow while the engine finds out
 * what it needs. */
void agx_docker_layers_sum(const struct agx_docker_layers *l, struct agx_pull *ret);

#endif

/* pull_progress.c: adds up what the engine reports about each layer of an image that it pulls. */
#include "backend/docker/api/pull_progress.h"

#include "base/limits.h"

#include "base/banned.h"

struct layer {
    uint64_t current, total; /* bytes of its download */
    bool done;
};

void agx_docker_pull_progress_init(struct agx_docker_pull_progress *l, struct agx_siphash_key seed)
{
    agx_map_init(&l->by_id, seed);
}

void agx_docker_pull_progress_done(struct agx_docker_pull_progress *l)
{
    void *layer;

    if (!l)
        return;
    for (size_t at = 0; agx_map_next(&l->by_id, &at, NULL, &layer);)
        free(layer);
    agx_map_done(&l->by_id);
}

/* NULL: there are too many, or no memory for one more; it is not counted then. */
static struct layer *layer_of(struct agx_docker_pull_progress *l, const char *id)
{
    struct layer *layer = agx_map_get(&l->by_id, agx_str_from(id));

    if (layer || l->by_id.len >= AGX_DOCKER_LAYERS_MAX)
        return layer;
    layer = calloc(1, sizeof(*layer));
    if (!layer || agx_map_put(&l->by_id, agx_str_from(id), layer, NULL) < 0) {
        free(layer);
        return NULL;
    }
    return layer;
}

static uint64_t bytes_of(const json_t *detail, const char *member)
{
    json_int_t n = json_integer_value(json_object_get(detail, member));

    return n > 0 ? (uint64_t)n : 0;
}

bool agx_docker_pull_progress_note(struct agx_docker_pull_progress *l, const json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    const char *status = json_string_value(json_object_get(line, "status"));
    const json_t *detail = json_object_get(line, "progressDetail");
    struct layer *layer;

    /* The "id" of "Pulling from library/x" is the tag. */
    if (!id || !status || strncmp(status, "Pulling from", strlen("Pulling from")) == 0)
        return false;
    layer = layer_of(l, id);
    if (!layer)
        return false;
    if (strcmp(status, "Downloading") == 0) {
        layer->current = bytes_of(detail, "current");
        layer->total = AGX_MAX(bytes_of(detail, "total"), layer->current);
    } else if (strcmp(status, "Download complete") == 0) {
        layer->current = layer->total;
    } else if (strcmp(status, "Pull complete") == 0 || strcmp(status, "Already exists") == 0) {
        layer->current = layer->total;
        layer->done = true;
    }
    return true;
}

void agx_docker_pull_progress_sum(const struct agx_docker_pull_progress *l, struct agx_pull *ret)
{
    void *value;

    ret->layers_total = ret->layers_done = 0;
    ret->bytes_total = ret->bytes_done = 0;
    for (size_t at = 0; agx_map_next(&l->by_id, &at, NULL, &value);) {
        const struct layer *layer = value;

        ret->layers_total++;
        ret->layers_done += layer->done;
        ret->bytes_total += layer->total;
        ret->bytes_done += layer->current;
    }
}

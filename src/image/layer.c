/* layer.c: the layers of the store, by their diff ids. */
#include "image/images_internal.h"

#include "base/mem.h"

#include <stdio.h>

#include "base/banned.h"

struct layer *layer_find(struct agx_images *s, const char *diff_id)
{
    return agx_map_get(&s->layers, agx_str_from(diff_id));
}

int layer_add(struct agx_images *s, const char *diff_id, enum layer_state state,
              struct layer **ret_layer, struct agx_error **err)
{
    struct layer *l = agx_new(struct layer);

    (void)snprintf(l->diff_id, sizeof(l->diff_id), "%s", diff_id);
    l->state = state;
    if (agx_map_put(&s->layers, agx_str_from(diff_id), l, NULL) < 0) {
        free(l);
        return agx_error_no_memory(err);
    }
    *ret_layer = l;
    return 0;
}

void layer_wake(struct layer *l)
{
    layer_ops_wake(&l->waiters);
}

void layer_drop(struct agx_images *s, struct layer *l)
{
    (void)agx_map_remove(&s->layers, agx_str_from(l->diff_id));
    layer_wake(l);
    free(l);
}

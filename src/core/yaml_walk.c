/* yaml_walk.c: visits nodes within a budget, and resolves merge keys. */
#include "core/yaml_walk.h"

#include "base/banned.h"
#include "base/limits.h"
#include "core/text.h"

#define MERGE_DEPTH_MAX 16 /* mappings that merge mappings that merge ... */

const struct agx_yaml_node *agx_yaml_walk_visit(struct agx_yaml_walk *w, uint32_t at)
{
    if (w->budget > 0) {
        w->budget--;
        return agx_yaml_node(w->y, at);
    }
    (void)agx_error_set(w->err, AGX_INVALID_ARGUMENT,
                        "more than %d values, aliases counted each time", AGX_YAML_NODES_MAX);
    return NULL;
}

static bool is_merge_key(const struct agx_yaml_walk *w, const struct agx_yaml_node *key)
{
    return key->plain && agx_str_eq(agx_yaml_text(w->y, key), AGX_STR("<<"));
}

static int add_entry(struct agx_yaml_walk *w, struct agx_yaml_entries *e,
                     struct agx_yaml_entry entry)
{
    struct agx_str key = agx_yaml_text(w->y, entry.key);
    int rc;

    for (size_t i = 0; i < e->len; i++)
        if (agx_str_eq(agx_yaml_text(w->y, e->items[i].key), key))
            return 0;
    if (e->len >= AGX_PAIRS_MAX)
        return agx_yaml_walk_bad(w, entry.key, "a mapping has too many keys");
    rc = agx_text_grow((void **)&e->items, e->len, sizeof(*e->items), w->err);
    if (rc == 0)
        e->items[e->len++] = entry;
    return rc;
}

static int collect(struct agx_yaml_walk *w, const struct agx_yaml_node *map,
                   struct agx_yaml_entries *e, unsigned depth);

/* The value of "<<": a mapping, or a sequence of them. */
static int merge(struct agx_yaml_walk *w, const struct agx_yaml_node *value,
                 struct agx_yaml_entries *e, unsigned depth)
{
    const struct agx_yaml_node *n;
    int rc = 0;

    if (depth == MERGE_DEPTH_MAX)
        return agx_yaml_walk_bad(w, value, "merge keys are nested too deeply");
    if (value->kind == AGX_YAML_MAPPING)
        return collect(w, value, e, depth + 1);
    if (value->kind != AGX_YAML_SEQUENCE)
        return agx_yaml_walk_bad(w, value, "a merge key needs a mapping or a list of mappings");
    for (uint32_t at = value->first; rc == 0 && at; at = w->y->nodes[at].next) {
        n = agx_yaml_walk_visit(w, at);
        if (!n)
            return -AGX_INVALID_ARGUMENT;
        if (n->kind != AGX_YAML_MAPPING)
            return agx_yaml_walk_bad(w, n, "a merge key needs a mapping or a list of mappings");
        rc = collect(w, n, e, depth + 1);
    }
    return rc;
}

static int collect(struct agx_yaml_walk *w, const struct agx_yaml_node *map,
                   struct agx_yaml_entries *e, unsigned depth)
{
    const struct agx_yaml_node *merged = NULL, *key, *value;
    int rc;

    for (uint32_t at = map->first; at; at = w->y->nodes[w->y->nodes[at].next].next) {
        key = agx_yaml_walk_visit(w, at);
        value = key ? agx_yaml_walk_visit(w, w->y->nodes[at].next) : NULL;
        if (!value)
            return -AGX_INVALID_ARGUMENT;
        if (is_merge_key(w, key))
            merged = value; /* after the mapping's own pairs, which win */
        else if ((rc = add_entry(w, e, (struct agx_yaml_entry){ key, value })) < 0)
            return rc;
    }
    return merged ? merge(w, merged, e, depth) : 0;
}

void agx_yaml_entries_done(struct agx_yaml_entries *e)
{
    free(e->items);
}

int agx_yaml_walk_entries(struct agx_yaml_walk *w, const struct agx_yaml_node *n,
                          struct agx_yaml_entries *e)
{
    if (n->kind != AGX_YAML_MAPPING)
        return agx_yaml_walk_bad(w, n, "expected a mapping");
    return collect(w, n, e, 0);
}

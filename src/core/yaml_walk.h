/*
 * yaml_walk.h: a walk through a YAML document that is read into values. Aliases and merge keys
 * ("<<") may visit a node many times, so that every visit is counted.
 */
#ifndef AGX_CORE_YAML_WALK_H
#define AGX_CORE_YAML_WALK_H

#include "core/yaml.h"

struct agx_yaml_walk {
    const struct agx_yaml *y;
    unsigned budget; /* visits that are left; AGX_YAML_NODES_MAX at first */
    struct agx_error **err;
};

/* The pairs of a mapping with those that it merges, each key once; the nearest wins. */
struct agx_yaml_entry {
    const struct agx_yaml_node *key, *value;
};

struct agx_yaml_entries {
    struct agx_yaml_entry *items;
    size_t len;
};

/* What is wrong with a node, with its line: -AGX_INVALID_ARGUMENT. Here, so that whoever analyses
 * the callers knows that it never returns 0. */
static inline int agx_yaml_walk_bad(struct agx_yaml_walk *w, const struct agx_yaml_node *n,
                                    const char *what)
{
    return agx_error_set(w->err, AGX_INVALID_ARGUMENT, "line %u: %s", n->line, what);
}

/* The node at a place; NULL, and the error, when there were too many. */
const struct agx_yaml_node *agx_yaml_walk_visit(struct agx_yaml_walk *w, uint32_t at);

/* All pairs of what must be a mapping. `e` is zeroed, and to be done with also after a failure. */
int agx_yaml_walk_entries(struct agx_yaml_walk *w, const struct agx_yaml_node *n,
                          struct agx_yaml_entries *e) AGX_MUST_CHECK;
void agx_yaml_entries_done(struct agx_yaml_entries *e);

#endif

/*
 * yaml_walk.h: walks a YAML document to read it into values. Aliases and merge keys ("<<") may
 * visit a node many times, so every visit is counted.
 */
#ifndef AGX_CORE_YAML_WALK_H
#define AGX_CORE_YAML_WALK_H

#include "core/yaml.h"

struct agx_yaml_walk {
    const struct agx_yaml *y;
    unsigned budget; /* remaining visits; initially AGX_YAML_NODES_MAX */
    struct agx_error **err;
};

/* The pairs of a mapping and of those it merges, each key once; the nearest wins. */
struct agx_yaml_entry {
    const struct agx_yaml_node *key, *value;
};

struct agx_yaml_entries {
    struct agx_yaml_entry *items;
    size_t len;
};

/* An error about a node, with its line: -AGX_INVALID_ARGUMENT. Inline, so that static analysis of
 * the callers sees that it never returns 0. */
static inline int agx_yaml_walk_bad(struct agx_yaml_walk *w, const struct agx_yaml_node *n,
                                    const char *what)
{
    return agx_error_set(w->err, AGX_INVALID_ARGUMENT, "line %u: %s", n->line, what);
}

/* The node at an index; NULL, and the error, after too many visits. */
const struct agx_yaml_node *agx_yaml_walk_visit(struct agx_yaml_walk *w, uint32_t at);

/* All pairs of a node that must be a mapping. `e` must be zeroed; free it also after failure. */
int agx_yaml_walk_entries(struct agx_yaml_walk *w, const struct agx_yaml_node *n,
                          struct agx_yaml_entries *e) AGX_MUST_CHECK;
void agx_yaml_entries_done(struct agx_yaml_entries *e);

#endif

/*
 * yaml.h: one YAML document as a tree of nodes, read with a budget.
 *
 * libyaml parses the text; the tree is ours, with limits. Only the first document is read. An alias
 * refers to an earlier node, never to one that contains it, so every walk ends. Aliases can make a
 * walk visit a node many times, so a walk must count its steps.
 */
#ifndef AGX_CORE_YAML_H
#define AGX_CORE_YAML_H

#include "base/buf.h"

enum agx_yaml_kind { AGX_YAML_SCALAR, AGX_YAML_SEQUENCE, AGX_YAML_MAPPING, AGX_YAML_ALIAS };

/* Nodes refer to each other by index; 0 means "no node". */
struct agx_yaml_node {
    enum agx_yaml_kind kind;
    bool plain;      /* a scalar without quotes, which may be a number, null, ... */
    uint32_t line;   /* 1 and up */
    uint32_t first;  /* first child; a mapping's are key, value, key, value, ... */
    uint32_t next;   /* next sibling */
    uint32_t target; /* of an alias */
    size_t at, len;  /* of a scalar's text in `text` */
};

struct agx_yaml {
    struct agx_yaml_node *nodes; /* nodes[0] is not used */
    size_t len;
    struct agx_buf text;
};

/* The document's own node. */
#define AGX_YAML_ROOT 1

/*
 * -AGX_INVALID_ARGUMENT with the line for text that is not YAML or not UTF-8, for a duplicate key,
 * a key that is not a scalar, a NUL in a scalar, nesting deeper than AGX_DEPTH_MAX, more than
 * `max_nodes` nodes or AGX_YAML_ANCHORS_MAX anchors; "EOF" when there is no document. `y` must be
 * zeroed; after a failure it is empty.
 */
int agx_yaml_parse(struct agx_yaml *y, struct agx_str bytes, size_t max_nodes,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_yaml_done(struct agx_yaml *y);

/* Borrowed; an alias is resolved to its node. */
const struct agx_yaml_node *agx_yaml_node(const struct agx_yaml *y, uint32_t at);
/* The text of a scalar; valid UTF-8 without NUL. */
struct agx_str agx_yaml_text(const struct agx_yaml *y, const struct agx_yaml_node *n);

/* Is it a plain scalar that means null: empty, "~", "null"? */
bool agx_yaml_is_null(const struct agx_yaml *y, const struct agx_yaml_node *n);
/* Parses a plain scalar: true, yes, on, y and their opposites, as in YAML 1.1. False otherwise. */
bool agx_yaml_bool(const struct agx_yaml *y, const struct agx_yaml_node *n, bool *ret);
/* Parses a plain scalar, 0 to `max`, decimal, 0x, 0o or 0b; a fraction is cut off. */
bool agx_yaml_unsigned(const struct agx_yaml *y, const struct agx_yaml_node *n, uint64_t max,
                       uint64_t *ret);

#endif

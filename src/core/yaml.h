/*
 * yaml.h: one YAML document as a tree of nodes, read with a budget.
 *
 * libyaml reads the text, event by event; the tree is ours, with limits. Only the first document of
 * the bytes is read. An alias stands for a node in front of it, never for one that it is part of,
 * so that every walk ends; a walk that could visit a node many times by aliases has to count its
 * steps.
 */
#ifndef AGX_CORE_YAML_H
#define AGX_CORE_YAML_H

#include "base/buf.h"

enum agx_yaml_kind { AGX_YAML_SCALAR, AGX_YAML_SEQUENCE, AGX_YAML_MAPPING, AGX_YAML_ALIAS };

/* Nodes are named by their place; 0 is no node. */
struct agx_yaml_node {
    enum agx_yaml_kind kind;
    bool plain;      /* a scalar without quotes, of which some words have a meaning */
    uint32_t line;   /* 1 and up */
    uint32_t first;  /* of a sequence or mapping; a mapping's are key, value, key, value, ... */
    uint32_t next;   /* in the same sequence or mapping */
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
 * -AGX_INVALID_ARGUMENT with the line for what is no YAML, not UTF-8, has a key twice or a key that
 * is no scalar, a NUL in a scalar, is deeper than AGX_DEPTH_MAX, has more than `max_nodes` nodes or
 * AGX_YAML_ANCHORS_MAX anchors;
 * "EOF" when there is no document. `y` is zeroed; it holds nothing after a failure.
 */
int agx_yaml_parse(struct agx_yaml *y, struct agx_str bytes, size_t max_nodes,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_yaml_done(struct agx_yaml *y);

/* Borrowed; what an alias stands for, otherwise the node itself. */
const struct agx_yaml_node *agx_yaml_node(const struct agx_yaml *y, uint32_t at);
/* Of a scalar; valid UTF-8 without NUL. */
struct agx_str agx_yaml_text(const struct agx_yaml *y, const struct agx_yaml_node *n);

/* A plain scalar that says nothing: empty, "~", "null". */
bool agx_yaml_is_null(const struct agx_yaml *y, const struct agx_yaml_node *n);
/* A plain scalar: true, yes, on, y and their opposites, as YAML 1.1 has them. False otherwise. */
bool agx_yaml_bool(const struct agx_yaml *y, const struct agx_yaml_node *n, bool *ret);
/* A plain scalar that is a number of 0 to `max`, decimal, 0x, 0o or 0b; a fraction is cut off. */
bool agx_yaml_unsigned(const struct agx_yaml *y, const struct agx_yaml_node *n, uint64_t max,
                       uint64_t *ret);

#endif

/*
 * heap.h: a binary heap of deadlines, with nodes embedded in the objects they belong to.
 *
 *     agx_heap_put(&h, &call->deadline, at_ms);
 *     while ((n = agx_heap_peek(&h)) && n->key <= now_ms)
 *         ... container_of(n, struct call, deadline) ...
 */
#ifndef AGX_BASE_HEAP_H
#define AGX_BASE_HEAP_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct agx_heap_node {
    uint64_t key;
    size_t place; /* 1 and up; 0: in no heap */
};

struct agx_heap {
    struct agx_heap_node **nodes; /* owned; nodes[0] is not used */
    size_t len, cap;
};

static inline bool agx_heap_has(const struct agx_heap_node *n)
{
    return n->place > 0;
}

/* Adds a node that is in no heap. Without memory: -AGX_RESOURCE_EXHAUSTED, and the heap is
 * unchanged. */
int agx_heap_put(struct agx_heap *h, struct agx_heap_node *n, uint64_t key) AGX_MUST_CHECK;
/* Removes it; no effect when it is in no heap. */
void agx_heap_remove(struct agx_heap *h, struct agx_heap_node *n);
/* The node with the smallest key, or NULL. Borrowed. */
struct agx_heap_node *agx_heap_peek(const struct agx_heap *h);
/* Frees the heap's own memory; the caller owns the nodes. Accepts NULL. */
void agx_heap_done(struct agx_heap *h);

#endif

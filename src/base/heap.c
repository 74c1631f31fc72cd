/* heap.c: a binary heap. Invariant: no node's key is smaller than its parent's (place / 2). */
#include "base/heap.h"

#include "base/banned.h"
#include "base/error.h"

static void place(struct agx_heap *h, struct agx_heap_node *n, size_t at)
{
    h->nodes[at] = n;
    n->place = at;
}

static void sift_up(struct agx_heap *h, struct agx_heap_node *n, size_t at)
{
    for (; at > 1 && h->nodes[at / 2]->key > n->key; at /= 2)
        place(h, h->nodes[at / 2], at);
    place(h, n, at);
}

static void sift_down(struct agx_heap *h, struct agx_heap_node *n, size_t at)
{
    for (;;) {
        size_t child = 2 * at;

        if (child < h->len && h->nodes[child + 1]->key < h->nodes[child]->key)
            child++;
        if (child > h->len || h->nodes[child]->key >= n->key)
            break;
        place(h, h->nodes[child], at);
        at = child;
    }
    place(h, n, at);
}

int agx_heap_put(struct agx_heap *h, struct agx_heap_node *n, uint64_t key)
{
    if (h->len + 1 >= h->cap) {
        size_t cap = h->cap > 0 ? h->cap * 2 : 16;
        struct agx_heap_node **nodes = realloc(h->nodes, cap * sizeof(struct agx_heap_node *));

        if (!nodes)
            return -AGX_RESOURCE_EXHAUSTED;
        h->nodes = nodes;
        h->cap = cap;
    }
    n->key = key;
    sift_up(h, n, ++h->len);
    return 0;
}

void agx_heap_remove(struct agx_heap *h, struct agx_heap_node *n)
{
    struct agx_heap_node *last;
    size_t at = n->place;

    if (at == 0)
        return;
    n->place = 0;
    last = h->nodes[h->len--];
    if (last == n)
        return;
    if (at > 1 && h->nodes[at / 2]->key > last->key)
        sift_up(h, last, at);
    else
        sift_down(h, last, at);
}

struct agx_heap_node *agx_heap_peek(const struct agx_heap *h)
{
    return h->len > 0 ? h->nodes[1] : NULL;
}

void agx_heap_done(struct agx_heap *h)
{
    if (!h)
        return;
    free(h->nodes);
    *h = (struct agx_heap){ 0 };
}

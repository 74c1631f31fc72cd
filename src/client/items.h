/* items.h: a queue of the items of a call, in either direction. */
#ifndef AGX_CLIENT_ITEMS_H
#define AGX_CLIENT_ITEMS_H

#include "base/str.h"

struct agx_item {
    struct agx_item *next;
    uint64_t seq;
    bool end; /* marks the end of the input; without bytes */
    size_t len;
    char bytes[];
};

struct agx_items {
    struct agx_item *first, **last;
};

void agx_items_init(struct agx_items *q);
/* Frees its items; it can be used again. */
void agx_items_clear(struct agx_items *q);

/* A copy of the bytes, in no queue; NULL without memory. The caller frees it with free(). */
struct agx_item *agx_item_new(struct agx_str bytes, uint64_t seq);
/* Takes the item. */
void agx_items_push(struct agx_items *q, struct agx_item *item);
/* Removes the first item, which the caller owns; NULL: the queue is empty. */
struct agx_item *agx_items_pop(struct agx_items *q);

#endif

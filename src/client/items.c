/* items.c: the queue of items. */
#include "client/items.h"

#include "base/banned.h"

void agx_items_init(struct agx_items *q)
{
    q->first = NULL;
    q->last = &q->first;
}

void agx_items_push(struct agx_items *q, struct agx_item *item)
{
    *q->last = item;
    q->last = &item->next;
}

struct agx_item *agx_items_pop(struct agx_items *q)
{
    struct agx_item *item = q->first;

    if (!item)
        return NULL;
    q->first = item->next;
    if (!q->first)
        q->last = &q->first;
    return item;
}

void agx_items_clear(struct agx_items *q)
{
    struct agx_item *item;

    while ((item = agx_items_pop(q)))
        free(item);
}

struct agx_item *agx_item_new(struct agx_str bytes, uint64_t seq)
{
    struct agx_item *item = malloc(sizeof(*item) + bytes.len);

    if (!item)
        return NULL;
    *item = (struct agx_item){ .seq = seq, .len = bytes.len };
    if (bytes.len > 0)
        memcpy(item->bytes, bytes.ptr, bytes.len);
    return item;
}

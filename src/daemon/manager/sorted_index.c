/* sorted_index.c: a sorted array. */
#include "daemon/manager/sorted_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void agx_sorted_index_init(struct agx_sorted_index *r, agx_sorted_index_order_fn order)
{
    *r = (struct agx_sorted_index){ .order = order };
}

size_t agx_sorted_index_behind(const struct agx_sorted_index *r, const void *place)
{
    size_t low = 0, high = r->len;

    /* The common case, first in the list, needs no search. */
    if (r->len > 0 && r->order(r->items[r->len - 1], place) > 0)
        return r->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (r->order(r->items[mid], place) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void reserve(struct agx_sorted_index *r)
{
    size_t cap = r->cap > 0 ? 2 * r->cap : 64;
    void **items;

    if (r->len < r->cap)
        return;
    items = reallocarray(r->items, cap, sizeof(void *));
    if (!items)
        abort();
    r->items = items;
    r->cap = cap;
}

void agx_sorted_index_append(struct agx_sorted_index *r, void *item)
{
    reserve(r);
    r->items[r->len++] = item;
}

static int last_first(const void *a, const void *b, void *order)
{
    return (*(agx_sorted_index_order_fn *)order)(*(void *const *)b, *(void *const *)a);
}

void agx_sorted_index_sort(struct agx_sorted_index *r)
{
    if (r->len > 0)
        qsort_r(r->items, r->len, sizeof(void *), last_first, &r->order);
}

void agx_sorted_index_add(struct agx_sorted_index *r, void *item)
{
    size_t at = agx_sorted_index_behind(r, item);

    reserve(r);
    memmove(r->items + at + 1, r->items + at, (r->len - at) * sizeof(void *));
    r->items[at] = item;
    r->len++;
}

void agx_sorted_index_remove(struct agx_sorted_index *r, const void *item)
{
    size_t at = agx_sorted_index_behind(r, item);

    if (at >= r->len || r->items[at] != item)
        return;
    r->len--;
    memmove(r->items + at, r->items + at + 1, (r->len - at) * sizeof(void *));
}

void agx_sorted_index_done(struct agx_sorted_index *r)
{
    if (!r)
        return;
    free(r->items);
    *r = (struct agx_sorted_index){ 0 };
}

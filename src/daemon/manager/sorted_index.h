/*
 * sorted_index.h: a sorted index of items in list order: reading a page costs O(page), not O(list).
 *
 * The array is in reverse order: a new item is often the first of the list, and is then appended
 * cheaply at the array's end.
 */
#ifndef AGX_DAEMON_MANAGER_SORTED_INDEX_H
#define AGX_DAEMON_MANAGER_SORTED_INDEX_H

#include <stddef.h>

/* Negative: `a` comes before `b`. No two items compare equal. */
typedef int (*agx_sorted_index_order_fn)(const void *a, const void *b);

struct agx_sorted_index {
    agx_sorted_index_order_fn order;
    void **items; /* borrowed; in reverse list order */
    size_t len, cap;
};

void agx_sorted_index_init(struct agx_sorted_index *r, agx_sorted_index_order_fn order);
/* Until it is removed, `item` must not move, nor change the fields that `order` compares. */
void agx_sorted_index_add(struct agx_sorted_index *r, void *item);
/* For many items at once: appends unsorted; call agx_sorted_index_sort() afterwards. */
void agx_sorted_index_append(struct agx_sorted_index *r, void *item);
void agx_sorted_index_sort(struct agx_sorted_index *r);
/* No effect for an item that is not in it. */
void agx_sorted_index_remove(struct agx_sorted_index *r, const void *item);
/* How many items come after the position of an item like `place`: they are items[0] up to there, to
 * be read backwards. */
size_t agx_sorted_index_behind(const struct agx_sorted_index *r, const void *place);
/* Accepts NULL. */
void agx_sorted_index_done(struct agx_sorted_index *r);

#endif

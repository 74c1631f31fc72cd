/* roll.c: a sorted array; additions are nearly always at its end. */
#include "daemon/roll.h"

#include "base/banned.h"

size_t agx_roll_behind(const struct agx_roll *r, int64_t created_ns, const char *id)
{
    const struct agx_sandbox place = { .id = (char *)id, .created.wall_ns = created_ns };
    size_t low = 0, high = r->len;

    /* The common case, without a search: newer than all. */
    if (r->len > 0 && agx_sandbox_order(r->items[r->len - 1], &place) > 0)
        return r->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (agx_sandbox_order(r->items[mid], &place) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void reserve(struct agx_roll *r)
{
    size_t cap = r->cap > 0 ? 2 * r->cap : 64;
    struct agx_sandbox **items;

    if (r->len < r->cap)
        return;
    items = reallocarray(r->items, cap, sizeof(struct agx_sandbox *));
    if (!items)
        abort();
    r->items = items;
    r->cap = cap;
}

void agx_roll_append(struct agx_roll *r, struct agx_sandbox *sb)
{
    reserve(r);
    r->items[r->len++] = sb;
}

static int last_first(const void *a, const void *b)
{
    return agx_sandbox_order(*(struct agx_sandbox *const *)b, *(struct agx_sandbox *const *)a);
}

void agx_roll_sort(struct agx_roll *r)
{
    if (r->len > 0)
        qsort(r->items, r->len, sizeof(struct agx_sandbox *), last_first);
}

void agx_roll_add(struct agx_roll *r, struct agx_sandbox *sb)
{
    size_t at = agx_roll_behind(r, sb->created.wall_ns, sb->id);

    reserve(r);
    memmove(r->items + at + 1, r->items + at, (r->len - at) * sizeof(struct agx_sandbox *));
    r->items[at] = sb;
    r->len++;
}

void agx_roll_remove(struct agx_roll *r, const struct agx_sandbox *sb)
{
    size_t at = agx_roll_behind(r, sb->created.wall_ns, sb->id);

    if (at >= r->len || r->items[at] != sb)
        return;
    r->len--;
    memmove(r->items + at, r->items + at + 1, (r->len - at) * sizeof(struct agx_sandbox *));
}

void agx_roll_done(struct agx_roll *r)
{
    if (!r)
        return;
    free(r->items);
    *r = (struct agx_roll){ 0 };
}

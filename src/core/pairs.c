/* pairs.c: a sorted array, since pairs are few and read far more often than changed. */
#include "core/pairs.h"

#include "base/banned.h"
#include "base/limits.h"

/* The index of the key, or where to insert it. */
static size_t pairs_find(const struct agx_pairs *p, struct agx_str key, bool *ret_found)
{
    size_t low = 0, high = p->len;

    *ret_found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct agx_str have = agx_str_from(p->items[mid].key);
        size_t common = AGX_MIN(have.len, key.len);
        int order = common > 0 ? memcmp(have.ptr, key.ptr, common) : 0;

        if (order == 0 && have.len == key.len) {
            *ret_found = true;
            return mid;
        }
        if (order < 0 || (order == 0 && have.len < key.len))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int agx_pairs_set(struct agx_pairs *p, struct agx_str key, struct agx_str value,
                  struct agx_error **err)
{
    _cleanup_free_ char *k = NULL, *v = NULL;
    bool found;
    size_t at = pairs_find(p, key, &found);
    int r;

    if (!found && p->len >= AGX_PAIRS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "a map has more than %d entries",
                             AGX_PAIRS_MAX);
    v = agx_str_dup(value);
    if (!v)
        return agx_error_no_memory(err);
    if (found) {
        free(p->items[at].value);
        p->items[at].value = AGX_TAKE_PTR(v);
        return 0;
    }
    k = agx_str_dup(key);
    if (!k)
        return agx_error_no_memory(err);
    r = agx_text_grow((void **)&p->items, p->len, sizeof(*p->items), err);
    if (r < 0)
        return r;
    memmove(p->items + at + 1, p->items + at, (p->len - at) * sizeof(*p->items));
    p->items[at] = (struct agx_pair){ AGX_TAKE_PTR(k), AGX_TAKE_PTR(v) };
    p->len++;
    return 0;
}

const char *agx_pairs_get(const struct agx_pairs *p, const char *key)
{
    bool found;
    size_t at = pairs_find(p, agx_str_from(key), &found);

    return found ? p->items[at].value : NULL;
}

int agx_pairs_merge(struct agx_pairs *p, const struct agx_pairs *over, struct agx_error **err)
{
    for (size_t i = 0; i < over->len; i++) {
        int r = agx_pairs_set(p, agx_str_from(over->items[i].key),
                              agx_str_from(over->items[i].value), err);

        if (r < 0)
            return r;
    }
    return 0;
}

void agx_pairs_done(struct agx_pairs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->len; i++) {
        free(p->items[i].key);
        free(p->items[i].value);
    }
    free(p->items);
    *p = (struct agx_pairs){ 0 };
}

/*
 * singleflight.c: shared fetches.
 *
 * Invariants:
 *  (1) what is in the list has at least one request; cancelling the last one ends it;
 *  (2) what is reporting its end is not in that list: a new request begins anew;
 *  (3) after any callback, `gone` says whether it was freed.
 */
#include "image/singleflight.h"

#include "base/mem.h"

#include "base/banned.h"

/* ---- lists ---- */

static struct agx_singleflight_waiter *first_want(const struct agx_singleflight *w)
{
    return AGX_LIST_FIRST(&w->wants, struct agx_singleflight_waiter, node);
}

static void unlist_want(struct agx_singleflight_waiter *want)
{
    struct agx_singleflight *w = want->flight;

    if (w->told_next == want)
        w->told_next = AGX_LIST_NEXT(&w->wants, want, node);
    agx_list_remove(&want->node);
}

/* ---- the beginning ---- */

struct agx_singleflight *agx_singleflight_find(const struct agx_singleflight_list *list,
                                               const char *key)
{
    AGX_LIST_FOR_EACH (struct agx_singleflight, w, &list->all, node)
        if (w->key && strcmp(w->key, key) == 0)
            return w;
    return NULL;
}

void agx_singleflight_begin(struct agx_singleflight *w, struct agx_singleflight_list *list,
                            char **take_key)
{
    *w =
        (struct agx_singleflight){ .list = list, .key = take_key ? AGX_TAKE_PTR(*take_key) : NULL };
    agx_list_push_front(&list->all, &w->node);
}

void agx_singleflight_join(struct agx_singleflight *w, struct agx_singleflight_waiter *want)
{
    want->flight = w;
    agx_list_push_front(&w->wants, &want->node);
}

/* ---- news ---- */

uint64_t agx_singleflight_due_ms(const struct agx_singleflight *w)
{
    uint64_t passed = uv_now(agx_loop_uv(w->list->loop)) - w->told_ms;

    return w->told_ms == 0 || passed >= w->list->progress_ms ? 0 : w->list->progress_ms - passed;
}

bool agx_singleflight_is_due(const struct agx_singleflight *w)
{
    return agx_singleflight_due_ms(w) == 0;
}

void agx_singleflight_tell(struct agx_singleflight *w, const struct agx_pull *p)
{
    bool gone = false;

    w->told_ms = uv_now(agx_loop_uv(w->list->loop));
    w->gone = &gone;
    for (w->told_next = first_want(w); !gone && w->told_next;) {
        struct agx_singleflight_waiter *want = w->told_next;

        w->told_next = AGX_LIST_NEXT(&w->wants, want, node);
        if (want->progress)
            want->progress(want->user, p);
    }
    if (!gone)
        w->gone = NULL;
}

/* ---- the end ---- */

/* It is in no list. */
static void singleflight_drop(struct agx_singleflight *w)
{
    struct agx_singleflight_waiter *want;

    if (w->gone)
        *w->gone = true;
    while ((want = first_want(w))) {
        unlist_want(want);
        free(want);
    }
    free(w->key);
    w->list->free(w);
}

void agx_singleflight_end(struct agx_singleflight *w,
                          void (*tell)(struct agx_singleflight_waiter *want, void *context),
                          void *context)
{
    struct agx_singleflight_list *list = w->list;
    struct agx_singleflight_waiter *want;
    bool gone = false;

    agx_list_remove(&w->node);
    agx_list_push_front(&list->telling, &w->node);
    w->ends = true;
    while (!gone && (want = first_want(w))) {
        unlist_want(want);
        w->gone = &gone;
        tell(want, context);
        free(want);
    }
    if (gone)
        return;
    w->gone = NULL;
    agx_list_remove(&w->node);
    singleflight_drop(w);
}

void agx_singleflight_cancel(struct agx_singleflight_waiter *want)
{
    struct agx_singleflight *w;

    if (!want)
        return;
    w = want->flight;
    unlist_want(want);
    free(want);
    if (first_want(w) || w->ends) /* one that tells its end goes by itself */
        return;
    agx_list_remove(&w->node);
    singleflight_drop(w);
}

void agx_singleflight_close(struct agx_singleflight_list *list)
{
    struct agx_singleflight *w;

    while ((w = AGX_LIST_TAKE(&list->all, struct agx_singleflight, node)) ||
           (w = AGX_LIST_TAKE(&list->telling, struct agx_singleflight, node)))
        singleflight_drop(w);
}

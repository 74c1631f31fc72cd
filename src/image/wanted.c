/*
 * wanted.c: shared fetches.
 *
 * Invariants:
 *  (1) what is in the list has at least one request; cancelling the last one ends it;
 *  (2) what is reporting its end is not in that list: a new request begins anew;
 *  (3) after any callback, `gone` says whether it was freed.
 */
#include "image/wanted.h"

#include "base/mem.h"

#include "base/banned.h"

/* ---- lists ---- */

static struct agx_want *first_want(const struct agx_wanted *w)
{
    return AGX_LIST_FIRST(&w->wants, struct agx_want, node);
}

static void unlist_want(struct agx_want *want)
{
    struct agx_wanted *w = want->wanted;

    if (w->told_next == want)
        w->told_next = AGX_LIST_NEXT(&w->wants, want, node);
    agx_list_remove(&want->node);
}

/* ---- the beginning ---- */

struct agx_wanted *agx_wanted_find(const struct agx_wanted_list *list, const char *key)
{
    AGX_LIST_FOR_EACH (struct agx_wanted, w, &list->all, node)
        if (w->key && strcmp(w->key, key) == 0)
            return w;
    return NULL;
}

void agx_wanted_begin(struct agx_wanted *w, struct agx_wanted_list *list, char **take_key)
{
    *w = (struct agx_wanted){ .list = list, .key = take_key ? AGX_TAKE_PTR(*take_key) : NULL };
    agx_list_push_front(&list->all, &w->node);
}

void agx_wanted_join(struct agx_wanted *w, struct agx_want *want)
{
    want->wanted = w;
    agx_list_push_front(&w->wants, &want->node);
}

/* ---- news ---- */

uint64_t agx_wanted_due_ms(const struct agx_wanted *w)
{
    uint64_t passed = uv_now(agx_loop_uv(w->list->loop)) - w->told_ms;

    return w->told_ms == 0 || passed >= w->list->progress_ms ? 0 : w->list->progress_ms - passed;
}

bool agx_wanted_is_due(const struct agx_wanted *w)
{
    return agx_wanted_due_ms(w) == 0;
}

void agx_wanted_tell(struct agx_wanted *w, const struct agx_pull *p)
{
    bool gone = false;

    w->told_ms = uv_now(agx_loop_uv(w->list->loop));
    w->gone = &gone;
    for (w->told_next = first_want(w); !gone && w->told_next;) {
        struct agx_want *want = w->told_next;

        w->told_next = AGX_LIST_NEXT(&w->wants, want, node);
        if (want->progress)
            want->progress(want->user, p);
    }
    if (!gone)
        w->gone = NULL;
}

/* ---- the end ---- */

/* It is in no list. */
static void drop(struct agx_wanted *w)
{
    struct agx_want *want;

    if (w->gone)
        *w->gone = true;
    while ((want = first_want(w))) {
        unlist_want(want);
        free(want);
    }
    free(w->key);
    w->list->free(w);
}

void agx_wanted_end(struct agx_wanted *w, void (*tell)(struct agx_want *want, void *context),
                    void *context)
{
    struct agx_wanted_list *list = w->list;
    struct agx_want *want;
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
    drop(w);
}

void agx_want_cancel(struct agx_want *want)
{
    struct agx_wanted *w;

    if (!want)
        return;
    w = want->wanted;
    unlist_want(want);
    free(want);
    if (first_want(w) || w->ends) /* one that tells its end goes by itself */
        return;
    agx_list_remove(&w->node);
    drop(w);
}

void agx_wanted_close(struct agx_wanted_list *list)
{
    struct agx_wanted *w;

    while ((w = AGX_LIST_TAKE(&list->all, struct agx_wanted, node)) ||
           (w = AGX_LIST_TAKE(&list->telling, struct agx_wanted, node)))
        drop(w);
}

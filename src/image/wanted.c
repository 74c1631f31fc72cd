/*
 * wanted.c: who wants what.
 *
 * Invariants:
 *  (1) what is in the list has somebody who wants it; the last who cancels ends it;
 *  (2) what tells its end is not in that list: who comes then begins anew;
 *  (3) after any callback of a user `gone` says whether it is still there.
 */
#include "image/wanted.h"

#include "base/mem.h"

#include "base/banned.h"

/* ---- lists ---- */

static void unlist_want(struct agx_want *want)
{
    struct agx_wanted *w = want->wanted;

    if (w->told_next == want)
        w->told_next = want->next;
    *(want->prev ? &want->prev->next : &w->wants) = want->next;
    if (want->next)
        want->next->prev = want->prev;
}

static void enlist(struct agx_wanted **list, struct agx_wanted *w)
{
    w->prev = NULL;
    w->next = *list;
    if (w->next)
        w->next->prev = w;
    *list = w;
}

static void unlist(struct agx_wanted **list, struct agx_wanted *w)
{
    *(w->prev ? &w->prev->next : list) = w->next;
    if (w->next)
        w->next->prev = w->prev;
}

/* ---- the beginning ---- */

struct agx_wanted *agx_wanted_find(const struct agx_wanted_list *list, const char *key)
{
    for (struct agx_wanted *w = list->first; w; w = w->next)
        if (w->key && strcmp(w->key, key) == 0)
            return w;
    return NULL;
}

void agx_wanted_begin(struct agx_wanted *w, struct agx_wanted_list *list, char **take_key)
{
    *w = (struct agx_wanted){ .list = list, .key = take_key ? AGX_TAKE_PTR(*take_key) : NULL };
    enlist(&list->first, w);
}

void agx_wanted_join(struct agx_wanted *w, struct agx_want *want)
{
    want->wanted = w;
    want->prev = NULL;
    want->next = w->wants;
    if (want->next)
        want->next->prev = want;
    w->wants = want;
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
    for (w->told_next = w->wants; !gone && w->told_next;) {
        struct agx_want *want = w->told_next;

        w->told_next = want->next;
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
    if (w->gone)
        *w->gone = true;
    while (w->wants) {
        struct agx_want *want = w->wants;

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
    bool gone = false;

    unlist(&list->first, w);
    enlist(&list->telling, w);
    w->ends = true;
    while (!gone && w->wants) {
        struct agx_want *want = w->wants;

        unlist_want(want);
        w->gone = &gone;
        tell(want, context);
        free(want);
    }
    if (gone)
        return;
    w->gone = NULL;
    unlist(&list->telling, w);
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
    if (w->wants || w->ends) /* one that tells its end goes by itself */
        return;
    unlist(&w->list->first, w);
    drop(w);
}

void agx_wanted_close(struct agx_wanted_list *list)
{
    while (list->first || list->telling) {
        struct agx_wanted **from = list->first ? &list->first : &list->telling, *w = *from;

        unlist(from, w);
        drop(w);
    }
}

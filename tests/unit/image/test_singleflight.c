#include "base/mem.h"
#include "image/singleflight.h"
#include "tests/support/test.h"

struct thing {
    struct agx_singleflight flight;
    bool *freed;
};

/* What one who wants a thing does when told, and what was told. */
struct listener {
    struct agx_singleflight_waiter *want;
    struct agx_singleflight_waiter *cancels; /* on progress, once */
    struct agx_singleflight_list *closes;
    unsigned n_progress, n_ends;
    uint64_t bytes;
};

static void thing_free(struct agx_singleflight *w)
{
    struct thing *t = container_of(w, struct thing, flight);

    *t->freed = true;
    free(t);
}

static void on_progress(void *user, const struct agx_pull *p)
{
    struct listener *l = user;

    l->n_progress++;
    l->bytes = p->bytes_done;
    agx_singleflight_cancel(AGX_TAKE_PTR(l->cancels));
    if (l->closes)
        agx_singleflight_close(l->closes);
}

static void tell_end(struct agx_singleflight_waiter *want, void *context)
{
    struct listener *l = want->user;

    l->n_ends++;
    *(unsigned *)context += 1;
    /* What tells its end cannot be joined: whoever comes now begins anew. */
    ASSERT_NULL(agx_singleflight_find(want->flight->list, "a"));
    if (l->closes)
        agx_singleflight_close(l->closes);
}

static struct agx_singleflight_list open_list(uint64_t progress_ms)
{
    struct agx_singleflight_list list = { .progress_ms = progress_ms, .free = thing_free };

    ASSERT_OK(agx_loop_open(&list.loop, NULL));
    return list;
}

static void close_list(struct agx_singleflight_list *list)
{
    agx_singleflight_close(list);
    ASSERT_OK(agx_loop_close(list->loop, NULL));
}

static struct agx_singleflight *begin(struct agx_singleflight_list *list, const char *key,
                                      bool *freed)
{
    struct thing *t = agx_new(struct thing);
    char *text = key ? strdup(key) : NULL;

    *freed = false;
    t->freed = freed;
    agx_singleflight_begin(&t->flight, list, key ? &text : NULL);
    ASSERT_NULL(text);
    return &t->flight;
}

static void join(struct agx_singleflight *w, struct listener *l)
{
    l->want = agx_new(struct agx_singleflight_waiter);
    l->want->progress = on_progress;
    l->want->user = l;
    agx_singleflight_join(w, l->want);
}

TEST(singleflight_is_found_by_its_key_and_all_hear_of_it)
{
    struct agx_singleflight_list list = open_list(0);
    struct listener a = { 0 }, b = { 0 }, alone = { 0 };
    bool freed, freed_alone;
    unsigned told = 0;
    struct agx_singleflight *w = begin(&list, "a", &freed);

    join(w, &a);
    join(begin(&list, NULL, &freed_alone), &alone);
    ASSERT_TRUE(agx_singleflight_find(&list, "a") == w);
    ASSERT_NULL(agx_singleflight_find(&list, "b"));
    join(w, &b);
    agx_singleflight_tell(w, &(struct agx_pull){ .bytes_done = 7 });
    ASSERT_UINT(7, a.bytes);
    ASSERT_UINT(7, b.bytes);
    ASSERT_UINT(0, alone.n_progress);
    agx_singleflight_end(w, tell_end, &told);
    ASSERT_UINT(2, told);
    ASSERT_UINT(1, a.n_ends);
    ASSERT_UINT(1, b.n_ends);
    ASSERT_TRUE(freed);
    ASSERT_FALSE(freed_alone);
    close_list(&list);
    ASSERT_TRUE(freed_alone);
    ASSERT_UINT(0, alone.n_ends);
}

TEST(singleflight_goes_when_the_last_who_wants_it_cancels)
{
    struct agx_singleflight_list list = open_list(0);
    struct listener a = { 0 }, b = { 0 };
    bool freed;
    struct agx_singleflight *w = begin(&list, "a", &freed);

    join(w, &a);
    join(w, &b);
    agx_singleflight_cancel(NULL);
    agx_singleflight_cancel(a.want);
    ASSERT_FALSE(freed);
    agx_singleflight_cancel(b.want);
    ASSERT_TRUE(freed);
    ASSERT_NULL(agx_singleflight_find(&list, "a"));
    ASSERT_UINT(0, a.n_progress + a.n_ends + b.n_progress + b.n_ends);
    close_list(&list);
}

/* `b` joined last and is told first. */
TEST(singleflight_copes_with_a_listener_that_cancels_another_or_itself)
{
    struct agx_singleflight_list list = open_list(0);
    struct listener a = { 0 }, b = { 0 };
    bool freed;
    struct agx_singleflight *w = begin(&list, "a", &freed);

    join(w, &a);
    join(w, &b);
    b.cancels = a.want;
    agx_singleflight_tell(w, &(struct agx_pull){ 0 });
    ASSERT_UINT(0, a.n_progress);
    ASSERT_UINT(1, b.n_progress);
    ASSERT_FALSE(freed);
    b.cancels = b.want;
    agx_singleflight_tell(w, &(struct agx_pull){ 0 });
    ASSERT_TRUE(freed);
    close_list(&list);
}

TEST(singleflight_copes_with_a_listener_that_closes_all)
{
    struct agx_singleflight_list list = open_list(0);
    struct listener a = { 0 }, b = { .closes = &list };
    unsigned told = 0;
    bool freed;
    struct agx_singleflight *w = begin(&list, "a", &freed);

    join(w, &a);
    join(w, &b);
    agx_singleflight_tell(w, &(struct agx_pull){ 0 });
    ASSERT_TRUE(freed);
    ASSERT_UINT(0, a.n_progress);
    w = begin(&list, "a", &freed);
    join(w, &a);
    join(w, &b);
    agx_singleflight_end(w, tell_end, &told);
    ASSERT_TRUE(freed);
    ASSERT_UINT(1, told);
    ASSERT_UINT(0, a.n_ends);
    close_list(&list);
}

TEST(singleflight_is_due_for_news_at_first_and_then_not_too_often)
{
    struct agx_singleflight_list list = open_list(UINT64_MAX);
    struct listener a = { 0 };
    bool freed;
    struct agx_singleflight *w = begin(&list, "a", &freed);

    join(w, &a);
    ASSERT_TRUE(agx_singleflight_is_due(w));
    agx_singleflight_tell(w, &(struct agx_pull){ 0 });
    ASSERT_FALSE(agx_singleflight_is_due(w));
    list.progress_ms = 0;
    ASSERT_TRUE(agx_singleflight_is_due(w));
    close_list(&list);
}

/* feed.c: readers of events. */
#include "daemon/manager/feed_internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "daemon/manager/manager_internal.h"
#include "wire/reply.h"

#include <inttypes.h>

#include "base/banned.h"

struct agx_feed {
    struct agx_feeds *feeds;      /* NULL: the manager is gone */
    struct agx_feed_group *group; /* NULL: the sandbox was purged */
    struct agx_unit *unit;        /* NULL: of all */
    struct agx_list_node node;    /* in the group */
    struct agx_list_node told;    /* among those that are to be told */
    uint64_t from;                /* the last that was given */
    bool waits;                   /* it was told that there is nothing */
    const struct agx_feed_ops *ops;
    void *user;
};

/* An event of this turn, shared by all readers. */
struct agx_fresh {
    struct agx_list_node node;    /* in the group of all */
    struct agx_list_node of_unit; /* in that of its sandbox */
    uint64_t position;
    char *sandbox_id;
    struct agx_event event;
    struct agx_buf encoded;
};

void agx_feeds_init(struct agx_feeds *f, struct agx_manager *e)
{
    *f = (struct agx_feeds){ .manager = e, .read_encoded = AGX_BUF_INIT(AGX_STORE_BATCH_MAX) };
}

static void fresh_free(struct agx_fresh *x)
{
    free(x->sandbox_id);
    agx_event_done(&x->event);
    agx_buf_done(&x->encoded);
    free(x);
}

/* Frees the turn's events: readers use the store from now on. */
static void drop_fresh(struct agx_feeds *f)
{
    struct agx_fresh *x;

    while ((x = AGX_LIST_TAKE(&f->all.fresh, struct agx_fresh, node))) {
        agx_list_remove(&x->of_unit);
        fresh_free(x);
    }
}

static void orphan(struct agx_feed_group *g)
{
    struct agx_feed *feed;

    while ((feed = AGX_LIST_TAKE(&g->feeds, struct agx_feed, node))) {
        agx_list_remove(&feed->told);
        feed->feeds = NULL;
    }
}

void agx_feeds_done(struct agx_feeds *f)
{
    void *value;

    drop_fresh(f);
    orphan(&f->all);
    orphan(&f->ended);
    for (size_t at = 0; agx_map_next(&f->manager->units, &at, NULL, &value);)
        orphan(&((struct agx_unit *)value)->feeds);
    agx_event_record_done(&f->read);
    agx_buf_done(&f->read_encoded);
}

/* ---- notifications ---- */

static void tell_later(struct agx_feeds *f, struct agx_feed *feed)
{
    if (!feed->waits || agx_list_has(&feed->told))
        return;
    feed->waits = false;
    agx_list_push_front(&f->told, &feed->told);
    agx_manager_wake(f->manager);
}

static void tell_group(struct agx_feeds *f, struct agx_feed_group *g)
{
    AGX_LIST_FOR_EACH (struct agx_feed, feed, &g->feeds, node)
        tell_later(f, feed);
}

/* 0, or there was no memory for it: then all read it from the store. */
static int make_fresh(struct agx_fresh *x, const char *sandbox_id, const struct agx_event *event)
{
    int r = agx_event_copy(&x->event, event, NULL);

    x->encoded = (struct agx_buf)AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    if (r == 0)
        r = agx_text_set(&x->sandbox_id, sandbox_id, NULL);
    if (r == 0)
        r = agx_reply_event(&x->encoded, event, sandbox_id, false);
    return r;
}

void agx_feeds_publish(struct agx_feeds *f, struct agx_feed_group *group, const char *sandbox_id,
                       uint64_t position, const struct agx_event *event)
{
    struct agx_fresh *x;

    if (agx_list_is_empty(&group->feeds) && agx_list_is_empty(&f->all.feeds)) {
        drop_fresh(f); /* those at hand have no gap for one who reads all */
        return;
    }
    x = agx_new(struct agx_fresh);
    x->position = position;
    if (make_fresh(x, sandbox_id, event) < 0) {
        fresh_free(x);
        drop_fresh(f); /* no gap may appear for readers of one sandbox */
    } else {
        if (agx_list_is_empty(&f->all.fresh))
            f->fresh_base = f->manager->position;
        agx_list_push_back(&group->fresh, &x->of_unit);
        agx_list_push_back(&f->all.fresh, &x->node);
        agx_manager_wake(f->manager);
    }
    tell_group(f, group);
    tell_group(f, &f->all);
}

void agx_feeds_pull(struct agx_feeds *f, const char *sandbox_id, const struct agx_pull *pull)
{
    /* Who is told may close its own. */
    AGX_LIST_FOR_EACH (struct agx_feed, feed, &f->all.feeds, node) {
        if (feed->waits && feed->ops->pull)
            feed->ops->pull(feed->user, feed->from, sandbox_id, pull);
    }
}

void agx_feeds_tell(struct agx_feeds *f)
{
    struct agx_feed *feed;

    while ((feed = AGX_LIST_TAKE(&f->told, struct agx_feed, told)))
        feed->ops->ready(feed->user);
    drop_fresh(f);
}

bool agx_feed_group_lags(const struct agx_feed_group *g, uint64_t sequence)
{
    AGX_LIST_FOR_EACH (const struct agx_feed, feed, &g->feeds, node)
        if (feed->from < sequence)
            return true;
    return false;
}

void agx_feed_group_end(struct agx_feed_group *g)
{
    struct agx_feed *feed;

    while (agx_list_take(&g->fresh)) /* they stay in the group of all */
        ;
    while ((feed = AGX_LIST_TAKE(&g->feeds, struct agx_feed, node))) {
        feed->group = NULL;
        feed->unit = NULL;
        if (feed->feeds) {
            agx_list_push_front(&feed->feeds->ended.feeds, &feed->node);
            tell_later(feed->feeds, feed);
        }
    }
}

/* ---- reading ---- */

int agx_feed_open(struct agx_manager *e, const char *sandbox_id, uint64_t from,
                  const struct agx_feed_ops *ops, void *user, struct agx_feed **ret_feed,
                  struct agx_error **err)
{
    struct agx_unit *u = NULL;
    struct agx_feed *feed;

    agx_loop_assert(e->loop);
    if (sandbox_id) {
        u = agx_manager_unit(e, sandbox_id, err);
        if (!u)
            return -AGX_NOT_FOUND;
    }
    feed = agx_new(struct agx_feed);
    *feed = (struct agx_feed){ .feeds = &e->feeds,
                               .group = u ? &u->feeds : &e->feeds.all,
                               .unit = u,
                               .from = from,
                               .ops = ops,
                               .user = user };
    agx_list_push_front(&feed->group->feeds, &feed->node);
    e->feeds.count++;
    *ret_feed = feed;
    return 0;
}

struct agx_feed *agx_feed_close(struct agx_feed *f)
{
    if (!f)
        return NULL;
    if (f->feeds) {
        agx_list_remove(&f->told);
        agx_list_remove(&f->node);
        f->feeds->count--;
    }
    free(f);
    return NULL;
}

static bool is_next(const struct agx_feed *f, const struct agx_fresh *x)
{
    return f->unit ? x->event.sequence == f->from + 1 : x->position > f->from;
}

/* The event after `from`, if it is in memory. */
static const struct agx_fresh *find_fresh(const struct agx_feed *f)
{
    const struct agx_list *fresh = &f->group->fresh;

    if (f->unit) {
        AGX_LIST_FOR_EACH (struct agx_fresh, x, fresh, of_unit)
            if (is_next(f, x))
                return x;
    } else if (f->from >= f->feeds->fresh_base) { /* or there are older ones not seen yet */
        AGX_LIST_FOR_EACH (struct agx_fresh, x, fresh, node)
            if (is_next(f, x))
                return x;
    }
    return NULL;
}

static int read_next(struct agx_feed *f, uint64_t newest, struct agx_feed_item *ret,
                     struct agx_error **err)
{
    struct agx_feeds *feeds = f->feeds;
    struct agx_store *st = feeds->manager->config.store;
    struct agx_event_record *record = &feeds->read;
    int r;

    agx_event_record_done(record);
    agx_buf_clear(&feeds->read_encoded);
    if (f->unit)
        r = agx_schema_get_event(st, f->unit->sandbox.number, f->from + 1, record, err);
    else
        r = agx_schema_next_event(st, f->from, newest, record, err);
    if (r < 0 && f->unit)
        return agx_error_wrap(err, r, "sandbox '%s'", f->unit->sandbox.id);
    if (r == 0 && f->unit)
        return agx_error_set(err, AGX_DATA_LOSS, "event %" PRIu64 " of sandbox '%s' is missing",
                             f->from + 1, f->unit->sandbox.id);
    if (r <= 0)
        return r;
    r = agx_reply_event(&feeds->read_encoded, &record->event, record->sandbox_id, false);
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for an event");
    *ret = (struct agx_feed_item){ .sandbox_id = record->sandbox_id,
                                   .position = record->position,
                                   .event = &record->event,
                                   .encoded = agx_buf_peek(&feeds->read_encoded) };
    return 1;
}

int agx_feed_next(struct agx_feed *f, struct agx_feed_item *ret, struct agx_error **err)
{
    const struct agx_fresh *x;
    uint64_t newest;
    int r = 1;

    if (!f->feeds)
        return agx_error_set(err, AGX_UNAVAILABLE, "the daemon is stopping");
    if (!f->group)
        return AGX_FEED_END;
    newest =
        f->unit ? agx_unit_committed(f->unit)->life.last_sequence : f->feeds->manager->position;
    if (f->from >= newest) {
        f->waits = true;
        return 0;
    }
    x = find_fresh(f);
    if (x)
        *ret = (struct agx_feed_item){ .sandbox_id = x->sandbox_id,
                                       .position = x->position,
                                       .event = &x->event,
                                       .encoded = agx_buf_peek(&x->encoded) };
    else
        r = read_next(f, newest, ret, err);
    if (r > 0)
        f->from = f->unit ? ret->event->sequence : ret->position;
    if (r == 0) { /* reader of all: the events up to here were purged */
        f->from = newest;
        f->waits = true;
    }
    return r;
}

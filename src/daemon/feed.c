/* feed.c: readers of events. */
#include "daemon/feed_internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "daemon/engine_internal.h"
#include "wire/reply.h"

#include <inttypes.h>

#include "base/banned.h"

struct agx_feed {
    struct agx_feeds *feeds;               /* NULL: the engine is gone */
    struct agx_feed_group *group;          /* NULL: the sandbox was purged */
    struct agx_unit *unit;                 /* NULL: of all */
    struct agx_feed *next, **at;           /* in the group */
    struct agx_feed *next_told, **told_at; /* told_at NULL: it is not to be told */
    uint64_t from;                         /* the last that was given */
    bool waits;                            /* it was told that there is nothing */
    const struct agx_feed_ops *ops;
    void *user;
};

/* An event of this turn, shared by all readers. */
struct agx_fresh {
    struct agx_fresh *next, *next_of_unit;
    struct agx_feed_group *group; /* of its sandbox */
    uint64_t position;
    char *sandbox_id;
    struct agx_event event;
    struct agx_buf encoded;
};

void agx_feeds_init(struct agx_feeds *f, struct agx_engine *e)
{
    *f = (struct agx_feeds){ .engine = e, .read_encoded = AGX_BUF_INIT(AGX_STORE_BATCH_MAX) };
}

static void fresh_free(struct agx_fresh *x)
{
    free(x->sandbox_id);
    agx_event_done(&x->event);
    agx_buf_done(&x->encoded);
    free(x);
}

/* Nobody needs them in memory any longer. */
static void drop_fresh(struct agx_feeds *f)
{
    struct agx_fresh *x = AGX_TAKE_PTR(f->all.fresh);

    f->all.fresh_last = NULL;
    while (x) {
        struct agx_fresh *next = x->next;

        if (x->group)
            x->group->fresh = x->group->fresh_last = NULL;
        fresh_free(x);
        x = next;
    }
}

static void orphan(struct agx_feed_group *g)
{
    while (g->feeds) {
        struct agx_feed *feed = g->feeds;

        g->feeds = feed->next;
        feed->feeds = NULL;
        feed->told_at = NULL;
    }
}

void agx_feeds_done(struct agx_feeds *f)
{
    void *value;

    drop_fresh(f);
    orphan(&f->all);
    orphan(&f->ended);
    for (size_t at = 0; agx_map_next(&f->engine->units, &at, NULL, &value);)
        orphan(&((struct agx_unit *)value)->feeds);
    f->told = NULL;
    agx_event_record_done(&f->read);
    agx_buf_done(&f->read_encoded);
}

/* ---- telling ---- */

static void untell(struct agx_feed *feed)
{
    if (!feed->told_at)
        return;
    *feed->told_at = feed->next_told;
    if (feed->next_told)
        feed->next_told->told_at = feed->told_at;
    feed->told_at = NULL;
}

static void tell_later(struct agx_feeds *f, struct agx_feed *feed)
{
    if (!feed->waits || feed->told_at)
        return;
    feed->waits = false;
    feed->next_told = f->told;
    feed->told_at = &f->told;
    if (f->told)
        f->told->told_at = &feed->next_told;
    f->told = feed;
    agx_engine_wake(f->engine);
}

static void tell_group(struct agx_feeds *f, struct agx_feed_group *g)
{
    for (struct agx_feed *feed = g->feeds; feed; feed = feed->next)
        tell_later(f, feed);
}

static void append(struct agx_feed_group *g, struct agx_fresh *x, bool all)
{
    struct agx_fresh *last = g->fresh_last;

    if (!g->fresh)
        g->fresh = x;
    else if (all)
        last->next = x;
    else
        last->next_of_unit = x;
    g->fresh_last = x;
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

    if (!group->feeds && !f->all.feeds) {
        drop_fresh(f); /* those at hand have no gap for one who reads all */
        return;
    }
    x = agx_new(struct agx_fresh);
    x->position = position;
    x->group = group;
    if (make_fresh(x, sandbox_id, event) < 0) {
        fresh_free(x);
        drop_fresh(f); /* a gap among them would be one for their readers */
    } else {
        if (!f->all.fresh)
            f->fresh_base = f->engine->position;
        append(group, x, false);
        append(&f->all, x, true);
        agx_engine_wake(f->engine);
    }
    tell_group(f, group);
    tell_group(f, &f->all);
}

void agx_feeds_pull(struct agx_feeds *f, const char *sandbox_id, const struct agx_pull *pull)
{
    struct agx_feed *next;

    for (struct agx_feed *feed = f->all.feeds; feed; feed = next) {
        next = feed->next; /* who is told may close its own */
        if (feed->waits && feed->ops->pull)
            feed->ops->pull(feed->user, feed->from, sandbox_id, pull);
    }
}

void agx_feeds_tell(struct agx_feeds *f)
{
    while (f->told) {
        struct agx_feed *feed = f->told;

        untell(feed);
        feed->ops->ready(feed->user);
    }
    drop_fresh(f);
}

static void join(struct agx_feed_group *g, struct agx_feed *feed)
{
    feed->next = g->feeds;
    feed->at = &g->feeds;
    if (feed->next)
        feed->next->at = &feed->next;
    g->feeds = feed;
}

static void leave(struct agx_feed *feed)
{
    *feed->at = feed->next;
    if (feed->next)
        feed->next->at = feed->at;
    feed->at = NULL;
}

bool agx_feed_group_lags(const struct agx_feed_group *g, uint64_t sequence)
{
    for (const struct agx_feed *feed = g->feeds; feed; feed = feed->next)
        if (feed->from < sequence)
            return true;
    return false;
}

void agx_feed_group_end(struct agx_feed_group *g)
{
    for (struct agx_fresh *x = g->fresh; x; x = x->next_of_unit)
        x->group = NULL;
    g->fresh = g->fresh_last = NULL;
    while (g->feeds) {
        struct agx_feed *feed = g->feeds;

        g->feeds = feed->next; /* the others leave in their turn */
        feed->group = NULL;
        feed->unit = NULL;
        if (feed->feeds) {
            join(&feed->feeds->ended, feed);
            tell_later(feed->feeds, feed);
        }
    }
}

/* ---- reading ---- */

int agx_feed_open(struct agx_engine *e, const char *sandbox_id, uint64_t from,
                  const struct agx_feed_ops *ops, void *user, struct agx_feed **ret_feed,
                  struct agx_error **err)
{
    struct agx_unit *u = NULL;
    struct agx_feed *feed;

    agx_loop_assert(e->loop);
    if (sandbox_id) {
        u = agx_engine_unit(e, sandbox_id, err);
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
    join(feed->group, feed);
    e->feeds.count++;
    *ret_feed = feed;
    return 0;
}

struct agx_feed *agx_feed_close(struct agx_feed *f)
{
    if (!f)
        return NULL;
    if (f->feeds) {
        untell(f);
        f->feeds->count--;
        leave(f);
    }
    free(f);
    return NULL;
}

static bool is_next(const struct agx_feed *f, const struct agx_fresh *x)
{
    return f->unit ? x->event.sequence == f->from + 1 : x->position > f->from;
}

/* The event behind `from`, if it is at hand. Readers in step take the first or the next to it. */
static const struct agx_fresh *find_fresh(const struct agx_feed *f)
{
    const struct agx_fresh *x = f->group->fresh;

    /* Of all: in front of the first there may be older ones that this reader has not seen. */
    if (x && !f->unit && f->from < f->feeds->fresh_base)
        return NULL;
    while (x && !is_next(f, x))
        x = f->unit ? x->next_of_unit : x->next;
    return x;
}

static int read_next(struct agx_feed *f, uint64_t newest, struct agx_feed_item *ret,
                     struct agx_error **err)
{
    struct agx_feeds *feeds = f->feeds;
    struct agx_store *st = feeds->engine->config.store;
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
    newest = f->unit ? agx_unit_shown(f->unit)->life.last_sequence : f->feeds->engine->position;
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
    if (r == 0) { /* of all: what was there is gone */
        f->from = newest;
        f->waits = true;
    }
    return r;
}

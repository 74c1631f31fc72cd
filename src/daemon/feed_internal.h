/*
 * feed_internal.h: how the engine tells its feeds of new events.
 *
 * Readers that wait are told in the next turn, and while they are told the new events are at hand,
 * decoded and encoded once for all (`fresh`). Whoever does not take them then reads them from the
 * store. So a reader costs its place in a list, however far behind it is.
 */
#ifndef AGX_DAEMON_FEED_INTERNAL_H
#define AGX_DAEMON_FEED_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "core/event.h"
#include "core/pull.h"
#include "wire/record.h"

struct agx_feed;
struct agx_engine;

/* The readers of one sandbox, or of all. */
struct agx_feed_group {
    struct agx_list feeds; /* of struct agx_feed */
    struct agx_list fresh; /* of struct agx_fresh: the events of this turn, in their order */
};

struct agx_feeds {
    struct agx_engine *engine;
    struct agx_feed_group all;    /* readers of every sandbox */
    struct agx_feed_group ended;  /* those whose sandbox was purged */
    struct agx_list told;         /* of struct agx_feed: those that are to be told */
    uint64_t fresh_base;          /* the newest position before the first of them */
    struct agx_event_record read; /* the last one that was read from the store, */
    struct agx_buf read_encoded;  /* and as it goes out */
    uint64_t count;
};

void agx_feeds_init(struct agx_feeds *f, struct agx_engine *e);
/* Feeds that are still open answer -AGX_UNAVAILABLE from now on. */
void agx_feeds_done(struct agx_feeds *f);

/* A committed event; wakes those who wait for one. */
void agx_feeds_publish(struct agx_feeds *f, struct agx_feed_group *group, const char *sandbox_id,
                       uint64_t position, const struct agx_event *event);
/* An image of that sandbox is being pulled: tells those who want to know, at once. */
void agx_feeds_pull(struct agx_feeds *f, const char *sandbox_id, const struct agx_pull *pull);
/* Once a turn: tells those that are to be told. */
void agx_feeds_tell(struct agx_feeds *f);

/* Has one of them not read everything up to `sequence`? */
bool agx_feed_group_lags(const struct agx_feed_group *g, uint64_t sequence);
/* The sandbox is gone: they come to their end. */
void agx_feed_group_end(struct agx_feed_group *g);

#endif

/*
 * feed_internal.h: how the manager notifies its feeds of new events.
 *
 * Waiting readers are notified in the next turn. During the notification the new events are in
 * memory, decoded and encoded once for all readers (`fresh`). A reader that does not take them then
 * reads them from the store. So a reader costs a list entry, however far behind it is.
 */
#ifndef AGX_DAEMON_MANAGER_FEED_INTERNAL_H
#define AGX_DAEMON_MANAGER_FEED_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "core/event.h"
#include "core/pull.h"
#include "wire/record.h"

struct agx_feed;
struct agx_manager;

/* The readers of one sandbox, or of all sandboxes. */
struct agx_feed_group {
    struct agx_list feeds; /* of struct agx_feed */
    struct agx_list fresh; /* of struct agx_fresh: the events of this turn, in their order */
};

struct agx_feeds {
    struct agx_manager *manager;
    struct agx_feed_group all;    /* readers of every sandbox */
    struct agx_feed_group ended;  /* those whose sandbox was purged */
    struct agx_list told;         /* of struct agx_feed: those that are to be told */
    uint64_t fresh_base;          /* the newest position before the first of them */
    struct agx_event_record read; /* the last one that was read from the store, */
    struct agx_buf read_encoded;  /* and as it goes out */
    uint64_t count;
};

void agx_feeds_init(struct agx_feeds *f, struct agx_manager *e);
/* Feeds that are still open answer -AGX_UNAVAILABLE from now on. */
void agx_feeds_done(struct agx_feeds *f);

/* Publishes a committed event and wakes the readers that wait. */
void agx_feeds_publish(struct agx_feeds *f, struct agx_feed_group *group, const char *sandbox_id,
                       uint64_t position, const struct agx_event *event);
/* Reports the progress of an image pull for that sandbox, at once. */
void agx_feeds_pull(struct agx_feeds *f, const char *sandbox_id, const struct agx_pull *pull);
/* Notifies the feeds that need it. Once per turn. */
void agx_feeds_tell(struct agx_feeds *f);

/* Has a reader of the group not read everything up to `sequence`? */
bool agx_feed_group_lags(const struct agx_feed_group *g, uint64_t sequence);
/* The sandbox was purged: its readers reach the end. */
void agx_feed_group_end(struct agx_feed_group *g);

#endif

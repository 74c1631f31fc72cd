/*
 * singleflight.h: shared fetches: something that takes time and that several callers may request is
 * fetched once, reported to all, and ends early when the last of them cancels.
 *
 *     found = agx_singleflight_find(&list, key);              or, for a new one:
 *     agx_singleflight_begin(&x->flight, &list, &key);
 *     agx_singleflight_join(&x->flight, &mine->want);         adds a request
 *     agx_singleflight_tell(&x->flight, &progress);           it may be gone afterwards
 *     agx_singleflight_end(&x->flight, tell, context);        it is gone
 *
 * Loop thread only.
 */
#ifndef AGX_IMAGE_SINGLEFLIGHT_H
#define AGX_IMAGE_SINGLEFLIGHT_H

#include "base/list.h"
#include "core/pull.h"
#include "loop/loop.h"

struct agx_singleflight;

/* One request. Embedded first in a block that free() frees. */
struct agx_singleflight_waiter {
    struct agx_singleflight *flight;
    struct agx_list_node node;                              /* in wanted->wants */
    void (*progress)(void *user, const struct agx_pull *p); /* may be NULL */
    void *user;
};

struct agx_singleflight_list {
    struct agx_loop *loop;
    uint64_t progress_ms; /* minimum time between two progress reports */
    /* The last request was cancelled: ends and frees it. */
    void (*free)(struct agx_singleflight *w);
    struct agx_list all;     /* of struct agx_singleflight: each is wanted by somebody */
    struct agx_list telling; /* those that tell their end */
};

/* Embedded. */
struct agx_singleflight {
    struct agx_singleflight_list *list;
    struct agx_list_node node; /* in `all` or `telling` of the list */
    char *key;                 /* owned; NULL: nobody else can join */
    struct agx_list wants;     /* of struct agx_singleflight_waiter, the latest first */
    struct agx_singleflight_waiter *told_next; /* the next who is told of progress */
    uint64_t told_ms;                          /* when that was last; loop time; 0: never */
    bool ends;                                 /* it is among those that tell */
    bool *gone;                                /* set when it goes while it tells */
};

struct agx_singleflight *agx_singleflight_find(const struct agx_singleflight_list *list,
                                               const char *key);
/* `take_key` NULL: it cannot be joined. A request must join before anything else happens. */
void agx_singleflight_begin(struct agx_singleflight *w, struct agx_singleflight_list *list,
                            char **take_key);
/* Takes the want, whose `progress` and `user` are set. */
void agx_singleflight_join(struct agx_singleflight *w, struct agx_singleflight_waiter *want);

/* Is the next progress report due? */
bool agx_singleflight_is_due(const struct agx_singleflight *w);

/* Milliseconds until it is; 0: now. */
uint64_t agx_singleflight_due_ms(const struct agx_singleflight *w);
void agx_singleflight_tell(struct agx_singleflight *w, const struct agx_pull *p);
/* Calls `tell` for each request; requests made meanwhile do not find it. */
void agx_singleflight_end(struct agx_singleflight *w,
                          void (*tell)(struct agx_singleflight_waiter *want, void *context),
                          void *context);

/* No callback comes any more, and `want` is invalid. Accepts NULL. */
void agx_singleflight_cancel(struct agx_singleflight_waiter *want);
/* Ends all, without callbacks. */
void agx_singleflight_close(struct agx_singleflight_list *list);

#endif

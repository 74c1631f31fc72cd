/*
 * wanted.h: shared fetches: something that takes time and that several callers may request is
 * fetched once, reported to all, and ends early when the last of them cancels.
 *
 *     found = agx_wanted_find(&list, key);              or, for a new one:
 *     agx_wanted_begin(&x->wanted, &list, &key);
 *     agx_wanted_join(&x->wanted, &mine->want);         adds a request
 *     agx_wanted_tell(&x->wanted, &progress);           it may be gone afterwards
 *     agx_wanted_end(&x->wanted, tell, context);        it is gone
 *
 * Loop thread only.
 */
#ifndef AGX_IMAGE_WANTED_H
#define AGX_IMAGE_WANTED_H

#include "base/list.h"
#include "core/pull.h"
#include "loop/loop.h"

struct agx_wanted;

/* One request. Embedded first in a block that free() frees. */
struct agx_want {
    struct agx_wanted *wanted;
    struct agx_list_node node;                              /* in wanted->wants */
    void (*progress)(void *user, const struct agx_pull *p); /* may be NULL */
    void *user;
};

struct agx_wanted_list {
    struct agx_loop *loop;
    uint64_t progress_ms; /* minimum time between two progress reports */
    /* The last request was cancelled: ends and frees it. */
    void (*free)(struct agx_wanted *w);
    struct agx_list all;     /* of struct agx_wanted: each is wanted by somebody */
    struct agx_list telling; /* those that tell their end */
};

/* Embedded. */
struct agx_wanted {
    struct agx_wanted_list *list;
    struct agx_list_node node;  /* in `all` or `telling` of the list */
    char *key;                  /* owned; NULL: nobody else can join */
    struct agx_list wants;      /* of struct agx_want, the latest first */
    struct agx_want *told_next; /* the next who is told of progress */
    uint64_t told_ms;           /* when that was last; loop time; 0: never */
    bool ends;                  /* it is among those that tell */
    bool *gone;                 /* set when it goes while it tells */
};

struct agx_wanted *agx_wanted_find(const struct agx_wanted_list *list, const char *key);
/* `take_key` NULL: it cannot be joined. A request must join before anything else happens. */
void agx_wanted_begin(struct agx_wanted *w, struct agx_wanted_list *list, char **take_key);
/* Takes the want, whose `progress` and `user` are set. */
void agx_wanted_join(struct agx_wanted *w, struct agx_want *want);

/* Is the next progress report due? */
bool agx_wanted_is_due(const struct agx_wanted *w);

/* Milliseconds until it is; 0: now. */
uint64_t agx_wanted_due_ms(const struct agx_wanted *w);
void agx_wanted_tell(struct agx_wanted *w, const struct agx_pull *p);
/* Calls `tell` for each request; requests made meanwhile do not find it. */
void agx_wanted_end(struct agx_wanted *w, void (*tell)(struct agx_want *want, void *context),
                    void *context);

/* No callback comes any more, and `want` is invalid. Accepts NULL. */
void agx_want_cancel(struct agx_want *want);
/* Ends all, without callbacks. */
void agx_wanted_close(struct agx_wanted_list *list);

#endif

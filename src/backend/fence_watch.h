/*
 * fence_watch.h: hears from the kernel when somebody else changes our table, or when the host's
 * routes change.
 *
 * The kernel names the thread that made each change of the rules; ours have a name of their own.
 */
#ifndef AGX_BACKEND_FENCE_WATCH_H
#define AGX_BACKEND_FENCE_WATCH_H

#include "loop/loop.h"

struct agx_fence_watch;

/* Neither closes the watch. */
struct agx_fence_watch_ops {
    void (*table)(void *user);  /* our table may not be what we made */
    void (*routes)(void *user); /* ways out of the host may be others */
    void (*pass)(void *user);   /* the chain of fence_pass.h may be another */
};

/* Strings are copied. */
struct agx_fence_watch_config {
    const char *table;
    const char *thread; /* name of the thread whose changes are ours */
    int net_fd;         /* the network namespace that has the table; 0: our own */
    const struct agx_fence_watch_ops *ops;
    void *user;
};

/* Does not keep the loop running. Changes gather for AGX_FENCE_NEWS_MS. */
int agx_fence_watch_open(struct agx_loop *l, const struct agx_fence_watch_config *config,
                         struct agx_fence_watch **ret_watch, struct agx_error **err) AGX_MUST_CHECK;

/* No call any more. Returns NULL and accepts it. */
struct agx_fence_watch *agx_fence_watch_close(struct agx_fence_watch *w);

#endif

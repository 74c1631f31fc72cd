/*
 * nest_internal.h: shared by the files of the namespace sets.
 *
 *   nest.c        open, adopt, begin, close
 *   nest_pool.c   takes and spares
 *   nest_mend.c   members that lost their namespaces
 *   nest_sweep.c  removed sets, until they are gone
 */
#ifndef AGX_BACKEND_NATIVE_NEST_INTERNAL_H
#define AGX_BACKEND_NATIVE_NEST_INTERNAL_H

#include "backend/fence.h"
#include "backend/native/ids.h"
#include "backend/native/nest.h"
#include "backend/native/nest_make.h"
#include "base/list.h"
#include "loop/job.h"

/* One set, from its making until it is gone. */
struct nest {
    struct agx_nest pub; /* first: what callers see */
    struct agx_nests *nests;
    struct agx_list_node node; /* in one of the lists of struct agx_nests */
    struct agx_egress *egress; /* of AGX_NEST_CLOSED */
    size_t n_egress;
    uint64_t removed_ms; /* when it was removed */
};

struct agx_nest_op {
    struct agx_list_node node;
    struct agx_nests *nests;
    agx_nest_fn done; /* NULL: abandoned */
    void *user;
    struct nest *nest; /* NULL: waits for a spare */
    bool new_ids;      /* freed when the take fails */
    enum agx_nest_network network;
    struct agx_egress *egress;
    size_t n_egress;
};

struct nest_list {
    struct agx_list nests; /* of struct nest */
    size_t len;
};

struct agx_nests {
    struct agx_loop *loop;
    struct agx_pool *pool; /* one thread, the only user of `maker` */
    struct agx_nest_maker *maker;
    struct agx_fence *fence;
    struct agx_ids ids;
    unsigned want_ready;
    void (*notice)(void *user, const char *text);
    void *user;

    struct nest_list adopted; /* until begin */
    struct nest_list ready;   /* made and fenced; nobody's */
    struct nest_list dying;   /* removed, and not yet gone */
    struct agx_list waiting;  /* of struct agx_nest_op: for one that is ready, in their order */
    size_t n_waiting;
    unsigned n_making; /* spares that are being made */

    uv_timer_t serve; /* at once: gives spares to waiting takes */
    uv_timer_t fill;  /* somewhat later: makes more spares */
    uv_timer_t sweep; /* periodically: checks removed sets */
    bool sweeping;    /* the thread is checking */
    bool begun, closing;
    bool swept;       /* the last check was made */
    unsigned n_asked; /* firewall requests without an answer yet */
    unsigned n_open;  /* open handles that close waits for */

    agx_done_fn begin_done;
    void *begin_user;
    agx_done_fn closed;
    void *closed_user;
};

void agx_nests_push(struct nest_list *list, struct nest *n);
struct nest *agx_nests_pop(struct nest_list *list);

struct nest *agx_nests_new(struct agx_nests *s, enum agx_nest_network network, size_t members);
/* Frees descriptors and memory. */
struct nest *agx_nests_free(struct nest *n);
/* Copies the list without names, which allow nothing by themselves. `*ret` is NULL when it is
 * empty. */
void agx_nests_copy_egress(const struct agx_egress *list, size_t n, struct agx_egress **ret,
                           size_t *ret_n);
struct agx_fence_member agx_nests_fenced(const struct nest *n);

/* nest_pool.c */
void agx_nests_fill(struct agx_nests *s);
void agx_nests_on_serve(uv_timer_t *t);
void agx_nests_on_fill(uv_timer_t *t);
/* Frees the waiting takes without calling them back. */
void agx_nests_forget_waiting(struct agx_nests *s);

/* nest_sweep.c: a set without a process and without an owner. */
void agx_nests_drop(struct nest *n);
void agx_nests_on_sweep(uv_timer_t *t);
/* Links are not waited for any more: removes their rules. */
void agx_nests_drop_all(struct agx_nests *s);

/* nest.c: the firewall has answered a request that is counted in n_asked. */
void agx_nests_answered(struct agx_nests *s);
/* The last work before the thread ends. */
void agx_nests_wind_up(struct agx_nests *s);

#endif

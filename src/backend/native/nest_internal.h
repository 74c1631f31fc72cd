/*
 * nest_internal.h: shared by the files of the nests.
 *
 *   nest.c        open, adopt, begin, close
 *   nest_pool.c   takes, and nests that are kept ready
 *   nest_mend.c   members that lost their namespaces
 *   nest_sweep.c  what was removed, until it is gone
 */
#ifndef AGX_BACKEND_NATIVE_NEST_INTERNAL_H
#define AGX_BACKEND_NATIVE_NEST_INTERNAL_H

#include "backend/fence.h"
#include "backend/native/ids.h"
#include "backend/native/nest.h"
#include "backend/native/nest_make.h"
#include "base/list.h"
#include "loop/job.h"

/* One nest, from its making until it is gone. */
struct nest {
    struct agx_nest pub; /* first: what callers have */
    struct agx_nests *nests;
    struct agx_list_node node; /* in one of the lists of struct agx_nests */
    struct agx_egress *egress; /* of AGX_NEST_CLOSED */
    size_t n_egress;
    uint64_t removed_ms; /* when it was */
};

struct agx_nest_op {
    struct agx_list_node node;
    struct agx_nests *nests;
    agx_nest_fn done; /* NULL: abandoned */
    void *user;
    struct nest *nest; /* NULL: it waits for one that is ready */
    bool new_ids;      /* they are released when it fails */
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
    struct agx_pool *pool; /* one thread, which alone uses `maker` */
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
    unsigned n_making; /* nests that will be ready */

    uv_timer_t serve; /* at once: those that wait are given what is ready */
    uv_timer_t fill;  /* somewhat later: more is made ready */
    uv_timer_t sweep; /* now and then: what was removed is looked at */
    bool sweeping;    /* the thread looks */
    bool begun, closing;
    bool swept;       /* for the last time */
    unsigned n_asked; /* of the fence, and not yet answered */
    unsigned n_open;  /* what the end waits for */

    agx_done_fn begin_done;
    void *begin_user;
    agx_done_fn closed;
    void *closed_user;
};

void agx_nests_push(struct nest_list *list, struct nest *n);
struct nest *agx_nests_pop(struct nest_list *list);

struct nest *agx_nests_new(struct agx_nests *s, enum agx_nest_network network, size_t members);
/* Descriptors and memory. */
struct nest *agx_nests_free(struct nest *n);
/* The list without names, which open nothing. `*ret` is NULL when it is empty. */
void agx_nests_copy_egress(const struct agx_egress *list, size_t n, struct agx_egress **ret,
                           size_t *ret_n);
struct agx_fence_member agx_nests_fenced(const struct nest *n);

/* nest_pool.c */
void agx_nests_fill(struct agx_nests *s);
void agx_nests_on_serve(uv_timer_t *t);
void agx_nests_on_fill(uv_timer_t *t);
/* Frees those that wait; they are told nothing. */
void agx_nests_forget_waiting(struct agx_nests *s);

/* nest_sweep.c: a nest without a process and without an owner. */
void agx_nests_drop(struct nest *n);
void agx_nests_on_sweep(uv_timer_t *t);
/* Nothing waits for links any more: their rules go. */
void agx_nests_drop_all(struct agx_nests *s);

/* nest.c: the fence has answered a request that counted in n_asked. */
void agx_nests_answered(struct agx_nests *s);
/* What is left to do before the thread ends. */
void agx_nests_wind_up(struct agx_nests *s);

#endif

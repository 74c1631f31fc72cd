/*
 * nsset_internal.h: shared by the files of the namespace sets.
 *
 *   nsset.c        open, adopt, begin, close
 *   nsset_pool.c   takes and spares
 *   nsset_repair.c   members that lost their namespaces
 *   nsset_sweep.c  removed sets, until they are gone
 */
#ifndef AGX_BACKEND_NATIVE_NET_NSSET_INTERNAL_H
#define AGX_BACKEND_NATIVE_NET_NSSET_INTERNAL_H

#include "backend/native/net/ids.h"
#include "backend/native/net/nsset.h"
#include "backend/native/net/nsset_make.h"
#include "backend/net/firewall.h"
#include "base/list.h"
#include "loop/job.h"

/* One set, from its making until it is gone. */
struct nsset {
    struct agx_nsset pub; /* first: what callers see */
    struct agx_nsset_pool *nssets;
    struct agx_list_node node; /* in one of the lists of struct agx_nsset_pool */
    struct agx_egress *egress; /* of AGX_NSSET_CLOSED */
    size_t n_egress;
    uint64_t removed_ms; /* when it was removed */
};

struct agx_nsset_op {
    struct agx_list_node node;
    struct agx_nsset_pool *nssets;
    agx_nsset_fn done; /* NULL: abandoned */
    void *user;
    struct nsset *nsset; /* NULL: waits for a spare */
    bool new_ids;        /* freed when the take fails */
    enum agx_nsset_network network;
    struct agx_egress *egress;
    size_t n_egress;
};

struct nsset_list {
    struct agx_list nssets; /* of struct nsset */
    size_t len;
};

struct agx_nsset_pool {
    struct agx_loop *loop;
    struct agx_pool *pool; /* one thread, the only user of `maker` */
    struct agx_nsset_maker *maker;
    struct agx_firewall *firewall;
    struct agx_ids ids;
    unsigned want_ready;
    void (*notice)(void *user, const char *text);
    void *user;

    struct nsset_list adopted; /* until begin */
    struct nsset_list ready;   /* made and firewalled; nobody's */
    struct nsset_list dying;   /* removed, and not yet gone */
    struct agx_list waiting;   /* of struct agx_nsset_op: for one that is ready, in their order */
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

void agx_nsset_pool_push(struct nsset_list *list, struct nsset *n);
struct nsset *agx_nsset_pool_pop(struct nsset_list *list);

struct nsset *agx_nsset_pool_new(struct agx_nsset_pool *s, enum agx_nsset_network network,
                                 size_t members);
/* Frees descriptors and memory. */
struct nsset *agx_nsset_pool_free(struct nsset *n);
/* Copies the list without names, which allow nothing by themselves. `*ret` is NULL when it is
 * empty. */
void agx_nsset_pool_copy_egress(const struct agx_egress *list, size_t n, struct agx_egress **ret,
                                size_t *ret_n);
struct agx_firewall_member agx_nsset_pool_firewalled(const struct nsset *n);

/* nsset_pool.c */
void agx_nsset_pool_fill(struct agx_nsset_pool *s);
void agx_nsset_pool_on_serve(uv_timer_t *t);
void agx_nsset_pool_on_fill(uv_timer_t *t);
/* Frees the waiting takes without calling them back. */
void agx_nsset_pool_forget_waiting(struct agx_nsset_pool *s);

/* nsset_sweep.c: a set without a process and without an owner. */
void agx_nsset_pool_drop(struct nsset *n);
void agx_nsset_pool_on_sweep(uv_timer_t *t);
/* Links are not waited for any more: removes their rules. */
void agx_nsset_pool_drop_all(struct agx_nsset_pool *s);

/* nsset.c: the firewall has answered a request that is counted in n_asked. */
void agx_nsset_pool_answered(struct agx_nsset_pool *s);
/* The last work before the thread ends. */
void agx_nsset_pool_wind_up(struct agx_nsset_pool *s);

#endif

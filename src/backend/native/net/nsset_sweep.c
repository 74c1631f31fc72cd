/*
 * nsset_sweep.c: removed sets, until they are gone.
 *
 * A network namespace ends some milliseconds after its last descriptor and process, and takes its
 * links along; removing them one by one costs the kernel far more. A bridge never goes by itself,
 * and whatever still exists after AGX_NSSET_LINGER_MS will not either: those are removed
 * explicitly.
 */
#include "backend/native/net/nsset_internal.h"

#include "base/mem.h"

#include "base/banned.h"

struct sweep_job {
    struct agx_job job;
    struct agx_nsset_pool *nssets;
    struct agx_nsset_maker *maker;
    size_t n;
    struct sweep_item {
        struct nsset *nsset; /* for the loop */
        char interface[IF_NAMESIZE];
        bool now, gone;
    } items[];
};

static void on_forgotten(void *user, struct agx_error *error)
{
    agx_error_free(error); /* the next change of the firewall tries again */
    agx_nsset_pool_answered(user);
}

/* The interface is gone: removes its member from the firewall. */
static void nsset_sweep_forget(struct nsset *n)
{
    struct agx_nsset_pool *s = n->nssets;

    if (n->pub.interface[0] &&
        agx_firewall_remove(s->firewall, n->pub.interface, on_forgotten, s, NULL, NULL) == 0)
        s->n_asked++;
    agx_nsset_pool_free(n);
}

static int sweep_run(struct agx_job *job, struct agx_error **err)
{
    struct sweep_job *j = container_of(job, struct sweep_job, job);

    (void)err;
    for (size_t i = 0; i < j->n; i++)
        j->items[i].gone = agx_nsset_gone(j->maker, j->items[i].interface, j->items[i].now);
    return 0;
}

static void look_again(struct agx_nsset_pool *s)
{
    if (s->dying.len > 0 && !s->sweeping && !s->closing && !uv_is_active((uv_handle_t *)&s->sweep))
        (void)uv_timer_start(&s->sweep, agx_nsset_pool_on_sweep, AGX_NSSET_SWEEP_MS, 0);
}

static void sweep_done(struct agx_job *job, struct agx_error *error)
{
    struct sweep_job *j = container_of(job, struct sweep_job, job);
    struct agx_nsset_pool *s = j->nssets;

    s->sweeping = false;
    for (size_t i = 0; i < j->n; i++) {
        if (j->items[i].gone)
            nsset_sweep_forget(j->items[i].nsset);
        else
            agx_nsset_pool_push(&s->dying, j->items[i].nsset);
    }
    agx_error_free(error);
    free(j);
    look_again(s);
    if (s->closing)
        agx_nsset_pool_wind_up(s);
}

static const struct agx_job_kind sweep_kind = {
    .name = "nsset-sweep",
    .run = sweep_run,
    .done = sweep_done,
};

void agx_nsset_pool_on_sweep(uv_timer_t *t)
{
    struct agx_nsset_pool *s = t->data;
    struct sweep_job *j = agx_alloc(sizeof(*j) + s->dying.len * sizeof(j->items[0]));
    uint64_t now_ms = uv_now(t->loop);
    struct nsset *n;

    j->job.kind = &sweep_kind;
    j->nssets = s;
    j->maker = s->maker;
    while ((n = agx_nsset_pool_pop(&s->dying))) {
        struct sweep_item *item = &j->items[j->n++];

        item->nsset = n;
        memcpy(item->interface, n->pub.interface, sizeof(item->interface));
        item->now = n->pub.n > 1 || now_ms - n->removed_ms >= AGX_NSSET_LINGER_MS;
    }
    s->sweeping = agx_job_start(&j->job, s->pool, NULL) == 0;
    if (s->sweeping)
        return;
    for (size_t i = 0; i < j->n; i++)
        agx_nsset_pool_push(&s->dying, j->items[i].nsset);
    free(j);
    look_again(s);
}

void agx_nsset_pool_drop(struct nsset *n)
{
    struct agx_nsset_pool *s = n->nssets;

    for (size_t i = 0; i < n->pub.n; i++) {
        agx_closep(&n->pub.members[i].user_fd);
        agx_closep(&n->pub.members[i].net_fd);
        n->pub.members[i].user_fd = n->pub.members[i].net_fd = -1;
    }
    n->removed_ms = uv_now(agx_loop_uv(s->loop));
    if (!n->pub.interface[0]) {
        agx_nsset_pool_free(n);
    } else if (!s->pool) { /* at the end: nothing checks any more */
        nsset_sweep_forget(n);
    } else {
        agx_nsset_pool_push(&s->dying, n);
        look_again(s);
    }
}

void agx_nsset_pool_drop_all(struct agx_nsset_pool *s)
{
    struct nsset *n;

    while ((n = agx_nsset_pool_pop(&s->dying)))
        nsset_sweep_forget(n);
}

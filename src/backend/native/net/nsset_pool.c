/*
 * nsset_pool.c: takes and spares.
 *
 *   any one member with a network:   waiting --> a spare --> done
 *   all others:                      made for it --> in the firewall --> done
 *   spares:                          made --> in the firewall --> spare
 *
 * Sets for waiting takes and spares are made in the same way, so that the longest wait ends first.
 * When no take waits, spares are made one at a time, so that a take that needs its own set does not
 * queue behind many.
 */
#include "backend/native/net/nsset_internal.h"

#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

struct make_job {
    struct agx_job job;
    struct agx_nsset_pool *nssets;
    struct agx_nsset_maker *maker;
    struct nsset *nsset;     /* filled in by the thread */
    struct agx_nsset_op *op; /* NULL: a spare */
};

static void fill_later(struct agx_nsset_pool *s, uint64_t ms)
{
    if (!s->closing && !uv_is_active((uv_handle_t *)&s->fill))
        (void)uv_timer_start(&s->fill, agx_nsset_pool_on_fill, ms, 0);
    uv_unref((uv_handle_t *)&s->fill);
}

static void serve_soon(struct agx_nsset_pool *s)
{
    if (!s->closing && s->n_waiting > 0 && s->ready.len > 0)
        (void)uv_timer_start(&s->serve, agx_nsset_pool_on_serve, 0, 0);
}

/* ---- the end of a take ---- */

static void release_ids(struct nsset *n)
{
    for (size_t i = 0; i < n->pub.n; i++)
        agx_ids_release(&n->nssets->ids, n->pub.members[i].id_base);
}

static void op_free(struct agx_nsset_op *op)
{
    free(op->egress);
    free(op);
}

/* Do not touch anything after the call. */
static void nsset_pool_finish(struct agx_nsset_op *op, struct agx_error *error)
{
    struct agx_nsset_pool *s = op->nssets;
    agx_nsset_fn done = s->closing ? NULL : op->done;
    void *user = op->user;
    struct nsset *n = AGX_TAKE_PTR(op->nsset);

    if (!done || error) {
        if (op->new_ids)
            release_ids(n);
        agx_nsset_pool_drop(n);
        n = NULL;
    }
    op_free(op);
    if (done)
        done(user, n ? &n->pub : NULL, error);
    else
        agx_error_free(error);
}

/* ---- the firewall ---- */

static struct agx_nsset_op *pop_waiting(struct agx_nsset_pool *s)
{
    struct agx_nsset_op *op = AGX_LIST_TAKE(&s->waiting, struct agx_nsset_op, node);

    s->n_waiting--;
    return op;
}

static void on_op_firewalled(void *user, struct agx_error *error)
{
    struct agx_nsset_op *op = user;
    struct agx_nsset_pool *s = op->nssets;

    nsset_pool_finish(op, error);
    agx_nsset_pool_answered(s);
}

static void firewall_op(struct agx_nsset_op *op)
{
    struct agx_nsset_pool *s = op->nssets;
    struct agx_firewall_member member = agx_nsset_pool_firewalled(op->nsset);
    struct agx_error *error = NULL;

    if (s->closing ||
        agx_firewall_put(s->firewall, &member, on_op_firewalled, op, NULL, &error) < 0)
        nsset_pool_finish(op, error);
    else
        s->n_asked++;
}

/* A spare could not be made. */
static void not_ready(struct nsset *n, struct agx_error *error)
{
    struct agx_nsset_pool *s = n->nssets;
    char text[512];

    fill_later(s, AGX_NSSET_AGAIN_MS);
    if (s->n_waiting > 0 && !s->closing) {
        struct agx_nsset_op *op = pop_waiting(s); /* is told, for the next may fail as well */

        op->nsset = n;
        nsset_pool_finish(op, error);
        return;
    }
    if (!s->closing)
        s->notice(s->user, agx_error_format(error, text, sizeof(text)));
    release_ids(n);
    agx_nsset_pool_drop(n);
    agx_error_free(error);
}

static void on_ready_firewalled(void *user, struct agx_error *error)
{
    struct nsset *n = user;
    struct agx_nsset_pool *s = n->nssets;

    s->n_making--;
    if (error || s->closing) {
        not_ready(n, error);
    } else {
        agx_nsset_pool_push(&s->ready, n);
        serve_soon(s);
    }
    if (!s->closing && !uv_is_active((uv_handle_t *)&s->fill))
        agx_nsset_pool_fill(s);
    agx_nsset_pool_answered(s);
}

static void firewall_ready(struct nsset *n)
{
    struct agx_nsset_pool *s = n->nssets;
    struct agx_firewall_member member = agx_nsset_pool_firewalled(n);
    struct agx_error *error = NULL;

    if (agx_firewall_put(s->firewall, &member, on_ready_firewalled, n, NULL, &error) == 0) {
        s->n_asked++;
        return;
    }
    s->n_making--;
    not_ready(n, error);
}

/* ---- making ---- */

static int make_run(struct agx_job *job, struct agx_error **err)
{
    struct make_job *j = container_of(job, struct make_job, job);

    return agx_nsset_make(j->maker, &j->nsset->pub, err);
}

static void make_done(struct agx_job *job, struct agx_error *error)
{
    struct make_job *j = container_of(job, struct make_job, job);
    struct agx_nsset_pool *s = j->nssets;
    struct nsset *n = j->nsset;
    struct agx_nsset_op *op = j->op;

    free(j);
    if (op && (error || n->pub.network == AGX_NSSET_NONE)) {
        nsset_pool_finish(op, error);
    } else if (op) {
        firewall_op(op);
    } else if (!error && !s->closing) {
        firewall_ready(n);
    } else {
        s->n_making--;
        not_ready(n, error);
    }
}

static const struct agx_job_kind make_kind = {
    .name = "nsset",
    .run = make_run,
    .done = make_done,
};

static int start_making(struct agx_nsset_pool *s, struct nsset *n, struct agx_nsset_op *op,
                        struct agx_error **err)
{
    struct make_job *j = agx_new(struct make_job);
    int r;

    j->job.kind = &make_kind;
    j->nssets = s;
    j->maker = s->maker;
    j->nsset = n;
    j->op = op;
    r = agx_job_start(&j->job, s->pool, err);
    if (r < 0)
        free(j);
    return r;
}

/* Ids for all members, or for none. */
static int take_ids(struct nsset *n, struct agx_error **err)
{
    for (size_t i = 0; i < n->pub.n; i++) {
        int r = agx_ids_take(&n->nssets->ids, &n->pub.members[i].id_base, err);

        if (r == 0)
            continue;
        while (i-- > 0)
            agx_ids_release(&n->nssets->ids, n->pub.members[i].id_base);
        return r;
    }
    return 0;
}

static int make_ready(struct agx_nsset_pool *s, struct agx_error **err)
{
    struct nsset *n = agx_nsset_pool_new(s, AGX_NSSET_NAT, 1);
    int r = take_ids(n, err);

    if (r == 0) {
        r = start_making(s, n, NULL, err);
        if (r == 0) {
            s->n_making++;
            return 0;
        }
        release_ids(n);
    }
    agx_nsset_pool_free(n);
    return r;
}

void agx_nsset_pool_fill(struct agx_nsset_pool *s)
{
    size_t missing = s->n_waiting > s->ready.len ? s->n_waiting - s->ready.len : 0;
    size_t wanted = s->n_waiting + s->want_ready;

    while (s->n_making < missing ||
           (s->n_making == missing && s->ready.len + s->n_making < wanted)) {
        if (make_ready(s, NULL) < 0) {
            fill_later(s, AGX_NSSET_AGAIN_MS);
            return;
        }
    }
}

void agx_nsset_pool_on_fill(uv_timer_t *t)
{
    agx_nsset_pool_fill(t->data);
}

/* ---- takes ---- */

void agx_nsset_pool_on_serve(uv_timer_t *t)
{
    struct agx_nsset_pool *s = t->data;

    while (s->n_waiting > 0 && s->ready.len > 0 && !s->closing) {
        struct agx_nsset_op *op = pop_waiting(s);
        struct nsset *n = agx_nsset_pool_pop(&s->ready);

        op->nsset = n;
        n->pub.network = op->network;
        n->egress = AGX_TAKE_PTR(op->egress);
        n->n_egress = op->n_egress;
        if (op->network == AGX_NSSET_CLOSED)
            firewall_op(op);
        else
            nsset_pool_finish(op, NULL);
    }
    if (!s->closing)
        fill_later(s, s->ready.len > 0 ? AGX_NSSET_LATER_MS : 0);
}

void agx_nsset_pool_forget_waiting(struct agx_nsset_pool *s)
{
    while (s->n_waiting > 0)
        op_free(pop_waiting(s));
}

static int check_want(const struct agx_nsset_pool *s, const struct agx_nsset_want *w,
                      struct agx_error **err)
{
    if (!s->begun || s->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "the sandboxes' networks are not yet set up");
    if (w->n < 1 || w->n > AGX_NSSET_MEMBERS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "a sandbox with %zu companions: at most %d share its network",
                             w->n > 0 ? w->n - 1 : 0, AGX_NSSET_MEMBERS_MAX - 1);
    for (size_t i = 0; w->id_bases && i < w->n; i++) {
        if (!agx_ids_has(&s->ids, w->id_bases[i]))
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "the user ids from %u on are not reserved", w->id_bases[i]);
    }
    return 0;
}

/* A take that no spare fits. */
static int take_own(struct agx_nsset_op *op, const struct agx_nsset_want *want,
                    struct agx_error **err)
{
    struct nsset *n = agx_nsset_pool_new(op->nssets, want->network, want->n);
    int r = 0;

    op->new_ids = !want->id_bases;
    if (op->new_ids)
        r = take_ids(n, err);
    for (size_t i = 0; !op->new_ids && i < want->n; i++)
        n->pub.members[i].id_base = want->id_bases[i];
    if (r == 0) {
        n->egress = AGX_TAKE_PTR(op->egress);
        n->n_egress = op->n_egress;
        op->nsset = n;
        r = start_making(op->nssets, n, op, err);
        if (r < 0 && op->new_ids)
            release_ids(n);
    }
    if (r < 0)
        agx_nsset_pool_free(n);
    return r;
}

int agx_nsset_pool_take(struct agx_nsset_pool *s, const struct agx_nsset_want *want,
                        agx_nsset_fn done, void *user, struct agx_nsset_op **ret_op,
                        struct agx_error **err)
{
    struct agx_nsset_op *op;
    int r = check_want(s, want, err);

    agx_loop_assert(s->loop);
    if (r < 0)
        return r;
    op = agx_new(struct agx_nsset_op);
    op->nssets = s;
    op->done = done;
    op->user = user;
    op->network = want->network;
    if (want->network == AGX_NSSET_CLOSED)
        agx_nsset_pool_copy_egress(want->egress, want->n_egress, &op->egress, &op->n_egress);
    if (want->n == 1 && !want->id_bases && want->network != AGX_NSSET_NONE) {
        op->new_ids = true;
        agx_list_push_back(&s->waiting, &op->node);
        s->n_waiting++;
        serve_soon(s);
        if (s->ready.len < s->n_waiting)
            agx_nsset_pool_fill(s);
    } else {
        r = take_own(op, want, err);
    }
    if (r < 0)
        op_free(op);
    else if (ret_op)
        *ret_op = op;
    return r;
}

void agx_nsset_abandon(struct agx_nsset_op *op)
{
    op->done = NULL;
}

/* ---- lists that change ---- */

struct restrict_op {
    struct agx_nsset_pool *nssets;
    agx_done_fn done;
    void *user;
};

static void on_restricted(void *user, struct agx_error *error)
{
    struct restrict_op *op = user;
    struct agx_nsset_pool *s = op->nssets;

    if (op->done && !s->closing)
        op->done(op->user, error);
    else
        agx_error_free(error);
    free(op);
    agx_nsset_pool_answered(s);
}

int agx_nsset_restrict(struct agx_nsset *n, const struct agx_egress *egress, size_t n_egress,
                       agx_done_fn done, void *user, struct agx_error **err)
{
    struct nsset *own = (struct nsset *)n;
    struct agx_firewall_member member;
    struct restrict_op *op;
    int r;

    agx_loop_assert(own->nssets->loop);
    assert(n->network == AGX_NSSET_CLOSED);
    free(own->egress);
    agx_nsset_pool_copy_egress(egress, n_egress, &own->egress, &own->n_egress);
    member = agx_nsset_pool_firewalled(own);
    op = agx_new(struct restrict_op);
    *op = (struct restrict_op){ own->nssets, done, user };
    r = agx_firewall_put(own->nssets->firewall, &member, on_restricted, op, NULL, err);
    if (r < 0)
        free(op);
    else
        own->nssets->n_asked++;
    return r;
}

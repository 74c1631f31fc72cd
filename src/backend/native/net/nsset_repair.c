/*
 * nsset_repair.c: new namespaces for members of a set that lost theirs.
 *
 * The thread fills a temporary set with the same numbers, from which the real set then takes what
 * was made: so the real one may be removed meanwhile. The firewall already knows the interface of
 * all members and needs no change.
 */
#include "backend/native/net/nsset_internal.h"

#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

struct agx_nsset_repair {
    struct agx_job job;
    struct agx_nsset_pool *nssets;
    struct agx_nsset_maker *maker;
    uint32_t members;
    struct nsset *made;
    struct agx_nsset *nsset; /* NULL: abandoned */
    agx_done_fn done;
    void *user;
};

static bool is_meant(const struct agx_nsset_repair *x, size_t member)
{
    return (x->members >> member & 1) != 0;
}

static int mend_run(struct agx_job *job, struct agx_error **err)
{
    struct agx_nsset_repair *x = container_of(job, struct agx_nsset_repair, job);
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->made->pub.n; i++)
        r = is_meant(x, i) ? agx_nsset_make_member(x->maker, &x->made->pub, i, err) : 0;
    return r;
}

static void take_over(struct agx_nsset_repair *x)
{
    for (size_t i = 0; i < x->nsset->n; i++) {
        struct agx_nsset_member *to = &x->nsset->members[i], *from = &x->made->pub.members[i];

        if (!is_meant(x, i))
            continue;
        agx_closep(&to->user_fd);
        agx_closep(&to->net_fd);
        to->user_fd = AGX_TAKE_FD(from->user_fd);
        to->net_fd = AGX_TAKE_FD(from->net_fd);
    }
}

static void mend_done(struct agx_job *job, struct agx_error *error)
{
    struct agx_nsset_repair *x = container_of(job, struct agx_nsset_repair, job);
    agx_done_fn done = x->nsset && !x->nssets->closing ? x->done : NULL;
    void *user = x->user;

    if (done && !error)
        take_over(x);
    agx_nsset_pool_free(x->made); /* what was not taken is closed with its descriptors */
    free(x);
    if (done)
        done(user, error);
    else
        agx_error_free(error);
}

static const struct agx_job_kind mend_kind = {
    .name = "nsset-mend",
    .run = mend_run,
    .done = mend_done,
};

int agx_nsset_repair(struct agx_nsset *n, uint32_t members, agx_done_fn done, void *user,
                     struct agx_nsset_repair **ret_mend, struct agx_error **err)
{
    struct agx_nsset_pool *s = ((struct nsset *)n)->nssets;
    struct agx_nsset_repair *x;
    int r;

    agx_loop_assert(s->loop);
    assert(n->n > 1);
    if (!s->begun || s->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "the sandboxes' networks are not yet set up");
    x = agx_new(struct agx_nsset_repair);
    *x = (struct agx_nsset_repair){ .job.kind = &mend_kind,
                                    .nssets = s,
                                    .maker = s->maker,
                                    .members = members,
                                    .made = agx_nsset_pool_new(s, n->network, n->n),
                                    .nsset = n,
                                    .done = done,
                                    .user = user };
    memcpy(x->made->pub.interface, n->interface, sizeof(n->interface));
    if (n->network != AGX_NSSET_NONE)
        agx_nsset_number(&x->made->pub, &n->subnet);
    for (size_t i = 0; i < n->n; i++)
        x->made->pub.members[i].id_base = n->members[i].id_base;
    r = agx_job_start(&x->job, s->pool, err);
    if (r < 0) {
        agx_nsset_pool_free(x->made);
        free(x);
        return r;
    }
    *ret_mend = x;
    return 0;
}

void agx_nsset_repair_abandon(struct agx_nsset_repair *m)
{
    m->nsset = NULL;
}

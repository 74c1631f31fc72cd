/*
 * nest_mend.c: new namespaces for members of a set that lost theirs.
 *
 * The thread fills a temporary set with the same numbers, from which the real set then takes what
 * was made: so the real one may be removed meanwhile. The firewall already knows the interface of
 * all members and needs no change.
 */
#include "backend/native/nest_internal.h"

#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

struct agx_nest_mend {
    struct agx_job job;
    struct agx_nests *nests;
    struct agx_nest_maker *maker;
    uint32_t members;
    struct nest *made;
    struct agx_nest *nest; /* NULL: abandoned */
    agx_done_fn done;
    void *user;
};

static bool is_meant(const struct agx_nest_mend *x, size_t member)
{
    return (x->members >> member & 1) != 0;
}

static int mend_run(struct agx_job *job, struct agx_error **err)
{
    struct agx_nest_mend *x = container_of(job, struct agx_nest_mend, job);
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->made->pub.n; i++)
        r = is_meant(x, i) ? agx_nest_make_member(x->maker, &x->made->pub, i, err) : 0;
    return r;
}

static void take_over(struct agx_nest_mend *x)
{
    for (size_t i = 0; i < x->nest->n; i++) {
        struct agx_nest_member *to = &x->nest->members[i], *from = &x->made->pub.members[i];

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
    struct agx_nest_mend *x = container_of(job, struct agx_nest_mend, job);
    agx_done_fn done = x->nest && !x->nests->closing ? x->done : NULL;
    void *user = x->user;

    if (done && !error)
        take_over(x);
    agx_nests_free(x->made); /* what was not taken is closed with its descriptors */
    free(x);
    if (done)
        done(user, error);
    else
        agx_error_free(error);
}

static const struct agx_job_kind mend_kind = {
    .name = "nest-mend",
    .run = mend_run,
    .done = mend_done,
};

int agx_nest_mend(struct agx_nest *n, uint32_t members, agx_done_fn done, void *user,
                  struct agx_nest_mend **ret_mend, struct agx_error **err)
{
    struct agx_nests *s = ((struct nest *)n)->nests;
    struct agx_nest_mend *x;
    int r;

    agx_loop_assert(s->loop);
    assert(n->n > 1);
    if (!s->begun || s->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "the sandboxes' networks are not yet set up");
    x = agx_new(struct agx_nest_mend);
    *x = (struct agx_nest_mend){ .job.kind = &mend_kind,
                                 .nests = s,
                                 .maker = s->maker,
                                 .members = members,
                                 .made = agx_nests_new(s, n->network, n->n),
                                 .nest = n,
                                 .done = done,
                                 .user = user };
    memcpy(x->made->pub.interface, n->interface, sizeof(n->interface));
    if (n->network != AGX_NEST_NONE)
        agx_nest_number(&x->made->pub, &n->subnet);
    for (size_t i = 0; i < n->n; i++)
        x->made->pub.members[i].id_base = n->members[i].id_base;
    r = agx_job_start(&x->job, s->pool, err);
    if (r < 0) {
        agx_nests_free(x->made);
        free(x);
        return r;
    }
    *ret_mend = x;
    return 0;
}

void agx_nest_mend_abandon(struct agx_nest_mend *m)
{
    m->nest = NULL;
}

/*
 * nest.c: the namespace sets as a whole: adopting existing ones, and close.
 *
 *   open --> adopt, reserve --> begin: the thread cleans, the firewall is written --> takes
 *
 * Invariants:
 *  (1) an interface is a member of the firewall under its own name, from before any process may run
 *      behind it until it is gone.
 *  (2) ids are taken from before a set is made with them until agx_nests_release().
 *  (3) the thread uses `maker` and its own job, nothing else.
 */
#include "backend/native/nest_internal.h"

#include "base/limits_backend.h"
#include "base/mem.h"
#include "base/uuid.h"

#include <assert.h>
#include <stdio.h>

#include "base/banned.h"

enum { INSTANCE_SHOWN = 8 };

/* ---- lists and nests ---- */

void agx_nests_push(struct nest_list *list, struct nest *n)
{
    agx_list_push_back(&list->nests, &n->node);
    list->len++;
}

struct nest *agx_nests_pop(struct nest_list *list)
{
    struct nest *n = AGX_LIST_TAKE(&list->nests, struct nest, node);

    if (n)
        list->len--;
    return n;
}

/* A nest that somebody has is in no other list. */
static void leave_adopted(struct nest *n)
{
    if (!agx_list_has(&n->node))
        return;
    agx_list_remove(&n->node);
    n->nests->adopted.len--;
}

struct nest *agx_nests_new(struct agx_nests *s, enum agx_nest_network network, size_t members)
{
    struct nest *n = agx_new(struct nest);

    n->nests = s;
    n->pub.network = network;
    n->pub.n = members;
    n->pub.members = agx_alloc(members * sizeof(n->pub.members[0]));
    for (size_t i = 0; i < members; i++)
        n->pub.members[i].user_fd = n->pub.members[i].net_fd = -1;
    return n;
}

struct nest *agx_nests_free(struct nest *n)
{
    if (!n)
        return NULL;
    for (size_t i = 0; i < n->pub.n; i++) {
        agx_closep(&n->pub.members[i].user_fd);
        agx_closep(&n->pub.members[i].net_fd);
    }
    free(n->pub.members);
    free(n->egress);
    free(n);
    return NULL;
}

void agx_nests_copy_egress(const struct agx_egress *list, size_t n, struct agx_egress **ret,
                           size_t *ret_n)
{
    *ret = n > 0 ? agx_alloc(n * sizeof(**ret)) : NULL;
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (agx_egress_is_unknown(&list[i]))
            continue;
        (*ret)[*ret_n] = list[i];
        (*ret)[(*ret_n)++].name = (struct agx_str){ 0 };
    }
}

struct agx_fence_member agx_nests_fenced(const struct nest *n)
{
    return (struct agx_fence_member){
        .sandbox_id = n->pub.interface,
        .bridge = n->pub.interface,
        .subnets = &n->pub.subnet,
        .n_subnets = 1,
        .closed = n->pub.network == AGX_NEST_CLOSED,
        .egress = n->egress,
        .n_egress = n->n_egress,
    };
}

struct agx_nest *agx_nest_free(struct agx_nest *n)
{
    struct nest *own = (struct nest *)n;

    if (!n)
        return NULL;
    leave_adopted(own);
    agx_nests_free(own);
    return NULL;
}

struct agx_nest *agx_nest_remove(struct agx_nest *n)
{
    struct nest *own = (struct nest *)n;

    if (!n)
        return NULL;
    agx_loop_assert(own->nests->loop);
    leave_adopted(own);
    agx_nests_drop(own);
    return NULL;
}

/* ---- what there is from before ---- */

static int check_record(const struct agx_nest_record *r, struct agx_error **err)
{
    bool linked = r->interface && r->interface[0];

    if (r->n < 1 || r->n > AGX_NEST_MEMBERS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a sandbox's network has %zu members",
                             r->n);
    if (linked != (r->network != AGX_NEST_NONE) ||
        (linked &&
         (strlen(r->interface) >= IF_NAMESIZE || r->subnet.ipv6 || r->subnet.prefix == 0)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the record of the network on '%s' is not one of ours",
                             linked ? r->interface : "");
    return 0;
}

static int reserve_all(struct agx_nests *s, const uint32_t *bases, size_t n, struct agx_error **err)
{
    for (size_t i = 0; i < n; i++) {
        int r = agx_ids_reserve(&s->ids, bases[i], err);

        if (r == 0)
            continue;
        while (i-- > 0)
            agx_ids_release(&s->ids, bases[i]);
        return r;
    }
    return 0;
}

int agx_nests_adopt(struct agx_nests *s, const struct agx_nest_record *record,
                    struct agx_nest **ret_nest, struct agx_error **err)
{
    struct nest *n;
    int r = check_record(record, err);

    agx_loop_assert(s->loop);
    assert(!s->begun);
    if (r == 0)
        r = reserve_all(s, record->id_bases, record->n, err);
    if (r < 0)
        return r;
    n = agx_nests_new(s, record->network, record->n);
    for (size_t i = 0; i < record->n; i++) {
        struct agx_nest_member *m = &n->pub.members[i];

        m->id_base = record->id_bases[i];
        m->user_fd = record->fds ? record->fds[i][0] : -1;
        m->net_fd = record->fds ? record->fds[i][1] : -1;
    }
    if (record->network != AGX_NEST_NONE) {
        (void)snprintf(n->pub.interface, sizeof(n->pub.interface), "%s", record->interface);
        agx_nest_number(&n->pub, &record->subnet);
        agx_nests_copy_egress(record->egress, record->n_egress, &n->egress, &n->n_egress);
    }
    agx_nests_push(&s->adopted, n);
    *ret_nest = &n->pub;
    return 0;
}

int agx_nests_reserve(struct agx_nests *s, uint32_t id_base, struct agx_error **err)
{
    agx_loop_assert(s->loop);
    return agx_ids_reserve(&s->ids, id_base, err);
}

void agx_nests_release(struct agx_nests *s, uint32_t id_base)
{
    agx_loop_assert(s->loop);
    agx_ids_release(&s->ids, id_base);
}

/* ---- begin ---- */

struct clean_job {
    struct agx_job job;
    struct agx_nests *nests;
    struct agx_nest_maker *maker;
    struct agx_words keep;
    bool forwarding; /* the host did not forward before */
};

static int clean_run(struct agx_job *job, struct agx_error **err)
{
    struct clean_job *j = container_of(job, struct clean_job, job);

    return agx_nest_clean(j->maker, &j->keep, &j->forwarding, err);
}

static void begun(struct agx_nests *s, struct agx_error *error)
{
    s->begun = !error;
    s->begin_done(s->begin_user, error);
    if (s->begun && !s->closing)
        agx_nests_fill(s);
}

static void on_synced(void *user, struct agx_error *error)
{
    struct agx_nests *s = user;
    bool closing = s->closing;

    if (!closing)
        begun(s, error);
    else
        agx_error_free(error);
    agx_nests_answered(s);
}

static int sync_fence(struct agx_nests *s, struct agx_error **err)
{
    _cleanup_free_ struct agx_fence_member *members =
        agx_alloc((s->adopted.len + 1) * sizeof(*members));
    struct nest *n;
    size_t count = 0;
    int r;

    while ((n = agx_nests_pop(&s->adopted))) {
        if (n->pub.network != AGX_NEST_NONE)
            members[count++] = agx_nests_fenced(n);
    }
    r = agx_fence_sync(s->fence, members, count, on_synced, s, NULL, err);
    if (r == 0)
        s->n_asked++;
    return r;
}

static void clean_done(struct agx_job *job, struct agx_error *error)
{
    struct clean_job *j = container_of(job, struct clean_job, job);
    struct agx_nests *s = j->nests;

    if (!error && j->forwarding && !s->closing)
        s->notice(s->user, "the host did not forward packets, which sandboxes need: "
                           "net.ipv4.ip_forward is 1 now");
    if (!error && !s->closing)
        (void)sync_fence(s, &error);
    if (error && !s->closing)
        begun(s, error);
    else
        agx_error_free(error);
    agx_words_done(&j->keep);
    free(j);
}

static const struct agx_job_kind clean_kind = {
    .name = "nest-clean",
    .run = clean_run,
    .done = clean_done,
};

int agx_nests_begin(struct agx_nests *s, agx_done_fn done, void *user, struct agx_error **err)
{
    struct clean_job *j = agx_new(struct clean_job);
    int r = 0;

    agx_loop_assert(s->loop);
    assert(!s->begun);
    j->job.kind = &clean_kind;
    j->nests = s;
    j->maker = s->maker;
    AGX_LIST_FOR_EACH (const struct nest, n, &s->adopted.nests, node)
        if (r == 0)
            r = agx_words_add(&j->keep, agx_str_from(n->pub.interface), err);
    if (r == 0)
        r = agx_job_start(&j->job, s->pool, err);
    if (r < 0) {
        agx_words_done(&j->keep);
        free(j);
        return r;
    }
    s->begin_done = done;
    s->begin_user = user;
    return 0;
}

/* ---- open and close ---- */

static void on_restored(void *user, struct agx_error *error)
{
    struct agx_nests *s = user;
    char text[512];

    if (error)
        s->notice(s->user, agx_error_format(error, text, sizeof(text)));
    else
        s->notice(s->user, "another program changed the sandboxes' packet filter; it was restored");
    agx_error_free(error);
}

static void end(struct agx_nests *s)
{
    agx_done_fn closed = s->closed;
    void *user = s->closed_user;

    if (--s->n_open > 0)
        return;
    if (s->maker) {
        agx_nest_maker_done(s->maker);
        free(s->maker);
    }
    agx_ids_done(&s->ids);
    free(s);
    if (closed)
        closed(user, NULL);
}

static void on_fence_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    end(user);
}

/* The firewall closes last: its pending requests are still carried out. */
static void close_fence(struct agx_nests *s)
{
    if (s->closing && !s->pool && s->n_asked == 0 && s->fence)
        agx_fence_close(AGX_TAKE_PTR(s->fence), on_fence_closed, s);
}

void agx_nests_answered(struct agx_nests *s)
{
    assert(s->n_asked > 0);
    s->n_asked--;
    close_fence(s);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_nests *s = user;

    if (error)
        s->maker = NULL; /* the kernel does not answer: the thread may still use it */
    agx_error_free(error);
    s->pool = NULL;
    agx_nests_drop_all(s);
    close_fence(s);
}

void agx_nests_wind_up(struct agx_nests *s)
{
    if (!s->swept && !s->sweeping && s->dying.len > 0) {
        s->swept = true; /* bridges are not removed by the kernel */
        agx_nests_on_sweep(&s->sweep);
    }
    if (!s->sweeping)
        agx_pool_stop(s->pool, AGX_NEST_STOP_MS, on_pool_stopped, s);
}

static void on_timer_closed(uv_handle_t *h)
{
    end(h->data);
}

void agx_nests_close(struct agx_nests *s, agx_done_fn closed, void *user)
{
    uv_timer_t *timers[] = { &s->serve, &s->fill, &s->sweep };
    struct nest *n;

    s->closing = true;
    s->closed = closed;
    s->closed_user = user;
    agx_nests_forget_waiting(s);
    while ((n = agx_nests_pop(&s->ready)))
        agx_nests_drop(n);
    s->n_open = AGX_ARRAY_LEN(timers) + 1; /* and the firewall */
    for (size_t i = 0; i < AGX_ARRAY_LEN(timers); i++)
        uv_close((uv_handle_t *)timers[i], on_timer_closed);
    agx_nests_wind_up(s);
}

static int open_parts(struct agx_nests *s, const struct agx_nests_config *c, struct agx_error **err)
{
    const struct agx_fence_config fence = {
        .instance = c->instance,
        .lan_blocked = c->lan_blocked,
        .routed = true,
        .net_fd = c->net_fd,
        .restored = on_restored,
        .restored_user = s,
    };
    const struct agx_pool_config pool = { "agx-nests", 1, AGX_NEST_QUEUE_MAX };
    uint64_t start = 0;
    int r = 0;

    s->maker->idmap = c->idmap;
    s->maker->net_fd = c->net_fd;
    if (c->idmap.on)
        agx_ids_share(&s->ids, AGX_NEST_SHARED_ID);
    else
        r = agx_ids_init(&s->ids, c->id_base, c->id_ranges, err);

    if (r == 0)
        r = agx_random_bytes(&start, sizeof(start), err);
    if (r == 0)
        r = agx_subnets_init(&s->maker->subnets, &c->pool, AGX_SUBNETS_PREFIX, start, err);
    if (r == 0)
        r = agx_fence_open(s->loop, &fence, &s->fence, err);
    if (r == 0 && (r = agx_pool_open(s->loop, &pool, &s->pool, err)) < 0)
        agx_fence_close(s->fence, NULL, NULL);
    return r;
}

static void open_timer(struct agx_nests *s, uv_timer_t *t)
{
    (void)uv_timer_init(agx_loop_uv(s->loop), t);
    t->data = s;
}

int agx_nests_open(struct agx_loop *l, const struct agx_nests_config *config,
                   struct agx_nests **ret_nests, struct agx_error **err)
{
    struct agx_nests *s = agx_new(struct agx_nests);
    int r;

    s->loop = l;
    s->want_ready = AGX_MIN(config->ready, (unsigned)AGX_NEST_READY_MAX);
    s->notice = config->notice;
    s->user = config->user;
    s->maker = agx_new(struct agx_nest_maker);
    s->maker->fd = s->maker->init_fd = -1;
    s->maker->init_path = agx_str_dup(agx_str_from(config->init_path));
    (void)snprintf(s->maker->alias, sizeof(s->maker->alias), "agentix-%.*s", INSTANCE_SHOWN,
                   config->instance);
    r = s->maker->init_path ? open_parts(s, config, err) : agx_error_no_memory(err);
    if (r < 0) {
        agx_nest_maker_done(s->maker);
        free(s->maker);
        agx_ids_done(&s->ids);
        free(s);
        return r;
    }
    open_timer(s, &s->serve);
    open_timer(s, &s->fill);
    open_timer(s, &s->sweep);
    *ret_nests = s;
    return 0;
}

/*
 * nsset.c: the namespace sets as a whole: adopting existing ones, and close.
 *
 *   open --> adopt, reserve --> begin: the thread cleans, the firewall is written --> takes
 *
 * Invariants:
 *  (1) an interface is a member of the firewall under its own name, from before any process may run
 *      behind it until it is gone.
 *  (2) ids are taken from before a set is made with them until agx_nsset_pool_release().
 *  (3) the thread uses `maker` and its own job, nothing else.
 */
#include "backend/native/net/nsset_internal.h"

#include "base/limits_backend.h"
#include "base/mem.h"
#include "base/uuid.h"

#include <assert.h>
#include <stdio.h>

#include "base/banned.h"

enum { INSTANCE_QUOTED_MAX = 8 };

/* ---- lists and nssets ---- */

void agx_nsset_pool_push(struct nsset_list *list, struct nsset *n)
{
    agx_list_push_back(&list->nssets, &n->node);
    list->len++;
}

struct nsset *agx_nsset_pool_pop(struct nsset_list *list)
{
    struct nsset *n = AGX_LIST_TAKE(&list->nssets, struct nsset, node);

    if (n)
        list->len--;
    return n;
}

/* An nsset that somebody has is in no other list. */
static void leave_adopted(struct nsset *n)
{
    if (!agx_list_has(&n->node))
        return;
    agx_list_remove(&n->node);
    n->nssets->adopted.len--;
}

struct nsset *agx_nsset_pool_new(struct agx_nsset_pool *s, enum agx_nsset_network network,
                                 size_t members)
{
    struct nsset *n = agx_new(struct nsset);

    n->nssets = s;
    n->pub.network = network;
    n->pub.n = members;
    n->pub.members = agx_alloc(members * sizeof(n->pub.members[0]));
    for (size_t i = 0; i < members; i++)
        n->pub.members[i].user_fd = n->pub.members[i].net_fd = -1;
    return n;
}

struct nsset *agx_nsset_pool_free(struct nsset *n)
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

void agx_nsset_pool_copy_egress(const struct agx_egress *list, size_t n, struct agx_egress **ret,
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

struct agx_firewall_member agx_nsset_pool_firewalled(const struct nsset *n)
{
    return (struct agx_firewall_member){
        .sandbox_id = n->pub.interface,
        .bridge = n->pub.interface,
        .subnets = &n->pub.subnet,
        .n_subnets = 1,
        .closed = n->pub.network == AGX_NSSET_CLOSED,
        .egress = n->egress,
        .n_egress = n->n_egress,
    };
}

struct agx_nsset *agx_nsset_free(struct agx_nsset *n)
{
    struct nsset *own = (struct nsset *)n;

    if (!n)
        return NULL;
    leave_adopted(own);
    agx_nsset_pool_free(own);
    return NULL;
}

struct agx_nsset *agx_nsset_remove(struct agx_nsset *n)
{
    struct nsset *own = (struct nsset *)n;

    if (!n)
        return NULL;
    agx_loop_assert(own->nssets->loop);
    leave_adopted(own);
    agx_nsset_pool_drop(own);
    return NULL;
}

/* ---- what there is from before ---- */

static int check_record(const struct agx_nsset_record *r, struct agx_error **err)
{
    bool linked = r->interface && r->interface[0];

    if (r->n < 1 || r->n > AGX_NSSET_MEMBERS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a sandbox's network has %zu members",
                             r->n);
    if (linked != (r->network != AGX_NSSET_NONE) ||
        (linked &&
         (strlen(r->interface) >= IF_NAMESIZE || r->subnet.ipv6 || r->subnet.prefix == 0)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the record of the network on '%s' is not one of ours",
                             linked ? r->interface : "");
    return 0;
}

static int reserve_all(struct agx_nsset_pool *s, const uint32_t *bases, size_t n,
                       struct agx_error **err)
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

int agx_nsset_pool_adopt(struct agx_nsset_pool *s, const struct agx_nsset_record *record,
                         struct agx_nsset **ret_nsset, struct agx_error **err)
{
    struct nsset *n;
    int r = check_record(record, err);

    agx_loop_assert(s->loop);
    assert(!s->begun);
    if (r == 0)
        r = reserve_all(s, record->id_bases, record->n, err);
    if (r < 0)
        return r;
    n = agx_nsset_pool_new(s, record->network, record->n);
    for (size_t i = 0; i < record->n; i++) {
        struct agx_nsset_member *m = &n->pub.members[i];

        m->id_base = record->id_bases[i];
        m->user_fd = record->fds ? record->fds[i][0] : -1;
        m->net_fd = record->fds ? record->fds[i][1] : -1;
    }
    if (record->network != AGX_NSSET_NONE) {
        (void)snprintf(n->pub.interface, sizeof(n->pub.interface), "%s", record->interface);
        agx_nsset_number(&n->pub, &record->subnet);
        agx_nsset_pool_copy_egress(record->egress, record->n_egress, &n->egress, &n->n_egress);
    }
    agx_nsset_pool_push(&s->adopted, n);
    *ret_nsset = &n->pub;
    return 0;
}

int agx_nsset_pool_reserve(struct agx_nsset_pool *s, uint32_t id_base, struct agx_error **err)
{
    agx_loop_assert(s->loop);
    return agx_ids_reserve(&s->ids, id_base, err);
}

void agx_nsset_pool_release(struct agx_nsset_pool *s, uint32_t id_base)
{
    agx_loop_assert(s->loop);
    agx_ids_release(&s->ids, id_base);
}

/* ---- begin ---- */

struct clean_job {
    struct agx_job job;
    struct agx_nsset_pool *nssets;
    struct agx_nsset_maker *maker;
    struct agx_words keep;
    bool forwarding; /* the host did not forward before */
};

static int clean_run(struct agx_job *job, struct agx_error **err)
{
    struct clean_job *j = container_of(job, struct clean_job, job);

    return agx_nsset_clean(j->maker, &j->keep, &j->forwarding, err);
}

static void begun(struct agx_nsset_pool *s, struct agx_error *error)
{
    s->begun = !error;
    s->begin_done(s->begin_user, error);
    if (s->begun && !s->closing)
        agx_nsset_pool_fill(s);
}

static void on_synced(void *user, struct agx_error *error)
{
    struct agx_nsset_pool *s = user;
    bool closing = s->closing;

    if (!closing)
        begun(s, error);
    else
        agx_error_free(error);
    agx_nsset_pool_answered(s);
}

static int sync_firewall(struct agx_nsset_pool *s, struct agx_error **err)
{
    _cleanup_free_ struct agx_firewall_member *members =
        agx_alloc((s->adopted.len + 1) * sizeof(*members));
    struct nsset *n;
    size_t count = 0;
    int r;

    while ((n = agx_nsset_pool_pop(&s->adopted))) {
        if (n->pub.network != AGX_NSSET_NONE)
            members[count++] = agx_nsset_pool_firewalled(n);
    }
    r = agx_firewall_sync(s->firewall, members, count, on_synced, s, NULL, err);
    if (r == 0)
        s->n_asked++;
    return r;
}

static void clean_done(struct agx_job *job, struct agx_error *error)
{
    struct clean_job *j = container_of(job, struct clean_job, job);
    struct agx_nsset_pool *s = j->nssets;

    if (!error && j->forwarding && !s->closing)
        s->notice(s->user, "the host did not forward packets, which sandboxes need: "
                           "net.ipv4.ip_forward is 1 now");
    if (!error && !s->closing)
        (void)sync_firewall(s, &error);
    if (error && !s->closing)
        begun(s, error);
    else
        agx_error_free(error);
    agx_words_done(&j->keep);
    free(j);
}

static const struct agx_job_kind clean_kind = {
    .name = "nsset-clean",
    .run = clean_run,
    .done = clean_done,
};

int agx_nsset_pool_begin(struct agx_nsset_pool *s, agx_done_fn done, void *user,
                         struct agx_error **err)
{
    struct clean_job *j = agx_new(struct clean_job);
    int r = 0;

    agx_loop_assert(s->loop);
    assert(!s->begun);
    j->job.kind = &clean_kind;
    j->nssets = s;
    j->maker = s->maker;
    AGX_LIST_FOR_EACH (const struct nsset, n, &s->adopted.nssets, node)
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
    struct agx_nsset_pool *s = user;
    char text[512];

    if (error)
        s->notice(s->user, agx_error_format(error, text, sizeof(text)));
    else
        s->notice(s->user, "another program changed the sandboxes' packet filter; it was restored");
    agx_error_free(error);
}

static void nsset_end(struct agx_nsset_pool *s)
{
    agx_done_fn closed = s->closed;
    void *user = s->closed_user;

    if (--s->n_open > 0)
        return;
    if (s->maker) {
        agx_nsset_maker_done(s->maker);
        free(s->maker);
    }
    agx_ids_done(&s->ids);
    free(s);
    if (closed)
        closed(user, NULL);
}

static void on_firewall_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    nsset_end(user);
}

/* The firewall closes last: its pending requests are still carried out. */
static void close_firewall(struct agx_nsset_pool *s)
{
    if (s->closing && !s->pool && s->n_asked == 0 && s->firewall)
        agx_firewall_close(AGX_TAKE_PTR(s->firewall), on_firewall_closed, s);
}

void agx_nsset_pool_answered(struct agx_nsset_pool *s)
{
    assert(s->n_asked > 0);
    s->n_asked--;
    close_firewall(s);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_nsset_pool *s = user;

    if (error)
        s->maker = NULL; /* the kernel does not answer: the thread may still use it */
    agx_error_free(error);
    s->pool = NULL;
    agx_nsset_pool_drop_all(s);
    close_firewall(s);
}

void agx_nsset_pool_wind_up(struct agx_nsset_pool *s)
{
    if (!s->swept && !s->sweeping && s->dying.len > 0) {
        s->swept = true; /* bridges are not removed by the kernel */
        agx_nsset_pool_on_sweep(&s->sweep);
    }
    if (!s->sweeping)
        agx_pool_stop(s->pool, AGX_NSSET_STOP_MS, on_pool_stopped, s);
}

static void on_timer_closed(uv_handle_t *h)
{
    nsset_end(h->data);
}

void agx_nsset_pool_close(struct agx_nsset_pool *s, agx_done_fn closed, void *user)
{
    uv_timer_t *timers[] = { &s->serve, &s->fill, &s->sweep };
    struct nsset *n;

    s->closing = true;
    s->closed = closed;
    s->closed_user = user;
    agx_nsset_pool_forget_waiting(s);
    while ((n = agx_nsset_pool_pop(&s->ready)))
        agx_nsset_pool_drop(n);
    s->n_open = AGX_ARRAY_LEN(timers) + 1; /* and the firewall */
    for (size_t i = 0; i < AGX_ARRAY_LEN(timers); i++)
        uv_close((uv_handle_t *)timers[i], on_timer_closed);
    agx_nsset_pool_wind_up(s);
}

static int open_parts(struct agx_nsset_pool *s, const struct agx_nsset_pool_config *c,
                      struct agx_error **err)
{
    const struct agx_firewall_config firewall = {
        .instance = c->instance,
        .lan_blocked = c->lan_blocked,
        .routed = true,
        .net_fd = c->net_fd,
        .restored = on_restored,
        .restored_user = s,
    };
    const struct agx_pool_config pool = { "agx-nssets", 1, AGX_NSSET_QUEUE_MAX };
    uint64_t start = 0;
    int r = 0;

    s->maker->idmap = c->idmap;
    s->maker->net_fd = c->net_fd;
    if (c->idmap.on)
        agx_ids_share(&s->ids, AGX_NSSET_SHARED_ID);
    else
        r = agx_ids_init(&s->ids, c->id_base, c->id_ranges, err);

    if (r == 0)
        r = agx_random_bytes(&start, sizeof(start), err);
    if (r == 0)
        r = agx_subnets_init(&s->maker->subnets, &c->pool, AGX_SUBNETS_PREFIX, start, err);
    if (r == 0)
        r = agx_firewall_open(s->loop, &firewall, &s->firewall, err);
    if (r == 0 && (r = agx_pool_open(s->loop, &pool, &s->pool, err)) < 0)
        agx_firewall_close(s->firewall, NULL, NULL);
    return r;
}

static void open_timer(struct agx_nsset_pool *s, uv_timer_t *t)
{
    (void)uv_timer_init(agx_loop_uv(s->loop), t);
    t->data = s;
}

int agx_nsset_pool_open(struct agx_loop *l, const struct agx_nsset_pool_config *config,
                        struct agx_nsset_pool **ret_nssets, struct agx_error **err)
{
    struct agx_nsset_pool *s = agx_new(struct agx_nsset_pool);
    int r;

    s->loop = l;
    s->want_ready = AGX_MIN(config->ready, (unsigned)AGX_NSSET_READY_MAX);
    s->notice = config->notice;
    s->user = config->user;
    s->maker = agx_new(struct agx_nsset_maker);
    s->maker->fd = s->maker->init_fd = -1;
    s->maker->init_path = agx_str_dup(agx_str_from(config->init_path));
    (void)snprintf(s->maker->alias, sizeof(s->maker->alias), "agentix-%.*s", INSTANCE_QUOTED_MAX,
                   config->instance);
    r = s->maker->init_path ? open_parts(s, config, err) : agx_error_no_memory(err);
    if (r < 0) {
        agx_nsset_maker_done(s->maker);
        free(s->maker);
        agx_ids_done(&s->ids);
        free(s);
        return r;
    }
    open_timer(s, &s->serve);
    open_timer(s, &s->fill);
    open_timer(s, &s->sweep);
    *ret_nssets = s;
    return 0;
}

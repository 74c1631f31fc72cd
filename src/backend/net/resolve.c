/*
 * resolve.c: names that several sandboxes share, and the lists made from them.
 *
 *   name:     ASKED (a job runs) --answer--> known --every_ms--> ASKED ...
 *   resolve:  waits for the first answer to all its names, or for first_ms --> told --> told again
 *
 * Invariants:
 *  (1) a name lives as long as a resolve uses it; a job that outlives its name just ends.
 *  (2) `changed` is called from timers and jobs only, for one resolve at a time, which may be
 * stopped inside the call: a walk over the users fetches the next one before.
 */
#include "backend/net/resolve.h"

#include "base/clock.h"
#include "base/limits_backend.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "core/text.h"
#include "loop/job.h"

#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>

#include "base/banned.h"

struct known {
    struct agx_subnet address;
    uint64_t seen_ms;
};

struct name;

struct lookup {
    struct agx_job job;
    struct agx_resolver *resolver;
    struct name *name; /* NULL: no longer needed; loop thread */
    agx_lookup_fn ask; /* the thread's copy, which may outlive the resolver */
    void *user;
    char *text;
    struct agx_subnet_list found;
};

struct name {
    struct agx_resolver *resolver;
    char *text;
    unsigned users;
    bool asked; /* there was an answer or a failure */
    struct lookup *lookup;
    struct known known[AGX_RESOLVE_ADDRESSES_MAX];
    size_t n_known;
};

struct entry {
    struct agx_egress egress; /* without the name */
    struct name *name;        /* NULL: an address */
};

struct agx_resolve {
    struct agx_list_node node;
    struct agx_resolver *resolver;
    agx_resolved_fn changed;
    void *user;
    uv_timer_t first;
    bool told;
    struct entry *entries;
    size_t n_entries;
};

struct agx_resolver {
    struct agx_loop *loop;
    struct agx_resolver_config config;
    struct agx_pool *pool;
    uv_timer_t again;
    struct agx_map names;
    struct agx_list users; /* of struct agx_resolve */
    unsigned n_open;       /* what the end waits for */
    agx_done_fn closed;
    void *closed_user;
};

/* ---- asking ---- */

static int add_address(struct agx_subnet_list *out, const struct sockaddr *sa,
                       struct agx_error **err)
{
    struct agx_subnet s = { 0 };

    if (sa->sa_family == AF_INET) {
        s.prefix = 32;
        memcpy(s.address, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        s.ipv6 = true;
        s.prefix = 128;
        memcpy(s.address, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
    } else {
        return 0;
    }
    return agx_subnet_list_add(out, &s, err);
}

static int ask_system(void *user, const char *name, struct agx_subnet_list *out,
                      struct agx_error **err)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    int r = getaddrinfo(name, NULL, &hints, &list);

    (void)user;
    if (r == EAI_NONAME || r == EAI_NODATA)
        return 0; /* the answer is that there are none */
    if (r != 0)
        return agx_error_set(err, AGX_UNAVAILABLE, "resolve '%s': %s", name, gai_strerror(r));
    for (const struct addrinfo *a = list; r == 0 && a; a = a->ai_next)
        r = add_address(out, a->ai_addr, err);
    freeaddrinfo(list);
    return r;
}

static int run_lookup(struct agx_job *job, struct agx_error **err)
{
    struct lookup *q = container_of(job, struct lookup, job);

    return q->ask(q->user, q->text, &q->found, err);
}

/* ---- lists ---- */

static void make_list(const struct agx_resolve *v, struct agx_egress *out, size_t *ret_n)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_entries; i++) {
        const struct entry *e = &v->entries[i];

        if (!e->name && n < AGX_FIREWALL_EGRESS_MAX)
            out[n++] = e->egress;
        for (size_t j = 0; e->name && j < e->name->n_known && n < AGX_FIREWALL_EGRESS_MAX; j++)
            out[n++] = (struct agx_egress){ .name = agx_str_from(e->name->text),
                                            .to = e->name->known[j].address,
                                            .port = e->egress.port };
    }
    *ret_n = n;
}

static void resolve_tell(struct agx_resolve *v)
{
    struct agx_egress *list = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*list));
    size_t n;

    make_list(v, list, &n);
    v->told = true;
    (void)uv_timer_stop(&v->first);
    v->changed(v->user, list, n);
    free(list);
}

static bool uses(const struct agx_resolve *v, const struct name *name)
{
    for (size_t i = 0; i < v->n_entries; i++) {
        if (v->entries[i].name == name)
            return true;
    }
    return false;
}

static bool all_asked(const struct agx_resolve *v)
{
    for (size_t i = 0; i < v->n_entries; i++) {
        if (v->entries[i].name && !v->entries[i].name->asked)
            return false;
    }
    return true;
}

static void tell_users(struct agx_resolver *r, const struct name *name, bool changed)
{
    AGX_LIST_FOR_EACH (struct agx_resolve, v, &r->users, node) {
        if (!uses(v, name))
            continue;
        if (v->told ? changed : all_asked(v))
            resolve_tell(v);
    }
}

/* ---- names ---- */

/* True when it is new. */
static bool see(struct name *n, const struct agx_subnet *s, uint64_t now)
{
    if (!agx_subnet_is_public(s))
        return false;
    for (size_t i = 0; i < n->n_known; i++) {
        if (agx_subnet_contains(&n->known[i].address, s)) {
            n->known[i].seen_ms = now;
            return false;
        }
    }
    if (n->n_known == AGX_RESOLVE_ADDRESSES_MAX)
        return false;
    n->known[n->n_known++] = (struct known){ *s, now };
    return true;
}

/* True when some were removed. */
static bool forget_old(struct name *n, uint64_t now)
{
    size_t kept = 0, had = n->n_known;

    for (size_t i = 0; i < n->n_known; i++) {
        if (now - n->known[i].seen_ms < n->resolver->config.keep_ms)
            n->known[kept++] = n->known[i];
    }
    n->n_known = kept;
    return kept != had;
}

static void lookup_free(struct lookup *q)
{
    agx_subnet_list_done(&q->found);
    free(q->text);
    free(q);
}

static void on_looked_up(struct agx_job *job, struct agx_error *error)
{
    struct lookup *q = container_of(job, struct lookup, job);
    struct name *n = q->name;
    uint64_t now = agx_clock_ms();
    bool changed = false;

    if (n) {
        n->lookup = NULL;
        n->asked = true;
        if (!error) { /* old ones first, to make room */
            changed = forget_old(n, now);
            for (size_t i = 0; i < q->found.len; i++)
                changed = see(n, &q->found.items[i], now) || changed;
        }
        tell_users(q->resolver, n, changed);
    }
    agx_error_free(error);
    lookup_free(q);
}

static const struct agx_job_kind lookup_kind = {
    .name = "resolve",
    .run = run_lookup,
    .done = on_looked_up,
};

/* When the pool is full, it is tried again at the next interval. */
static void ask(struct name *n)
{
    struct lookup *q;

    if (n->lookup)
        return;
    q = agx_new(struct lookup);
    q->job.kind = &lookup_kind;
    q->resolver = n->resolver;
    q->name = n;
    q->ask = n->resolver->config.lookup ? n->resolver->config.lookup : ask_system;
    q->user = n->resolver->config.user;
    q->text = agx_str_dup(agx_str_from(n->text));
    if (!q->text || agx_job_start(&q->job, n->resolver->pool, NULL) < 0) {
        lookup_free(q);
        return;
    }
    n->lookup = q;
}

static void on_again(uv_timer_t *t)
{
    struct agx_resolver *r = t->data;
    void *value;

    for (size_t at = 0; agx_map_next(&r->names, &at, NULL, &value);)
        ask(value);
}

static struct name *name_use(struct agx_resolver *r, struct agx_str text)
{
    struct name *n = agx_map_get(&r->names, text);

    if (!n) {
        n = agx_new(struct name);
        n->resolver = r;
        n->text = agx_str_dup(text);
        if (!n->text || agx_map_put(&r->names, text, n, NULL) < 0) {
            free(n->text);
            free(n);
            return NULL;
        }
        ask(n);
    }
    n->users++;
    return n;
}

static void name_drop(struct name *n)
{
    if (--n->users > 0)
        return;
    (void)agx_map_remove(&n->resolver->names, agx_str_from(n->text));
    if (n->lookup) {
        n->lookup->name = NULL;
        agx_job_cancel(&n->lookup->job);
    }
    free(n->text);
    free(n);
}

/* ---- resolves ---- */

static void on_first(uv_timer_t *t)
{
    struct agx_resolve *v = t->data;

    if (!v->told)
        resolve_tell(v);
}

static void on_resolve_closed(uv_handle_t *h)
{
    free(h->data);
}

struct agx_resolve *agx_resolve_stop(struct agx_resolve *v)
{
    if (!v)
        return NULL;
    agx_list_remove(&v->node);
    for (size_t i = 0; i < v->n_entries; i++) {
        if (v->entries[i].name)
            name_drop(v->entries[i].name);
    }
    free(v->entries);
    v->entries = NULL;
    v->n_entries = 0;
    uv_close((uv_handle_t *)&v->first, on_resolve_closed);
    return NULL;
}

static bool copy_list(struct agx_resolve *v, const struct agx_egress *list, size_t n)
{
    v->entries = calloc(n ? n : 1, sizeof(*v->entries));
    if (!v->entries)
        return false;
    for (; v->n_entries < n; v->n_entries++) {
        struct entry *e = &v->entries[v->n_entries];

        e->egress = list[v->n_entries];
        if (e->egress.name.len > 0 && !(e->name = name_use(v->resolver, e->egress.name)))
            return false;
        e->egress.name = (struct agx_str){ 0 };
    }
    return true;
}

int agx_resolve_start(struct agx_resolver *r, const struct agx_egress *list, size_t n,
                      agx_resolved_fn changed, void *user, struct agx_resolve **ret_resolve,
                      struct agx_error **err)
{
    struct agx_resolve *v = agx_new(struct agx_resolve);

    agx_loop_assert(r->loop);
    *v = (struct agx_resolve){ .resolver = r, .changed = changed, .user = user };
    agx_list_push_front(&r->users, &v->node);
    (void)uv_timer_init(agx_loop_uv(r->loop), &v->first);
    v->first.data = v;
    if (!copy_list(v, list, n)) {
        agx_resolve_stop(v);
        return agx_error_no_memory(err);
    }
    (void)uv_timer_start(&v->first, on_first, all_asked(v) ? 0 : r->config.first_ms, 0);
    *ret_resolve = v;
    return 0;
}

/* ---- the resolver ---- */

static void resolve_end(struct agx_resolver *r)
{
    agx_done_fn closed = r->closed;
    void *user = r->closed_user;

    if (--r->n_open > 0)
        return;
    agx_map_done(&r->names);
    free(r);
    if (closed)
        closed(user, NULL);
}

static void on_timer_closed(uv_handle_t *h)
{
    resolve_end(h->data);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    agx_error_free(error);
    resolve_end(user);
}

void agx_resolver_close(struct agx_resolver *r, agx_done_fn closed, void *user)
{
    assert(agx_list_is_empty(&r->users));
    r->closed = closed;
    r->closed_user = user;
    uv_close((uv_handle_t *)&r->again, on_timer_closed);
    if (r->pool) {
        r->n_open++;
        agx_pool_stop(r->pool, AGX_RESOLVE_STOP_MS, on_pool_stopped, r);
    }
}

int agx_resolver_open(struct agx_loop *l, const struct agx_resolver_config *config,
                      struct agx_resolver **ret_resolver, struct agx_error **err)
{
    static const struct agx_resolver_config by_default = AGX_RESOLVER_CONFIG_INIT;
    const struct agx_pool_config pool = { "agx-resolve", AGX_RESOLVE_THREADS, AGX_RESOLVE_QUEUE };
    struct agx_siphash_key seed;
    struct agx_resolver *r;
    int e = agx_random_bytes(&seed, sizeof(seed), err);

    if (e < 0)
        return e;
    r = agx_new(struct agx_resolver);
    r->loop = l;
    r->config = config ? *config : by_default;
    r->n_open = 1;
    agx_map_init(&r->names, seed);
    (void)uv_timer_init(agx_loop_uv(l), &r->again);
    r->again.data = r;
    (void)uv_timer_start(&r->again, on_again, r->config.every_ms, r->config.every_ms);
    uv_unref((uv_handle_t *)&r->again);
    e = agx_pool_open(l, &pool, &r->pool, err);
    if (e < 0) {
        agx_resolver_close(r, NULL, NULL);
        return e;
    }
    *ret_resolver = r;
    return 0;
}

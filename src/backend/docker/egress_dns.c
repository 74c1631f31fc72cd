/* egress_dns.c: the egress watch: resolves egress lists and updates the firewall. */
#include "backend/docker/egress_dns.h"

#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

struct agx_docker_egress_dns {
    struct agx_docker *docker;
    char *sandbox_id;
    char *egress; /* its names are in the list that is resolved */
    struct agx_docker_net net;
    struct agx_resolve *resolve;
    struct agx_firewall_op *op; /* the last put, while in progress */
    agx_done_fn done;           /* NULL: was called, or not wanted */
    void *user;
};

int agx_docker_egress_parse(const char *text, struct agx_egress *ret, size_t *ret_n,
                            struct agx_error **err)
{
    struct agx_str rest = agx_str_from(text), word;
    size_t n = 0;
    int r = 0;

    while (r == 0 && rest.len > 0 && agx_str_split(&rest, ' ', &word)) {
        if (n == AGX_FIREWALL_EGRESS_MAX)
            r = agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "egress: more than %d entries",
                              AGX_FIREWALL_EGRESS_MAX);
        else
            r = agx_egress_parse(word, &ret[n++], err);
    }
    *ret_n = n;
    return r;
}

static struct agx_docker_egress_dns *egress_dns_find(const struct agx_docker *d,
                                                     const char *sandbox_id)
{
    return agx_map_get(&d->egress_dns, agx_str_from(sandbox_id));
}

/* Takes the error. */
static void egress_dns_tell(struct agx_docker_egress_dns *g, struct agx_error *error)
{
    agx_done_fn done = AGX_TAKE_PTR(g->done);

    if (done) {
        done(g->user, error);
        return;
    }
    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.egress_not_put", AGX_F_STR("sandbox", g->sandbox_id),
                AGX_F_ERR(error));
    agx_error_free(error);
}

static void on_put(void *user, struct agx_error *error)
{
    struct agx_docker_egress_dns *g = user;

    g->op = NULL;
    egress_dns_tell(g, error);
}

/* Only the last list counts: an earlier one that is still pending reaches the kernel before it. */
static void on_resolved(void *user, const struct agx_egress *list, size_t n)
{
    struct agx_docker_egress_dns *g = user;
    const struct agx_firewall_member m = { .sandbox_id = g->sandbox_id,
                                           .bridge = g->net.bridge,
                                           .subnets = g->net.subnets,
                                           .n_subnets = g->net.n_subnets,
                                           .closed = true,
                                           .egress = list,
                                           .n_egress = n };
    struct agx_error *error = NULL;

    if (g->op)
        agx_firewall_abandon(AGX_TAKE_PTR(g->op));
    if (agx_firewall_put(g->docker->firewall, &m, on_put, g, &g->op, &error) < 0)
        egress_dns_tell(g, error);
}

static void guard_free(struct agx_docker_egress_dns *g)
{
    agx_resolve_stop(g->resolve);
    if (g->op)
        agx_firewall_abandon(g->op);
    free(g->sandbox_id);
    free(g->egress);
    free(g);
}

static int egress_dns_begin(struct agx_docker_egress_dns *g, struct agx_error **err)
{
    struct agx_egress *list = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*list));
    size_t n;
    int r = agx_docker_egress_parse(g->egress, list, &n, err);

    if (r == 0)
        r = agx_resolve_start(g->docker->resolver, list, n, on_resolved, g, &g->resolve, err);
    free(list);
    return r;
}

int agx_docker_egress_dns_start(struct agx_docker *d, const char *sandbox_id,
                                const struct agx_docker_net *net, const char *egress,
                                agx_done_fn done, void *user, struct agx_error **err)
{
    struct agx_docker_egress_dns *g = agx_new(struct agx_docker_egress_dns);
    int r;

    agx_docker_egress_dns_stop(d, sandbox_id);
    *g = (struct agx_docker_egress_dns){ .docker = d, .net = *net, .done = done, .user = user };
    g->egress = agx_str_dup(agx_str_from(egress)); /* also a list without entries */
    if (!g->egress)
        abort();
    r = agx_text_set(&g->sandbox_id, sandbox_id, err);
    if (r == 0)
        r = agx_map_put(&d->egress_dns, agx_str_from(sandbox_id), g, NULL);
    if (r == 0)
        r = egress_dns_begin(g, err);
    if (r < 0) {
        (void)agx_map_remove(&d->egress_dns, agx_str_from(sandbox_id));
        guard_free(g);
    }
    return r;
}

void agx_docker_egress_dns_abandon(struct agx_docker *d, const char *sandbox_id)
{
    struct agx_docker_egress_dns *g = egress_dns_find(d, sandbox_id);

    if (g)
        g->done = NULL;
}

bool agx_docker_egress_dns_has(const struct agx_docker *d, const char *sandbox_id)
{
    return egress_dns_find(d, sandbox_id) != NULL;
}

void agx_docker_egress_dns_stop(struct agx_docker *d, const char *sandbox_id)
{
    struct agx_docker_egress_dns *g = agx_map_remove(&d->egress_dns, agx_str_from(sandbox_id));

    if (g)
        guard_free(g);
}

void agx_docker_egress_dns_stop_all(struct agx_docker *d)
{
    void *value;

    for (size_t at = 0; agx_map_next(&d->egress_dns, &at, NULL, &value);)
        guard_free(value);
    agx_map_done(&d->egress_dns);
}

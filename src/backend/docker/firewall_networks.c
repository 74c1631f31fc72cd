/*
 * firewall_networks.c: keeps the firewall matched with the engine's networks.
 *
 *     sync:  LIST --> FIREWALL --> done: waiting puts go on
 *             ^  |
 *             |  v
 *         DUP_NETWORKS  a sandbox has duplicate networks: unused ones are removed, because the
 *                       firewall has one network per sandbox
 */
#include "backend/docker/firewall_networks.h"

#include "backend/docker/dup_networks.h"
#include "backend/docker/egress_dns.h"
#include "backend/docker/inventory.h"
#include "backend/docker/spare_networks.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#include "base/banned.h"

struct agx_docker_firewalling {
    struct agx_list_node node; /* in firewall_waits, while it waits for the sync */
    struct agx_docker *docker;
    char *sandbox_id;
    struct agx_docker_net net;
    char *egress; /* NULL: no list */
    agx_done_fn done;
    void *user;
    bool waits;                 /* for the sync */
    struct agx_firewall_op *op; /* without a list */
};

static void firewalling_free(struct agx_docker_firewalling *f)
{
    free(f->sandbox_id);
    free(f->egress);
    free(f);
}

int agx_docker_net_parse(struct agx_docker_net *n, const json_t *network, struct agx_error **err)
{
    const char *id = json_string_value(json_object_get(network, "Id"));
    const char *name = json_string_value(json_object_get(network, "Name"));
    const char *bridge = json_string_value(
        json_object_get(json_object_get(network, "Options"), "com.docker.network.bridge.name"));
    const json_t *ranges = json_object_get(json_object_get(network, "IPAM"), "Config"), *range;
    size_t i;

    *n = (struct agx_docker_net){ 0 };
    if (agx_docker_spare_networks_is(name))
        (void)snprintf(n->name, sizeof(n->name), "%s", name);
    if (bridge)
        (void)snprintf(n->bridge, sizeof(n->bridge), "%s", bridge);
    else
        (void)snprintf(n->bridge, sizeof(n->bridge), "br-%.12s", agx_text(id));
    json_array_foreach(ranges, i, range)
    {
        const char *subnet = json_string_value(json_object_get(range, "Subnet"));
        int r =
            n->n_subnets == AGX_DOCKER_NET_SUBNETS
                ? -AGX_RESOURCE_EXHAUSTED
                : agx_subnet_parse(agx_str_from(agx_text(subnet)), &n->subnets[n->n_subnets], NULL);

        if (r < 0)
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "network '%s' has addresses that the firewall does not support",
                                 agx_text(id));
        n->n_subnets++;
    }
    if (n->n_subnets == 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "network '%s' has no addresses",
                             agx_text(id));
    return 0;
}

int agx_docker_egress_text(const struct agx_spec *spec, char **ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_DOCKER_EGRESS_TEXT);
    int r = 0;

    *ret = NULL;
    if (spec->network != AGX_NETWORK_EGRESS)
        return 0;
    for (size_t i = 0; r == 0 && i < spec->egress.len; i++)
        r = agx_buf_printf(&text, "%s%s", i > 0 ? " " : "", spec->egress.items[i]);
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "egress: the list is too long");
    *ret = agx_str_dup(agx_buf_peek(&text));
    return *ret ? 0 : agx_error_no_memory(err);
}

/* Its own name for the bridge, so that its rules can be made before it. */
int agx_docker_net_plan(struct agx_docker *d, struct agx_docker_net *n,
                        char ret_subnet[AGX_SUBNET_TEXT], struct agx_error **err)
{
    struct agx_subnet_list taken = { 0 };
    uint64_t number;
    int r = agx_random_bytes(&number, sizeof(number), err);

    *n = (struct agx_docker_net){ 0 };
    (void)snprintf(n->bridge, sizeof(n->bridge), "agx-%011" PRIx64,
                   number & UINT64_C(0xfffffffffff));
    if (r < 0 || !d->has_pool)
        return r;
    r = agx_subnets_host(&taken, err);
    if (r == 0)
        r = agx_subnets_next(&d->subnets, &taken, &n->subnets[0], err);
    agx_subnet_list_done(&taken);
    n->n_subnets = 1;
    if (r == 0)
        (void)agx_subnet_format(&n->subnets[0], ret_subnet);
    return r;
}

static struct agx_firewall_member member_of(const char *sandbox_id, const struct agx_docker_net *n)
{
    return (struct agx_firewall_member){ .sandbox_id = sandbox_id,
                                         .bridge = n->bridge,
                                         .subnets = n->subnets,
                                         .n_subnets = n->n_subnets };
}

/* ---- put ---- */

/* Takes the error. */
static void firewalling_end(struct agx_docker_firewalling *f, struct agx_error *error)
{
    f->done(f->user, error);
    firewalling_free(f);
}

static void on_put(void *user, struct agx_error *error)
{
    firewalling_end(user, error);
}

static int firewall_networks_put(struct agx_docker_firewalling *f, struct agx_error **err)
{
    const struct agx_firewall_member m = member_of(f->sandbox_id, &f->net);

    f->waits = false;
    return f->egress ? agx_docker_egress_dns_start(f->docker, f->sandbox_id, &f->net, f->egress,
                                                   on_put, f, err)
                     : agx_firewall_put(f->docker->firewall, &m, on_put, f, &f->op, err);
}

int agx_docker_firewall_put(struct agx_docker *d, const char *sandbox_id,
                            const struct agx_docker_net *n, const char *egress, agx_done_fn done,
                            void *user, struct agx_docker_firewalling **ret_firewalling,
                            struct agx_error **err)
{
    struct agx_docker_firewalling *f;
    int r;

    if (!d->firewall)
        return 1;
    f = agx_new(struct agx_docker_firewalling);
    *f = (struct agx_docker_firewalling){
        .docker = d, .net = *n, .done = done, .user = user, .waits = true
    };
    if (egress && !(f->egress = agx_str_dup(agx_str_from(egress))))
        abort();
    r = agx_text_set(&f->sandbox_id, sandbox_id, err);
    if (r == 0 && d->firewall_synced)
        r = firewall_networks_put(f, err);
    if (r < 0) {
        firewalling_free(f);
        return r;
    }
    *ret_firewalling = f;
    if (!f->waits)
        return 0;
    agx_list_push_front(&d->firewall_waits, &f->node);
    agx_docker_firewall_sync(d);
    return 0;
}

void agx_docker_firewall_abandon(struct agx_docker_firewalling *f)
{
    if (!f)
        return;
    if (f->waits)
        agx_list_remove(&f->node);
    else if (f->egress)
        agx_docker_egress_dns_abandon(f->docker, f->sandbox_id);
    else
        agx_firewall_abandon(f->op);
    firewalling_free(f);
}

/* The sync has ended: waiting calls go on, or fail with it. */
static void release_waits(struct agx_docker *d, const struct agx_error *error)
{
    struct agx_docker_firewalling *f;

    while ((f = AGX_LIST_TAKE(&d->firewall_waits, struct agx_docker_firewalling, node))) {
        struct agx_error *why = error ? agx_error_dup(error) : NULL;

        if (error || firewall_networks_put(f, &why) < 0)
            firewalling_end(f, why);
    }
}

/* ---- sync ---- */

enum { SYNC_DONE = AGX_OP_DONE, SYNC_LIST, SYNC_DUP_NETWORKS, SYNC_FIREWALL };

struct sync {
    struct agx_op op;
    json_t *networks;
    bool parted; /* second networks were removed, as far as they could be */
    struct agx_firewall_op *firewalling;
};

static struct sync *sync_of(struct agx_op *op)
{
    return container_of(op, struct sync, op);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_parted(void *user, struct agx_error *error)
{
    struct sync *x = user;

    agx_op_fail(&x->op, &error);
    agx_op_arrive(&x->op);
}

/* Counts sandboxes with more than one network, and begins to remove duplicates when `mends`. */
static size_t find_dup_networks(struct sync *x, bool mends)
{
    const struct agx_docker *d = agx_docker_by(&x->op);
    const char **ids = agx_alloc((json_array_size(x->networks) + 1) * sizeof(*ids));
    size_t n = 0, dup_networks = 0, i;
    const json_t *network;

    json_array_foreach(x->networks, i, network)
    {
        struct agx_docker_tag tag;

        if (agx_docker_labels_read(&d->maker, json_object_get(network, "Labels"), &tag))
            ids[n++] = tag.sandbox_id;
    }
    qsort(ids, n, sizeof(*ids), by_text);
    for (i = 1; i < n; i++) {
        if (strcmp(ids[i - 1], ids[i]) != 0 || (i > 1 && strcmp(ids[i - 2], ids[i]) == 0))
            continue;
        dup_networks++;
        if (mends) {
            agx_op_hold(&x->op);
            (void)agx_docker_dup_networks_remove(agx_docker_by(&x->op), ids[i], NULL, on_parted, x);
        }
    }
    free(ids);
    return dup_networks;
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    struct sync *x = sync_of(op);

    (void)tag;
    if (!error) {
        json_decref(x->networks);
        x->networks = json_incref(answer->json);
        if (!x->parted && find_dup_networks(x, false) > 0)
            op->then = SYNC_DUP_NETWORKS;
    }
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    _cleanup_free_ char *filters = agx_docker_inventory_filters(agx_docker_by(op), NULL);
    int r = !filters ? agx_error_no_memory(err)
                     : agx_docker_ask(op,
                                      &(struct agx_docker_query){
                                          .request = { .method = "GET", .what = "list networks" },
                                          .path = agx_docker_path("/networks?filters=%s", filters),
                                          .answered = on_listed },
                                      err);

    return agx_op_wait(op, r, SYNC_FIREWALL, err);
}

static int enter_dup_networks(struct agx_op *op, struct agx_error **err)
{
    struct sync *x = sync_of(op);

    x->parted = true;
    (void)find_dup_networks(x, true);
    return agx_op_wait(op, 0, SYNC_LIST, err);
}

static void on_synced(void *user, struct agx_error *error)
{
    struct sync *x = user;

    x->firewalling = NULL;
    agx_op_fail(&x->op, &error);
    agx_op_arrive(&x->op);
}

/* True: the network must be in the firewall. One that the firewall does not support has no running
 * sandbox of ours, and one with an egress watch is known already. */
static bool read_network(const struct agx_docker *d, const json_t *network,
                         struct agx_docker_tag *tag, struct agx_docker_net *net)
{
    const bool tagged = agx_docker_labels_read(&d->maker, json_object_get(network, "Labels"), tag);

    if (agx_docker_net_parse(net, network, NULL) < 0)
        return false;
    if (net->name[0]) { /* whether a sandbox has taken it or not */
        *tag = (struct agx_docker_tag){ .sandbox_id = net->name };
        return true;
    }
    return tagged && !agx_docker_egress_dns_has(d, tag->sandbox_id);
}

/* Names on egress lists allow nothing yet: they must be resolved first. */
static int firewall_all(struct sync *x, struct agx_error **err)
{
    const struct agx_docker *d = agx_docker_by(&x->op);
    const size_t max = json_array_size(x->networks);
    struct agx_docker_net *nets = agx_alloc((max + 1) * sizeof(*nets));
    struct agx_firewall_member *members = agx_alloc((max + 1) * sizeof(*members));
    const json_t *network;
    size_t n = 0, i;
    int r;

    json_array_foreach(x->networks, i, network)
    {
        struct agx_docker_tag tag;

        if (!read_network(d, network, &tag, &nets[n]))
            continue;
        members[n] = member_of(tag.sandbox_id, &nets[n]);
        members[n].closed = tag.egress != NULL;
        n++;
    }
    r = agx_firewall_sync(d->firewall, members, n, on_synced, x, &x->firewalling, err);
    free(nets);
    free(members);
    return r;
}

static int enter_firewall(struct agx_op *op, struct agx_error **err)
{
    int r = firewall_all(sync_of(op), err);

    if (r == 0)
        agx_op_hold(op);
    return agx_op_wait(op, r, SYNC_DONE, err);
}

/* Starts the egress watches of an earlier daemon. */
static void guard_all(const struct sync *x)
{
    struct agx_docker *d = agx_docker_by(&x->op);
    const json_t *network;
    size_t i;

    json_array_foreach(x->networks, i, network)
    {
        struct agx_error *error = NULL;
        struct agx_docker_net net;
        struct agx_docker_tag tag;

        if (!read_network(d, network, &tag, &net) || !tag.egress)
            continue;
        if (agx_docker_egress_dns_start(d, tag.sandbox_id, &net, tag.egress, NULL, NULL, &error) <
            0)
            AGX_LOG(AGX_LOG_DEBUG, "docker.egress_not_guarded",
                    AGX_F_STR("sandbox", tag.sandbox_id), AGX_F_ERR(error));
        agx_error_free(error);
    }
}

static void cancel_sync(struct agx_op *op)
{
    struct sync *x = sync_of(op);

    if (!x->firewalling)
        return;
    agx_firewall_abandon(x->firewalling);
    x->firewalling = NULL;
    agx_op_arrive(op);
}

static void sync_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_docker *d = agx_docker_by(op);

    d->syncing = NULL;
    if (!error && !d->base.closing) {
        d->firewall_synced = true;
        guard_all(sync_of(op));
    } else if (error) {
        AGX_LOG(AGX_LOG_DEBUG, "docker.firewall_not_synced", AGX_F_ERR(error));
    }
    json_decref(sync_of(op)->networks);
    free(sync_of(op));
    release_waits(d, error);
    if (!error)
        agx_docker_spare_networks_begin(d);
    agx_error_free(error);
}

static const struct agx_op_state sync_states[] = {
    [SYNC_LIST] = { "list", enter_list, agx_op_cancel_held },
    [SYNC_DUP_NETWORKS] = { "dup-networks", enter_dup_networks, agx_op_cancel_held },
    [SYNC_FIREWALL] = { "firewall", enter_firewall, agx_op_cancel_held },
};

static const struct agx_op_kind sync_kind = {
    .name = "docker-firewall",
    .states = sync_states,
    .n_states = AGX_ARRAY_LEN(sync_states),
    .cancel_held = cancel_sync,
    .finish = sync_ended,
};

void agx_docker_firewall_sync(struct agx_docker *d)
{
    struct sync *x;

    if (!d->firewall || d->syncing || d->base.closing)
        return;
    x = agx_new(struct sync);
    d->syncing = &x->op;
    agx_op_start_in(&x->op, &sync_kind, &d->operations, "all", 0);
}

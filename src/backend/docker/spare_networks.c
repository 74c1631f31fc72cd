/*
 * spare_networks.c: keeps networks ready, one operation for the backend's whole life.
 *
 *     LIST --> SWEEP --> MAKE --> FIREWALL --> MAKE ... --> REST --> MAKE
 *                          |        |                     ^
 *                          +--------+-- a failure --------+   for a while
 *
 * Spares are made one after the other, and only some time after one was taken: the create that took
 * it gets the engine for itself.
 */
#include "backend/docker/spare_networks.h"

#include "backend/docker/create_body.h"
#include "backend/docker/inventory.h"
#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

/* Ids of sandboxes have no dot. */
#define PREFIX "agentix.ready-"

enum { READY_DONE = AGX_OP_DONE, READY_LIST, READY_SWEEP, READY_MAKE, READY_FIREWALL, READY_REST };

struct agx_docker_spare_networks {
    struct agx_op op;
    json_t *networks, *containers;              /* the lists of the beginning */
    struct agx_docker_net making;               /* the one that is being made */
    struct agx_docker_firewalling *firewalling; /* of it */
    bool failed;                                /* the last one could not be made */
    bool resting;                               /* until one is taken */
    size_t len;
    struct agx_docker_net items[]; /* room for networks_ready */
};

static struct agx_docker_spare_networks *ready_of(struct agx_op *op)
{
    return container_of(op, struct agx_docker_spare_networks, op);
}

bool agx_docker_spare_networks_is(const char *network)
{
    return network && agx_str_starts(agx_str_from(network), AGX_STR(PREFIX));
}

/* ---- what an earlier daemon left ---- */

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    struct agx_docker_spare_networks *x = ready_of(op);

    if (error)
        agx_error_free(error); /* nothing is swept this time */
    else
        *(tag == 0 ? &x->networks : &x->containers) = json_incref(answer->json);
}

/* All containers, also foreign ones: one could be on our network. */
static int enter_list(struct agx_op *op, struct agx_error **err)
{
    _cleanup_free_ char *filters = agx_docker_inventory_filters(agx_docker_by(op), NULL);
    struct agx_docker_query q = { .request = { .method = "GET" }, .answered = on_listed };
    int r;

    if (!filters)
        return agx_op_wait(op, agx_error_no_memory(err), READY_SWEEP, err);
    q.request.what = "list networks";
    q.path = agx_docker_path("/networks?filters=%s", filters);
    r = agx_docker_ask(op, &q, err);
    if (r == 0) {
        q.request.what = "list containers";
        q.path = agx_docker_path("/containers/json?all=1");
        q.tag = 1;
        r = agx_docker_ask(op, &q, err);
    }
    return agx_op_wait(op, r, READY_SWEEP, err);
}

static bool is_used(const json_t *containers, const char *name, const char *id)
{
    const json_t *c;
    size_t i;

    json_array_foreach(containers, i, c)
    {
        const char *mode =
            json_string_value(json_object_get(json_object_get(c, "HostConfig"), "NetworkMode"));
        const json_t *on = json_object_get(json_object_get(c, "NetworkSettings"), "Networks");

        if (agx_text_eq(mode, name) || agx_text_eq(mode, id) || json_object_get(on, name))
            return true;
    }
    return false;
}

static void on_swept(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                     struct agx_error *error)
{
    const json_t *network = json_array_get(ready_of(op)->networks, i);
    const char *name = json_string_value(json_object_get(network, "Name"));
    int r = error ? -(int)error->code : 0;

    (void)answer;
    if (r == 0 && agx_docker_by(op)->firewall)
        r = agx_firewall_remove(agx_docker_by(op)->firewall, name, NULL, NULL, NULL, &error);
    if (r < 0)
        AGX_LOG(AGX_LOG_DEBUG, "docker.network_not_removed", AGX_F_STR("network", name),
                AGX_F_ERR(error));
    agx_error_free(error); /* the next daemon tries again */
}

static int enter_sweep(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_spare_networks *x = ready_of(op);
    const json_t *network;
    size_t i;
    int r = 0;

    json_array_foreach(x->containers ? x->networks : NULL, i, network)
    {
        const char *name = json_string_value(json_object_get(network, "Name"));
        const char *id = json_string_value(json_object_get(network, "Id"));

        if (r == 0 && id && agx_docker_spare_networks_is(name) && !is_used(x->containers, name, id))
            r = agx_docker_ask(op,
                               &(struct agx_docker_query){
                                   .request = { .method = "DELETE", .what = "remove network" },
                                   .path = agx_docker_path("/networks/%s", id),
                                   .answered = on_swept,
                                   .tag = i },
                               err);
    }
    return agx_op_wait(op, r, agx_docker_by(op)->networks_ready > 0 ? READY_MAKE : READY_DONE, err);
}

static void drop_lists(struct agx_docker_spare_networks *x)
{
    json_decref(x->networks);
    json_decref(x->containers);
    x->networks = x->containers = NULL;
}

/* ---- making one ---- */

/* It is made again later. */
static void put_off(struct agx_op *op, struct agx_error *error)
{
    AGX_LOG(AGX_LOG_DEBUG, "docker.network_not_ready", AGX_F_ERR(error));
    agx_error_free(error);
    ready_of(op)->failed = true;
    op->then = READY_REST;
}

static void on_made(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    (void)tag;
    (void)answer;
    if (error)
        put_off(op, error);
}

static int ask_for_one(struct agx_docker_spare_networks *x, struct agx_error **err)
{
    struct agx_docker *d = agx_docker_by(&x->op);
    _cleanup_json_ json_t *body = NULL;
    char subnet[AGX_SUBNET_TEXT];
    int r = agx_docker_net_plan(d, &x->making, subnet, err);

    (void)snprintf(x->making.name, sizeof(x->making.name), PREFIX "%s", x->making.bridge);
    if (r == 0)
        r = agx_docker_create_body_spare_network(&d->maker, x->making.name, subnet,
                                                 x->making.bridge, &body, err);
    if (r < 0)
        return r;
    return agx_docker_ask(
        &x->op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = "make a network", .body = body },
            .path = agx_docker_path("/networks/create"),
            .answered = on_made,
            .makes = true },
        err);
}

static int enter_make(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_spare_networks *x = ready_of(op);
    struct agx_error *why = NULL;

    drop_lists(x);
    x->failed = false;
    op->then = READY_FIREWALL;
    if (x->len == agx_docker_by(op)->networks_ready)
        op->then = READY_REST;
    else if (ask_for_one(x, &why) < 0)
        put_off(op, why);
    return agx_op_wait(op, 0, op->then, err);
}

static void on_firewalled(void *user, struct agx_error *error)
{
    struct agx_docker_spare_networks *x = user;

    x->firewalling = NULL;
    if (error)
        put_off(&x->op, error); /* nobody gets it; the next daemon removes it */
    else
        x->items[x->len++] = x->making;
    agx_op_arrive(&x->op);
}

static int enter_firewall(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_spare_networks *x = ready_of(op);
    struct agx_error *why = NULL;
    int r = agx_docker_firewall_put(agx_docker_by(op), x->making.name, &x->making, NULL,
                                    on_firewalled, x, &x->firewalling, &why);

    op->then = READY_MAKE;
    if (r == 0)
        agx_op_hold(op);
    else if (r < 0)
        put_off(op, why);
    else
        x->items[x->len++] = x->making; /* isolation is off */
    return agx_op_wait(op, 0, op->then, err);
}

/* ---- until one is taken ---- */

static int enter_rest(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_spare_networks *x = ready_of(op);

    if (x->failed) {
        agx_op_pause(op, AGX_DOCKER_NETWORK_AGAIN_MS);
    } else {
        x->resting = true;
        agx_op_hold(op);
    }
    return agx_op_wait(op, 0, READY_MAKE, err);
}

bool agx_docker_spare_networks_take(struct agx_docker *d, struct agx_docker_net *ret)
{
    struct agx_docker_spare_networks *x = d->spare_networks;

    if (!x || x->len == 0)
        return false;
    *ret = x->items[--x->len];
    if (x->resting) {
        x->resting = false;
        agx_op_pause(&x->op, AGX_DOCKER_NETWORK_LATER_MS);
        agx_op_arrive(&x->op);
    }
    return true;
}

/* ---- the whole ---- */

static void cancel_ready(struct agx_op *op)
{
    struct agx_docker_spare_networks *x = ready_of(op);

    if (x->firewalling) {
        agx_docker_firewall_abandon(AGX_TAKE_PTR(x->firewalling));
        agx_op_arrive(op);
    }
    if (x->resting) {
        x->resting = false;
        agx_op_arrive(op);
    }
}

static void ready_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_docker_spare_networks *x = ready_of(op);

    agx_error_free(error);
    agx_docker_by(op)->spare_networks = NULL;
    drop_lists(x);
    free(x);
}

static const struct agx_op_state ready_states[] = {
    [READY_LIST] = { "list", enter_list, agx_op_cancel_held },
    [READY_SWEEP] = { "sweep", enter_sweep, agx_op_cancel_held },
    [READY_MAKE] = { "make", enter_make, agx_op_cancel_held },
    [READY_FIREWALL] = { "firewall", enter_firewall, agx_op_cancel_held },
    [READY_REST] = { "rest", enter_rest, agx_op_cancel_held },
};

static const struct agx_op_kind ready_kind = {
    .name = "docker-ready",
    .states = ready_states,
    .n_states = AGX_ARRAY_LEN(ready_states),
    .cancel_held = cancel_ready,
    .finish = ready_ended,
};

void agx_docker_spare_networks_begin(struct agx_docker *d)
{
    struct agx_docker_spare_networks *x;

    if (d->spare_begun || d->base.closing)
        return;
    d->spare_begun = true;
    x = agx_alloc(sizeof(*x) + d->networks_ready * sizeof(x->items[0]));
    d->spare_networks = x;
    agx_op_start_in(&x->op, &ready_kind, &d->operations, "networks", 0);
}

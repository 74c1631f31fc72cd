/*
 * dup_networks.c: removes duplicate networks.
 *
 *     LIST --> REMOVE --> done
 */
#include "backend/docker/dup_networks.h"

#include "backend/docker/inventory.h"
#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

enum { DUP_NETWORKS_DONE = AGX_OP_DONE, DUP_NETWORKS_LIST, DUP_NETWORKS_REMOVE };

struct dup_networks {
    struct agx_op op;
    char *id;
    const struct agx_sandbox_op *task; /* only compared, never dereferenced */
    agx_done_fn done;
    void *user;
    struct agx_docker_inventory found;
};

static struct dup_networks *dup_networks_of(struct agx_op *op)
{
    return container_of(op, struct dup_networks, op);
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&dup_networks_of(op)->found, agx_docker_by(op),
                                        answer->json, &error);
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    int r = agx_docker_inventory_ask(op, dup_networks_of(op)->id, true, on_listed, err);

    return agx_op_wait(op, r, DUP_NETWORKS_REMOVE, err);
}

/* A container of the sandbox is in this network, or will be when it is started. */
static bool is_used(const struct agx_docker_inventory *c, const char *network)
{
    for (size_t i = 0; i < c->len; i++) {
        if (agx_text_eq(c->items[i].network_id, network))
            return true;
    }
    return false;
}

/* The network to keep when none is in use; NULL: one is in use. */
static const char *spared(const struct agx_docker_inventory *c)
{
    const char *first = NULL;

    for (size_t i = 0; i < c->len; i++) {
        if (c->items[i].component != AGX_DOCKER_NETWORK)
            continue;
        if (is_used(c, c->items[i].id))
            return NULL;
        first = first ? first : c->items[i].id;
    }
    return first;
}

/* One that is gone, or that somebody uses after all, is no matter. */
static void on_removed(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    const struct dup_networks *x = dup_networks_of(op);

    (void)answer;
    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.network_not_removed", AGX_F_STR("sandbox", x->id),
                AGX_F_ERR(error));
    else
        AGX_LOG(AGX_LOG_INFO, "docker.second_network_removed", AGX_F_STR("sandbox", x->id),
                AGX_F_STR("network", x->found.items[i].id));
    agx_error_free(error);
}

static int enter_remove(struct agx_op *op, struct agx_error **err)
{
    struct dup_networks *x = dup_networks_of(op);
    const struct agx_docker_box *box = agx_docker_box_find(agx_docker_by(op), x->id);
    const char *stays = spared(&x->found);
    int r = 0;

    if (box && box->task && box->task != x->task)
        return agx_op_wait(op, 0, DUP_NETWORKS_DONE, err);
    for (size_t i = 0; r == 0 && i < x->found.len; i++) {
        const struct agx_docker_found *f = &x->found.items[i];

        if (f->component == AGX_DOCKER_NETWORK && f->id != stays && !is_used(&x->found, f->id))
            r = agx_docker_ask(op,
                               &(struct agx_docker_query){
                                   .request = { .method = "DELETE", .what = "remove network" },
                                   .path = agx_docker_path("/networks/%s", f->id),
                                   .answered = on_removed,
                                   .tag = i },
                               err);
    }
    return agx_op_wait(op, r, DUP_NETWORKS_DONE, err);
}

static void dup_networks_ended(struct agx_op *op, struct agx_error *error)
{
    struct dup_networks *x = dup_networks_of(op);

    if (x->done) {
        x->done(x->user, error);
    } else {
        if (error)
            AGX_LOG(AGX_LOG_DEBUG, "docker.networks_not_looked_at", AGX_F_STR("sandbox", x->id),
                    AGX_F_ERR(error));
        agx_error_free(error);
    }
    agx_docker_inventory_done(&x->found);
    free(x->id);
    free(x);
}

static const struct agx_op_state dup_networks_states[] = {
    [DUP_NETWORKS_LIST] = { "list", enter_list, agx_op_cancel_held },
    [DUP_NETWORKS_REMOVE] = { "remove", enter_remove, agx_op_cancel_held },
};

static const struct agx_op_kind dup_networks_kind = {
    .name = "docker-dup-networks",
    .states = dup_networks_states,
    .n_states = AGX_ARRAY_LEN(dup_networks_states),
    .finish = dup_networks_ended,
};

struct agx_op *agx_docker_dup_networks_remove(struct agx_docker *d, const char *sandbox_id,
                                              const struct agx_sandbox_op *task, agx_done_fn done,
                                              void *user)
{
    struct dup_networks *x = agx_new(struct dup_networks);

    if (agx_text_set(&x->id, sandbox_id, NULL) < 0)
        abort();
    x->task = task;
    x->done = done;
    x->user = user;
    agx_op_start_in(&x->op, &dup_networks_kind, &d->operations, x->id, 0);
    return &x->op;
}

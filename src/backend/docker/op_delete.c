/*
 * op_delete.c: removes everything of a sandbox.
 *
 *     LIST --> STOP --> REMOVE --> NETWORKS --> FIREWALL --> done
 *      ^                   |           |
 *      +----- PAUSE <------+-----------+   something could not be removed: look again, a few times
 *
 * Whatever is listed by our labels is removed, by id; a name is never enough. This order keeps the
 * isolation until the last process has ended.
 */
#include "backend/docker/egress_dns.h"
#include "backend/docker/inventory.h"
#include "backend/docker/spare_networks.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#include "base/banned.h"

enum {
    REMOVE_DONE = AGX_OP_DONE,
    REMOVE_LIST,
    REMOVE_STOP,
    REMOVE_CONTAINERS,
    REMOVE_NETWORKS,
    REMOVE_FIREWALL,
    REMOVE_PAUSE,
};

struct removal {
    struct agx_op op;
    char *id;
    char *ready; /* the spare network that it took, or NULL */
    uint64_t grace_ms;
    agx_done_fn done;
    void *user;
    struct agx_docker_inventory found;
    struct agx_error *last; /* why something could not be removed in this round */
    unsigned rounds;
    struct agx_firewall_op *firewall_op;
};

static struct removal *removal_of(struct agx_op *op)
{
    return container_of(op, struct removal, op);
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    struct removal *m = removal_of(op);

    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&m->found, agx_docker_by(op), answer->json, &error);
    for (size_t i = 0; !error && !m->ready && i < m->found.len; i++) {
        if (agx_docker_spare_networks_is(m->found.items[i].network))
            (void)!agx_text_set(&m->ready, m->found.items[i].network, &error);
    }
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);
    int r;

    agx_docker_inventory_done(&m->found);
    agx_error_freep(&m->last);
    r = agx_docker_inventory_ask(&m->op, m->id, true, on_listed, err);
    return agx_op_wait(&m->op, r, REMOVE_STOP, err);
}

static void on_stopped(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    (void)op;
    (void)tag;
    (void)answer;
    agx_error_free(error); /* the removal kills what is left */
}

static int enter_stop(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->found.len && m->grace_ms > 0; i++) {
        const struct agx_docker_found *f = &m->found.items[i];

        if (f->component != AGX_DOCKER_NETWORK && agx_docker_status_runs(f->status))
            r = agx_docker_ask(
                &m->op,
                &(struct agx_docker_query){
                    .request = { .method = "POST",
                                 .what = "stop container",
                                 .deadline_ms = m->grace_ms + AGX_DOCKER_STOP_MORE_MS },
                    .path = agx_docker_path("/containers/%s/stop?t=%u", f->id,
                                            agx_docker_grace_s(m->grace_ms)),
                    .answered = on_stopped },
                err);
    }
    return agx_op_wait(&m->op, r, REMOVE_CONTAINERS, err);
}

/* It could not be removed; the next round may succeed. */
static void remember(struct removal *m, struct agx_error *error)
{
    if (error && error->code == AGX_NOT_FOUND)
        agx_error_freep(&error);
    agx_error_propagate(&m->last, &error);
}

static void on_removed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    (void)tag;
    (void)answer;
    remember(removal_of(op), error);
}

static int remove_all(struct removal *m, bool networks, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->found.len; i++) {
        const struct agx_docker_found *f = &m->found.items[i];
        struct agx_docker_query q = { .request = { .method = "DELETE" }, .answered = on_removed };

        if ((f->component == AGX_DOCKER_NETWORK) != networks)
            continue;
        q.request.what = networks ? "remove network" : "remove container";
        q.path = networks ? agx_docker_path("/networks/%s", f->id)
                          : agx_docker_path("/containers/%s?force=1&v=1", f->id);
        r = agx_docker_ask(&m->op, &q, err);
    }
    return r;
}

static int enter_containers(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);

    return agx_op_wait(&m->op, remove_all(m, false, err), REMOVE_NETWORKS, err);
}

static int enter_networks(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);
    int r = m->last ? 0 : remove_all(m, true, err); /* a network in use cannot be removed */

    if (r == 0 && !m->last && m->ready)
        r = agx_docker_ask(
            &m->op,
            &(struct agx_docker_query){ .request = { .method = "DELETE", .what = "remove network" },
                                        .path = agx_docker_path("/networks/%s", m->ready),
                                        .answered = on_removed },
            err);
    return agx_op_wait(&m->op, r, REMOVE_FIREWALL, err);
}

static int enter_pause(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);

    agx_op_pause(&m->op, AGX_DOCKER_REMOVE_AGAIN_MS);
    return agx_op_wait(&m->op, 0, REMOVE_LIST, err);
}

static void on_unfenced(void *user, struct agx_error *error)
{
    struct removal *m = user;

    m->firewall_op = NULL;
    agx_op_fail(&m->op, &error);
    agx_op_arrive(&m->op);
}

/* Everything is gone except the rules; or something could not be removed. */
static int enter_firewall(struct agx_op *op, struct agx_error **err)
{
    struct removal *m = removal_of(op);
    struct agx_docker *d = agx_docker_by(&m->op);
    int r = 0;

    if (m->last && m->rounds++ < AGX_DOCKER_REMOVE_ROUNDS)
        return agx_op_wait(&m->op, 0, REMOVE_PAUSE, err);
    if (m->last) {
        *err = AGX_TAKE_PTR(m->last);
        r = -(int)(*err)->code;
    } else if (d->firewall && d->firewall_synced) {
        agx_docker_egress_dns_stop(d, m->id);
        if (m->ready) /* both share what follows */
            r = agx_firewall_remove(d->firewall, m->ready, NULL, NULL, NULL, err);
        if (r == 0)
            r = agx_firewall_remove(d->firewall, m->id, on_unfenced, m, &m->firewall_op, err);
        if (r == 0)
            agx_op_hold(&m->op);
    }
    return agx_op_wait(&m->op, r, REMOVE_DONE, err);
}

static void cancel_removal(struct agx_op *op)
{
    struct removal *m = removal_of(op);

    if (!m->firewall_op)
        return;
    agx_firewall_abandon(m->firewall_op);
    m->firewall_op = NULL;
    agx_op_arrive(op);
}

static void removal_ended(struct agx_op *op, struct agx_error *error)
{
    struct removal *m = removal_of(op);

    m->done(m->user, error);
    agx_docker_inventory_done(&m->found);
    agx_error_free(m->last);
    free(m->id);
    free(m->ready);
    free(m);
}

static const struct agx_op_state removal_states[] = {
    [REMOVE_LIST] = { "list", enter_list, agx_op_cancel_held },
    [REMOVE_STOP] = { "stop", enter_stop, agx_op_cancel_held },
    [REMOVE_CONTAINERS] = { "containers", enter_containers, agx_op_cancel_held },
    [REMOVE_NETWORKS] = { "networks", enter_networks, agx_op_cancel_held },
    [REMOVE_FIREWALL] = { "firewall", enter_firewall, agx_op_cancel_held },
    [REMOVE_PAUSE] = { "pause", enter_pause, agx_op_cancel_held },
};

static const struct agx_op_kind removal_kind = {
    .name = "docker-remove",
    .states = removal_states,
    .n_states = AGX_ARRAY_LEN(removal_states),
    .cancel_held = cancel_removal,
    .finish = removal_ended,
};

struct agx_op *agx_docker_remove(struct agx_docker *d, const struct agx_docker_removal *q,
                                 agx_done_fn done, void *user)
{
    struct removal *m = agx_new(struct removal);

    if (agx_text_set(&m->id, q->sandbox_id, NULL) < 0 ||
        agx_text_set(&m->ready, q->network, NULL) < 0)
        abort();
    m->grace_ms = q->grace_ms;
    m->done = done;
    m->user = user;
    agx_op_start_in(&m->op, &removal_kind, &d->operations, m->id, q->deadline_ms);
    return &m->op;
}

/* ---- delete ---- */

/*
 *     REMOVE --> SETTLE --> done
 */
enum { DELETE_DONE = AGX_OP_DONE, DELETE_REMOVE, DELETE_SETTLE };

struct delete_op {
    struct agx_sandbox_op task;
    struct agx_op *removal;
};

static struct delete_op *delete_of(struct agx_op *op)
{
    return container_of(agx_sandbox_op_of(op), struct delete_op, task);
}

static void on_all_removed(void *user, struct agx_error *error)
{
    struct delete_op *x = user;

    x->removal = NULL;
    agx_op_fail(&x->task.op, &error);
    agx_op_arrive(&x->task.op);
}

static int enter_remove(struct agx_op *op, struct agx_error **err)
{
    struct delete_op *x = delete_of(op);
    struct agx_sandbox_op *t = &x->task;

    agx_op_hold(&t->op);
    x->removal = agx_docker_remove(
        agx_docker_by(&t->op),
        &(struct agx_docker_removal){ .sandbox_id = t->sandbox.id, .grace_ms = t->grace_ms },
        on_all_removed, x);
    return agx_op_wait(&t->op, 0, DELETE_SETTLE, err);
}

static int enter_settle(struct agx_op *op, struct agx_error **err)
{
    (void)err;
    return agx_docker_op_settle(agx_sandbox_op_of(op), DELETE_DONE);
}

static void cancel_delete(struct agx_op *op)
{
    struct delete_op *x = delete_of(op);

    if (x->removal)
        agx_op_cancel(x->removal, AGX_CANCELLED);
}

static void delete_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_sandbox_op *t = agx_sandbox_op_of(op);
    struct agx_docker_box *box = agx_docker_box_of(t);

    agx_sandbox_op_leave(t);
    if (!error && !t->base.backend->closing)
        agx_docker_box_drop(box);
    agx_sandbox_op_ended(op, error);
}

static const struct agx_op_state delete_states[] = {
    [DELETE_REMOVE] = { "remove", enter_remove, agx_op_cancel_held },
    [DELETE_SETTLE] = { "settle", enter_settle, agx_op_cancel_held },
};

static const struct agx_op_kind delete_kind = {
    .name = "docker-delete",
    .states = delete_states,
    .n_states = AGX_ARRAY_LEN(delete_states),
    .cancel_held = cancel_delete,
    .finish = delete_ended,
};

const struct agx_docker_verb agx_docker_verb_delete = {
    .task = { &delete_kind, sizeof(struct delete_op), agx_docker_op_calm, NULL },
    .heard = agx_docker_op_wake,
};

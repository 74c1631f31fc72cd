/*
 * calls.c: calls side by side. Those under way are the `rest` of their operation, the newest first.
 */
#include "backend/docker/calls.h"

#include "backend/docker/docker_internal.h"
#include "base/mem.h"

#include "base/banned.h"

struct ask {
    struct ask *prev, *next;
    struct agx_op *op;
    struct agx_docker_call *call;
    agx_docker_answered_fn answered;
    size_t tag;
    bool makes;
    ssize_t (*read)(struct agx_op *op, void *buf, size_t size);
};

static void unlink_ask(struct ask *a)
{
    if (a->prev)
        a->prev->next = a->next;
    else
        a->op->rest = a->next;
    if (a->next)
        a->next->prev = a->prev;
}

static void on_answer(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct ask *a = user;
    struct agx_op *op = a->op;

    unlink_ask(a);
    a->answered(op, a->tag, answer, error);
    free(a);
    agx_op_arrive(op);
}

static ssize_t on_read(void *user, void *buf, size_t size)
{
    struct ask *a = user;

    return a->read(a->op, buf, size);
}

void agx_docker_ask_more(struct agx_op *op)
{
    for (struct ask *a = op->rest; a; a = a->next) {
        if (a->read)
            agx_docker_more(a->call);
    }
}

int agx_docker_ask(struct agx_op *op, const struct agx_docker_query *q, struct agx_error **err)
{
    _cleanup_free_ char *path = q->path;
    struct agx_docker_request request = q->request;
    struct ask *a;
    int r;

    if (agx_docker_by(op)->base.closing)
        return agx_error_set(err, AGX_CANCELLED, "the backend is being closed");
    a = agx_new(struct ask);
    *a = (struct ask){
        .op = op, .answered = q->answered, .tag = q->tag, .makes = q->makes, .read = q->read
    };
    request.path = path;
    request.read = q->read ? on_read : NULL;
    r = agx_docker_call(agx_docker_by(op)->engine, &request, on_answer, a, &a->call, err);
    if (r < 0) {
        free(a);
        return r;
    }
    a->next = op->rest;
    if (a->next)
        a->next->prev = a;
    op->rest = a;
    agx_op_hold(op);
    return 0;
}

/* True: it was dropped. */
static bool drop_one(struct agx_op *op, bool also_makers)
{
    for (struct ask *a = op->rest; a; a = a->next) {
        if (a->makes && !also_makers)
            continue;
        agx_docker_cancel(a->call);
        unlink_ask(a);
        free(a);
        agx_op_arrive(op);
        return true;
    }
    return false;
}

/* ---- the early end ---- */

/* The engine hangs: what it may still make is found by the next look at all sandboxes. */
static void on_impatience(uv_timer_t *t)
{
    struct agx_op *op = container_of(t, struct agx_op, timer);

    agx_op_hold(op);
    while (drop_one(op, true))
        ;
    agx_op_arrive(op);
}

void agx_docker_ask_end(struct agx_op *op, bool failed)
{
    const bool closing = agx_docker_by(op)->base.closing;

    while (drop_one(op, closing))
        ;
    if (op->rest)
        (void)uv_timer_start(
            &op->timer, on_impatience,
            failed ? AGX_DOCKER_FAILED_PATIENCE_MS : AGX_DOCKER_CANCELLED_PATIENCE_MS, 0);
}

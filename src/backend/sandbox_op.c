/*
 * sandbox_op.c: operations that the daemon requested.
 *
 * Invariants:
 *  (1) a box has at most one task; a second one is refused, in its `done`. A task that was given up
 *      stays the box's until it has really ended.
 *  (2) hooks come only from `finish` and from callbacks of the loop, so never inside a call.
 */
#include "backend/sandbox_op.h"

#include "base/mem.h"

#include "base/banned.h"

/* ---- one that is refused ---- */

static int enter_refuse(struct agx_op *op, struct agx_error **err)
{
    const struct agx_sandbox_op *t = agx_sandbox_op_of(op);

    return agx_error_set(err, AGX_UNAVAILABLE, "another operation on sandbox '%s' is under way",
                         t->sandbox.id);
}

static const struct agx_op_state refuse_states[] = { [1] = { "refuse", enter_refuse } };

static const struct agx_op_kind refuse_kind = {
    .name = "refused",
    .states = refuse_states,
    .n_states = AGX_ARRAY_LEN(refuse_states),
    .finish = agx_sandbox_op_ended,
};

static const struct agx_sandbox_op_verb verb_refuse = { .op = &refuse_kind,
                                                        .size = sizeof(struct agx_sandbox_op) };

/* ---- the end ---- */

static void task_free(struct agx_sandbox_op *t)
{
    if (t->kind->free_rest)
        t->kind->free_rest(t);
    agx_sandbox_done(&t->sandbox);
    free(t);
}

void agx_sandbox_op_leave(struct agx_sandbox_op *t)
{
    if (t->slot)
        *t->slot = NULL;
    t->slot = NULL;
}

void agx_sandbox_op_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_sandbox_op *t = agx_sandbox_op_of(op);

    agx_sandbox_op_leave(t);
    if (t->abandoned || t->base.backend->closing)
        agx_error_free(error);
    else
        t->hooks.done(t->user, error);
    task_free(t);
}

/* ---- start ---- */

static int copy_sandbox(struct agx_sandbox *to, const struct agx_sandbox *from,
                        struct agx_error **err)
{
    int r = agx_spec_copy(&to->spec, &from->spec, err);

    return r < 0 ? r : agx_text_set(&to->id, from->id, err);
}

static void cancel_task(struct agx_backend_op *op)
{
    agx_op_cancel(&container_of(op, struct agx_sandbox_op, base)->op, AGX_CANCELLED);
}

static void abandon_task(struct agx_backend_op *op)
{
    container_of(op, struct agx_sandbox_op, base)->abandoned = true;
}

static const struct agx_backend_op_ops task_ops = { cancel_task, abandon_task };

static const struct agx_sandbox_op_verb *verb_of(const struct agx_sandbox_op_verbs *all,
                                                 enum agx_do verb)
{
    switch (verb) {
    case AGX_DO_STOP:
    case AGX_DO_HALT:
        return all->stop;
    case AGX_DO_DELETE:
        return all->remove;
    default:
        return all->up;
    }
}

int agx_sandbox_op_start(const struct agx_sandbox_op_params *p, const struct agx_backend_request *q,
                         const struct agx_backend_hooks *hooks, void *user,
                         struct agx_backend_op **ret_op, struct agx_error **err)
{
    const bool refused = *p->slot != NULL;
    const struct agx_sandbox_op_verb *verb = refused ? &verb_refuse : verb_of(p->verbs, q->verb);
    struct agx_sandbox_op *t = agx_alloc(verb->size);
    int r;

    t->base = (struct agx_backend_op){ .backend = p->backend, .ops = &task_ops };
    t->kind = verb;
    t->verb = q->verb;
    t->grace_ms = q->grace_ms;
    t->hooks = *hooks;
    t->user = user;
    r = copy_sandbox(&t->sandbox, q->sandbox, err);
    if (r < 0) {
        task_free(t);
        return r;
    }
    if (!refused) {
        t->slot = p->slot;
        *t->slot = t;
    }
    if (verb->begin)
        verb->begin(t);
    *ret_op = &t->base;
    agx_op_start_in(&t->op, verb->op, p->group, t->sandbox.id, 0); /* deadlines: the caller's */
    return 0;
}

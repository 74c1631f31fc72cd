/*
 * native_op.c: sandbox operations.
 *
 * What a box does on its own (forward_keep.c) makes way for the operation, which waits until it has
 * ended.
 */
#include "backend/native/native_internal.h"

#include "base/banned.h"

int agx_native_op_await(struct agx_sandbox_op *t, unsigned self, unsigned then)
{
    if (agx_native_of(t->base.backend)->loaded && !agx_native_box_of(t)->keep)
        return agx_op_wait(&t->op, 0, then, NULL);
    agx_op_pause(&t->op, AGX_NATIVE_LOAD_MS); /* woken when it is so */
    return agx_op_wait(&t->op, 0, self, NULL);
}

void agx_native_op_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_sandbox_op *t = agx_sandbox_op_of(op);
    struct agx_native_box *box = agx_native_box_of(t);
    const bool dropped = t->verb == AGX_DO_DELETE && !error && !t->base.backend->closing;

    agx_sandbox_op_leave(t);
    if (dropped)
        agx_native_box_drop(box);
    else
        agx_native_forward_keep(box);
    agx_sandbox_op_ended(op, error);
    if (!dropped) /* the caller knows by now that it runs */
        agx_native_box_tell(box);
}

int agx_native_op_start(struct agx_backend *b, const struct agx_backend_request *q,
                        const struct agx_backend_hooks *hooks, void *user,
                        struct agx_backend_op **ret_op, struct agx_error **err)
{
    static const struct agx_sandbox_op_verbs verbs = { .up = &agx_native_verb_up,
                                                       .stop = &agx_native_verb_down,
                                                       .remove = &agx_native_verb_down };
    struct agx_native *n = agx_native_of(b);
    struct agx_native_box *box;
    int r = agx_native_box_get(n, q->sandbox->id, &box, err);

    if (r < 0)
        return r;
    r = agx_sandbox_op_start(
        &(struct agx_sandbox_op_params){ b, &n->operations, &box->task, &verbs }, q, hooks, user,
        ret_op, err);
    if (r == 0)
        agx_native_forward_keep_cancel(box);
    return r;
}

/*
 * task.c: sandbox operations.
 *
 * What a box does on its own (tend.c) makes way for the operation, which waits until it has ended.
 */
#include "backend/native/native_internal.h"

#include "base/banned.h"

int agx_native_task_await(struct agx_task *t, unsigned self, unsigned then)
{
    if (agx_native_of(t->base.backend)->loaded && !agx_native_box_of(t)->tend)
        return agx_step_wait(&t->step, 0, then, NULL);
    agx_step_pause(&t->step, AGX_NATIVE_LOAD_MS); /* woken when it has ended */
    return agx_step_wait(&t->step, 0, self, NULL);
}

void agx_native_task_ended(struct agx_step *s, struct agx_error *error)
{
    struct agx_task *t = agx_task_of(s);
    struct agx_native_box *box = agx_native_box_of(t);
    const bool dropped = t->verb == AGX_DO_DELETE && !error && !t->base.backend->closing;

    agx_task_leave(t);
    if (dropped)
        agx_native_box_drop(box);
    else
        agx_native_tend(box);
    agx_task_ended(s, error);
    if (!dropped) /* the caller knows by now that it runs */
        agx_native_box_tell(box);
}

static const struct agx_task_verb *verb_of(enum agx_do verb)
{
    switch (verb) {
    case AGX_DO_STOP:
    case AGX_DO_HALT:
    case AGX_DO_DELETE:
        return &agx_native_verb_down;
    default:
        return &agx_native_verb_up;
    }
}

int agx_native_task_start(struct agx_backend *b, const struct agx_backend_request *q,
                          const struct agx_backend_hooks *hooks, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_native *n = agx_native_of(b);
    struct agx_native_box *box;
    int r = agx_native_box_get(n, q->sandbox->id, &box, err);

    if (r < 0)
        return r;
    r = agx_task_start(&(struct agx_task_params){ b, &n->steps, &box->task, verb_of(q->verb) }, q,
                       hooks, user, ret_op, err);
    if (r == 0)
        agx_native_tend_cancel(box);
    return r;
}

/* docker_op.c: sandbox operations, and the news of their box. */
#include "backend/docker/docker_internal.h"

#include "backend/docker/post_start.h"

#include "base/banned.h"

void agx_docker_op_hear(struct agx_sandbox_op *t, struct agx_error *error)
{
    if (t)
        container_of(t->kind, const struct agx_docker_verb, task)->heard(t, error);
    else
        agx_error_free(error);
}

/* ---- the end of init ---- */

/* A sandbox that was stopped has reported the ends of its commands; waits until that is read. */
int agx_docker_op_settle(struct agx_sandbox_op *t, unsigned then)
{
    if (agx_docker_box_of(t)->state == AGX_DOCKER_BOX_UP)
        agx_op_pause(&t->op, AGX_DOCKER_SETTLE_MS);
    return agx_op_wait(&t->op, 0, then, NULL);
}

void agx_docker_op_wake(struct agx_sandbox_op *t, struct agx_error *error)
{
    if (error)
        agx_op_wake(&t->op);
    agx_error_free(error);
}

/* ---- start ---- */

void agx_docker_op_calm(struct agx_sandbox_op *t)
{
    agx_docker_post_start_cancel(agx_docker_box_of(t));
}

int agx_docker_op_start(struct agx_backend *b, const struct agx_backend_request *q,
                        const struct agx_backend_hooks *hooks, void *user,
                        struct agx_backend_op **ret_op, struct agx_error **err)
{
    static const struct agx_sandbox_op_verbs verbs = { .up = &agx_docker_verb_up.task,
                                                       .stop = &agx_docker_verb_stop.task,
                                                       .remove = &agx_docker_verb_delete.task };
    struct agx_docker *d = agx_docker_of(b);
    struct agx_docker_box *box;
    int r = agx_docker_box_get(d, q->sandbox->id, &box, err);

    if (r < 0)
        return r;
    return agx_sandbox_op_start(
        &(struct agx_sandbox_op_params){ b, &d->operations, &box->task, &verbs }, q, hooks, user,
        ret_op, err);
}

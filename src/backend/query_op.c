/* query_op.c: how a query ends: answered, cancelled or abandoned. */
#include "backend/query_op.h"

#include "base/banned.h"

static void query_op_cancel(struct agx_backend_op *op)
{
    agx_op_cancel(&container_of(op, struct agx_query_op, base)->op, AGX_CANCELLED);
}

static void abandon(struct agx_backend_op *op)
{
    container_of(op, struct agx_query_op, base)->abandoned = true;
    query_op_cancel(op);
}

static const struct agx_backend_op_ops query_ops = { query_op_cancel, abandon };

int agx_query_op_init(struct agx_query_op *q, struct agx_backend *b, const char *sandbox_id,
                      agx_done_fn done, void *user, struct agx_error **err)
{
    q->base = (struct agx_backend_op){ .backend = b, .ops = &query_ops };
    q->done = done;
    q->user = user;
    return agx_text_set(&q->sandbox_id, sandbox_id, err);
}

void agx_query_op_start(struct agx_query_op *q, const struct agx_op_kind *kind,
                        struct agx_op_group *group, struct agx_backend_op **ret_op)
{
    *ret_op = &q->base;
    agx_op_start_in(&q->op, kind, group, q->sandbox_id ? q->sandbox_id : "all", 0);
}

void agx_query_op_end(struct agx_query_op *q, struct agx_error *error)
{
    if (agx_query_op_is_heard(q))
        q->done(q->user, error);
    else
        agx_error_free(error);
    free(q->sandbox_id);
}

/*
 * query_op.h: an operation that asks and changes nothing: giving it up ends it at once.
 *
 *     agx_query_op_init(&x->question, b, sandbox_id, done, user, err);
 *     agx_query_op_start(&x->question, ...);
 *     in `finish`: what was found is told if agx_query_op_is_heard(); then agx_query_op_end().
 */
#ifndef AGX_BACKEND_QUERY_OP_H
#define AGX_BACKEND_QUERY_OP_H

#include "backend/backend.h"
#include "loop/op.h"

/* Embedded first. */
struct agx_query_op {
    struct agx_op op;
    struct agx_backend_op base;
    char *sandbox_id; /* NULL: all */
    agx_done_fn done;
    void *user;
    bool abandoned; /* the caller wants no answer any more */
};

int agx_query_op_init(struct agx_query_op *q, struct agx_backend *b, const char *sandbox_id,
                      agx_done_fn done, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* `sandbox_id`, or the word for all, names it in the log. */
void agx_query_op_start(struct agx_query_op *q, const struct agx_op_kind *kind,
                        struct agx_op_group *group, struct agx_backend_op **ret_op);

/* Does anybody still want to know? A backend that is being closed tells nothing. */
static inline bool agx_query_op_is_heard(const struct agx_query_op *q)
{
    return !q->abandoned && !q->base.backend->closing;
}

/* Tells how it ended, and frees what is in it. Takes the error. */
void agx_query_op_end(struct agx_query_op *q, struct agx_error *error);

#endif

/*
 * sandbox_op.h: an operation that the daemon asked for and that changes a sandbox; one at a time on
 * each.
 *
 *     in the box:   struct agx_sandbox_op *task;     its slot: what is done to it, or NULL
 *     in `start`:   agx_sandbox_op_start(&(struct agx_sandbox_op_params){ b, ... }, ...);
 *     in its work:  container_of(t->slot, struct box, task);
 */
#ifndef AGX_BACKEND_SANDBOX_OP_H
#define AGX_BACKEND_SANDBOX_OP_H

#include "backend/backend.h"
#include "loop/op.h"

struct agx_sandbox_op_verb;

/* Embedded first by operations. */
struct agx_sandbox_op {
    struct agx_op op;
    struct agx_backend_op base;
    struct agx_sandbox_op **slot; /* of its box; NULL: refused at once, or it has left the box */
    struct agx_sandbox sandbox;   /* id and spec, copied */
    enum agx_do verb;
    uint64_t grace_ms;
    struct agx_backend_hooks hooks;
    void *user;
    bool abandoned; /* no hook is called any more */
    const struct agx_sandbox_op_verb *kind;
};

/* One verb's implementation. */
struct agx_sandbox_op_verb {
    const struct agx_op_kind *op; /* its `finish` is agx_sandbox_op_ended, or ends with it */
    size_t size;                  /* of the operation */
    /* The box is its own from now on; the first state follows. May be NULL. */
    void (*begin)(struct agx_sandbox_op *t);
    /* Frees what the operation added to the task. May be NULL. */
    void (*free_rest)(struct agx_sandbox_op *t);
};

/* Of a backend. */
struct agx_sandbox_op_verbs {
    const struct agx_sandbox_op_verb *up;     /* CREATE, RESUME, REVIVE */
    const struct agx_sandbox_op_verb *stop;   /* STOP, HALT */
    const struct agx_sandbox_op_verb *remove; /* DELETE */
};

struct agx_sandbox_op_params {
    struct agx_backend *backend;
    struct agx_op_group *group;
    struct agx_sandbox_op **slot; /* of the box; where it has a task, the new one is refused */
    const struct agx_sandbox_op_verbs *verbs;
};

/* The other parameters are those of the backend's `start`. */
int agx_sandbox_op_start(const struct agx_sandbox_op_params *p, const struct agx_backend_request *q,
                         const struct agx_backend_hooks *hooks, void *user,
                         struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Its box has no task any more: for a `finish` after which there is no box. */
void agx_sandbox_op_leave(struct agx_sandbox_op *t);
/* The `finish` of tasks. */
void agx_sandbox_op_ended(struct agx_op *op, struct agx_error *error);

static inline struct agx_sandbox_op *agx_sandbox_op_of(struct agx_op *op)
{
    return container_of(op, struct agx_sandbox_op, op);
}

#endif

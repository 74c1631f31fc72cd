/*
 * task.h: a sandbox operation: requested by the daemon, changes a sandbox; one at a time on a box.
 *
 *     in the box:   struct agx_task *task;     its slot: the current operation, or NULL
 *     in `start`:   agx_task_start(&(struct agx_task_params){ b, &steps, &box->task, &verb }, ...);
 *     in its work:  container_of(t->slot, struct box, task);
 */
#ifndef AGX_BACKEND_TASK_H
#define AGX_BACKEND_TASK_H

#include "backend/backend.h"
#include "backend/step.h"

struct agx_task_verb;

/* Embedded first by operations. */
struct agx_task {
    struct agx_step step;
    struct agx_backend_op base;
    struct agx_task **slot;     /* of its box; NULL: refused at once, or it has left the box */
    struct agx_sandbox sandbox; /* id and spec, copied */
    enum agx_do verb;
    uint64_t grace_ms;
    struct agx_backend_hooks hooks;
    void *user;
    bool abandoned; /* no hook is called any more */
    const struct agx_task_verb *kind;
};

/* One verb's implementation. */
struct agx_task_verb {
    const struct agx_step_kind *step; /* its `ended` is agx_task_ended, or calls it last */
    size_t size;                      /* of the operation */
    /* The operation now owns its box; the first state follows. May be NULL. */
    void (*begin)(struct agx_task *t);
    /* Frees what the operation added to the task. May be NULL. */
    void (*free_rest)(struct agx_task *t);
};

struct agx_task_params {
    struct agx_backend *backend;
    struct agx_steps *steps;
    struct agx_task **slot; /* of the box; if it holds a task, the new one is refused */
    const struct agx_task_verb *verb;
};

/* The other parameters are those of the backend's `start`. */
int agx_task_start(const struct agx_task_params *p, const struct agx_backend_request *q,
                   const struct agx_backend_hooks *hooks, void *user,
                   struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Detaches the operation from its box: for an `ended` after which the box is gone. */
void agx_task_leave(struct agx_task *t);
/* The `ended` of sandbox operations. */
void agx_task_ended(struct agx_step *s, struct agx_error *error);

static inline struct agx_task *agx_task_of(struct agx_step *s)
{
    return container_of(s, struct agx_task, step);
}

#endif

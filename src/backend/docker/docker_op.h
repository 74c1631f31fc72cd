/* docker_op.h: a sandbox operation of the Docker backend (backend/sandbox_op.h). */
#ifndef AGX_BACKEND_DOCKER_DOCKER_OP_H
#define AGX_BACKEND_DOCKER_DOCKER_OP_H

#include "backend/docker/box.h"
#include "backend/docker/calls.h"
#include "backend/sandbox_op.h"

int agx_docker_op_start(struct agx_backend *b, const struct agx_backend_request *q,
                        const struct agx_backend_hooks *hooks, void *user,
                        struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;
/* The box has news for its current operation, if any; takes the error. */
void agx_docker_op_hear(struct agx_sandbox_op *t, struct agx_error *error);
/* A `heard` that wakes an operation which waits for the end of init, and the state that waits. */
void agx_docker_op_wake(struct agx_sandbox_op *t, struct agx_error *error);
int agx_docker_op_settle(struct agx_sandbox_op *t, unsigned then);
/* A `begin`: cancels the companions' post-start commands. */
void agx_docker_op_calm(struct agx_sandbox_op *t);

/* The box of an operation; not for one that was refused. */
static inline struct agx_docker_box *agx_docker_box_of(const struct agx_sandbox_op *t)
{
    return container_of(t->slot, struct agx_docker_box, task);
}

/* One verb's implementation. */
struct agx_docker_verb {
    struct agx_sandbox_op_verb task;
    /* Its box is connected with init (NULL), or init has ended. Owns `error`. */
    void (*heard)(struct agx_sandbox_op *t, struct agx_error *error);
};
extern const struct agx_docker_verb agx_docker_verb_up;     /* CREATE, RESUME, REVIVE */
extern const struct agx_docker_verb agx_docker_verb_stop;   /* STOP, HALT */
extern const struct agx_docker_verb agx_docker_verb_delete; /* DELETE */

#endif

/* task.h: a sandbox operation of the Docker backend (backend/task.h). */
#ifndef AGX_BACKEND_DOCKER_TASK_H
#define AGX_BACKEND_DOCKER_TASK_H

#include "backend/docker/ask.h"
#include "backend/docker/box.h"
#include "backend/task.h"

int agx_docker_task_start(struct agx_backend *b, const struct agx_backend_request *q,
                          const struct agx_backend_hooks *hooks, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;
/* The box has news for its current operation, if any; takes the error. */
void agx_docker_task_hear(struct agx_task *t, struct agx_error *error);
/* A `heard` that wakes an operation which waits for the end of init, and the state that waits. */
void agx_docker_task_wake(struct agx_task *t, struct agx_error *error);
int agx_docker_task_settle(struct agx_task *t, unsigned then);
/* A `begin`: cancels the companions' post-start commands. */
void agx_docker_task_calm(struct agx_task *t);

/* The box of an operation; not for one that was refused. */
static inline struct agx_docker_box *agx_docker_box_of(const struct agx_task *t)
{
    return container_of(t->slot, struct agx_docker_box, task);
}

/* One verb's implementation. */
struct agx_docker_verb {
    struct agx_task_verb task;
    /* Its box is connected with init (NULL), or init has ended. Owns `error`. */
    void (*heard)(struct agx_task *t, struct agx_error *error);
};
extern const struct agx_docker_verb agx_docker_verb_up;     /* CREATE, RESUME, REVIVE */
extern const struct agx_docker_verb agx_docker_verb_stop;   /* STOP, HALT */
extern const struct agx_docker_verb agx_docker_verb_delete; /* DELETE */

#endif

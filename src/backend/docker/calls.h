/*
 * calls.h: calls to the engine as work of an operation's state (loop/op.h).
 *
 * When the state ends early, its calls end too, except those that make something: we must know
 * whether they did. A closing backend drops every call, and none can be started.
 */
#ifndef AGX_BACKEND_DOCKER_CALLS_H
#define AGX_BACKEND_DOCKER_CALLS_H

#include "backend/docker/api/engine.h"
#include "loop/op.h"

struct agx_docker;

/* `answer` is borrowed, `error` is the callee's; `tag` is what ask was given. */
typedef void (*agx_docker_answered_fn)(struct agx_op *op, size_t tag,
                                       const struct agx_docker_answer *answer,
                                       struct agx_error *error);

struct agx_docker_query {
    struct agx_docker_request request;
    char *path; /* owned, and always taken by ask; NULL: out of memory */
    agx_docker_answered_fn answered;
    size_t tag;
    bool makes; /* it makes something: not dropped when the operation fails or is cancelled */
    /* An upload: as agx_fetch_read_fn. One at a time in an operation. */
    ssize_t (*read)(struct agx_op *op, void *buf, size_t size);
};

int agx_docker_ask(struct agx_op *op, const struct agx_docker_query *q,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The upload's `read` has bytes again, or its end. */
void agx_docker_ask_more(struct agx_op *op);

/* The `end_rest` of the backend's operations. */
void agx_docker_ask_end(struct agx_op *op, bool failed);

#endif

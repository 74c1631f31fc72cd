/*
 * ask.h: engine calls as the work of an operation's state (backend/step.h).
 *
 * When the state ends early, its calls end too, except those that make something: we must know
 * whether they did. A closing backend drops every call, and none can be started.
 */
#ifndef AGX_BACKEND_DOCKER_ASK_H
#define AGX_BACKEND_DOCKER_ASK_H

#include "backend/docker/engine.h"
#include "backend/step.h"

struct agx_docker;

/* `answer` is borrowed, `error` is the callee's; `tag` is the value given to ask. */
typedef void (*agx_docker_answered_fn)(struct agx_step *s, size_t tag,
                                       const struct agx_docker_answer *answer,
                                       struct agx_error *error);

struct agx_docker_question {
    struct agx_docker_request request;
    char *path; /* owned, and always taken by ask; NULL: out of memory */
    agx_docker_answered_fn answered;
    size_t tag;
    bool makes; /* it makes something: not dropped when the operation fails or is cancelled */
    /* An upload: as agx_fetch_read_fn. One at a time per operation. */
    ssize_t (*read)(struct agx_step *s, void *buf, size_t size);
};

int agx_docker_ask(struct agx_step *s, const struct agx_docker_question *q,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The upload's `read` has more bytes, or its end. */
void agx_docker_ask_more(struct agx_step *s);

/* The `end_rest` of the backend's operations. */
void agx_docker_ask_end(struct agx_step *s, bool failed);

#endif

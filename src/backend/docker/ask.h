/*
 * ask.h: calls to the engine as work of a step's state (backend/step.h).
 *
 * When the state ends early so do its calls, but for those that make something, of which we must
 * know whether they did. A closing backend drops every call, and none can be begun.
 */
#ifndef AGX_BACKEND_DOCKER_ASK_H
#define AGX_BACKEND_DOCKER_ASK_H

#include "backend/docker/engine.h"
#include "backend/step.h"

struct agx_docker;

/* `answer` is borrowed, `error` is the callee's; `tag` is what ask was given. */
typedef void (*agx_docker_answered_fn)(struct agx_step *s, size_t tag,
                                       const struct agx_docker_answer *answer,
                                       struct agx_error *error);

struct agx_docker_question {
    struct agx_docker_request request;
    char *path; /* owned, and taken by ask in any case; NULL: there was no memory for it */
    agx_docker_answered_fn answered;
    size_t tag;
    bool makes; /* it makes something: not dropped when the step fails or is cancelled */
    /* An upload: as agx_fetch_read_fn. One at a time in a step. */
    ssize_t (*read)(struct agx_step *s, void *buf, size_t size);
};

int agx_docker_ask(struct agx_step *s, const struct agx_docker_question *q,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The upload's `read` has bytes again, or its end. */
void agx_docker_ask_more(struct agx_step *s);

/* The `end_rest` of the backend's steps. */
void agx_docker_ask_end(struct agx_step *s, bool failed);

#endif

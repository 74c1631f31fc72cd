/*
 * post_start.h: what follows a create by itself: a companion becomes healthy, then its commands run
 * in the primary, one after the other.
 *
 *     the backend's own states --healthy--> RUN, for each command --> done
 *
 * As agents-sandbox has it, nobody waits for it and nobody is told: a failure ends it, and a stop
 * or delete of the sandbox cancels it. A resume does not run it again. How a companion tells that
 * it is healthy is the backend's matter.
 */
#ifndef AGX_BACKEND_EXEC_POST_START_H
#define AGX_BACKEND_EXEC_POST_START_H

#include "backend/exec/init_client.h"
#include "loop/op.h"

struct agx_pairs;
struct agx_words;

/* Embedded in the box of a sandbox, which owns them: those that go on. */
struct agx_post_starts {
    struct agx_post_start *first;
};

/* Embedded first. */
struct agx_post_start {
    struct agx_op op;
    struct agx_backend *backend;
    struct agx_post_starts *all; /* of the box; NULL: it went, or was stopped */
    struct agx_post_start *prev, *next;
    size_t place; /* of the companion, in the spec */
    const struct agx_words *commands;
    const struct agx_pairs *envs;
    size_t at;         /* the command that runs, or comes; as many as there are: it is over */
    bool begun;        /* that one was started, by this daemon or one before it */
    uint64_t until_ms; /* healthy by then, in the loop's time */
    struct agx_backend_op *call; /* its command, or one of the backend's, under way */
    /* Notes how far it is, for a later daemon. NULL: none goes on with it. */
    int (*note)(struct agx_post_start *p, struct agx_error **err);
    /* The commands of the primary, which is reached. */
    struct agx_init_client *(*primary)(struct agx_post_start *p);
};

/* One of that place is among them. */
bool agx_post_start_is_known(const struct agx_post_starts *all, size_t place);

/* All above `prev`, `at` and `begun` are set by the caller, and the rest that it needs. */
void agx_post_start_begin(struct agx_post_start *p, const struct agx_op_kind *kind,
                          struct agx_op_group *group, const char *id);
/* The `enter` of the last state. */
int agx_post_start_enter_run(struct agx_op *op, struct agx_error **err);
/* The `cancel` of its kind: gives up what is under way. */
void agx_post_start_cancel(struct agx_op *op);
/* For a `finish`: its box does not know it any more. */
void agx_post_start_leave(struct agx_post_start *p);

/* The sandbox is about to stop or to be made again, or is gone. */
void agx_post_starts_cancel(struct agx_post_starts *all);

static inline struct agx_post_start *agx_post_start_of(struct agx_op *op)
{
    return container_of(op, struct agx_post_start, op);
}

/* Nothing more is to be begun. */
static inline bool agx_post_start_is_over(const struct agx_post_start *p)
{
    return !p->all || p->backend->closing;
}

#endif

/* box.h: a sandbox that the Docker backend knows: its commands, and how to find its init. */
#ifndef AGX_BACKEND_DOCKER_BOX_H
#define AGX_BACKEND_DOCKER_BOX_H

#include "backend/docker/names.h"
#include "backend/exec/init_client.h"
#include "backend/exec/post_start.h"

struct agx_docker;
struct agx_sandbox_op;

/*
 *     UNKNOWN --reach--> UP --init ended--> DOWN
 *        ^                                   |
 *        +---- a call, an operation ---------+
 *
 * While it is UNKNOWN, calls wait in the init client.
 */
enum agx_docker_box_state { AGX_DOCKER_BOX_UNKNOWN, AGX_DOCKER_BOX_UP, AGX_DOCKER_BOX_DOWN };

struct agx_docker_box {
    struct agx_docker *docker;
    char *id;
    enum agx_docker_box_state state;
    struct agx_init_client *init_client;
    bool held; /* UP: its init waited for us */
    pid_t pid; /* UP, where nobody but the engine tells of the end of its PID 1; else 0 */
    struct agx_op *reach;          /* looks for its init */
    struct agx_op *comparing;      /* UP: its mounts are compared; its init is taken after that */
    json_t *inspect;               /* ... and this is its primary, as the engine described it */
    struct agx_error *other;       /* something else was mounted, for the operation */
    struct agx_sandbox_op *task;   /* what is done to it, also what was given up; or NULL */
    struct agx_post_starts afters; /* what its companions still have to do */
};

/* The box of a sandbox; makes one when there is none. */
int agx_docker_box_get(struct agx_docker *d, const char *sandbox_id,
                       struct agx_docker_box **ret_box, struct agx_error **err) AGX_MUST_CHECK;
/* The known box, or NULL. */
struct agx_docker_box *agx_docker_box_find(const struct agx_docker *d, const char *sandbox_id);
/* Starts looking for its init, unless init is known or being looked for. */
void agx_docker_box_reach(struct agx_docker_box *box);
/* The primary of an UP box may have ended: checks it where only the engine would report that. */
void agx_docker_box_doubt(struct agx_docker_box *box);
/* Its primary, as described by the engine. If it runs, its init is used; else its commands end.
 * -AGX_NOT_FOUND: its PID 1 is gone, but the engine has not noticed yet. */
int agx_docker_box_usage(struct agx_docker_box *box, const json_t *inspect,
                         struct agx_error **err) AGX_MUST_CHECK;
/* Nothing of it runs: its commands end with `error` (taken; NULL: it was stopped). */
void agx_docker_box_down(struct agx_docker_box *box, struct agx_error *error);
/* Nothing of the sandbox is left: frees the box. */
void agx_docker_box_drop(struct agx_docker_box *box);

/* ---- channel.c ---- */

/* Connects the init client to the primary that the engine describes. -AGX_NOT_FOUND: as above. */
int agx_docker_channel_up(struct agx_docker_box *box, const json_t *inspect,
                          const struct agx_docker_tag *tag, struct agx_error **err) AGX_MUST_CHECK;
/* Abandons the comparison. */
void agx_docker_channel_drop(struct agx_docker_box *box);
/* That primary is not, or no longer, the one we are connected to. */
bool agx_docker_channel_is_stale(const struct agx_docker_box *box, const json_t *inspect);
/* For the end of the backend: no hook of its commands is called any more; the rest follows
 * later. */
void agx_docker_box_close(struct agx_docker_box *box);
void agx_docker_box_free(struct agx_docker_box *box);

#endif

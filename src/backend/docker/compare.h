/*
 * compare.h: what the engine mounted is what was to be mounted.
 *
 * An engine opens the sources of mounts by itself, after they were checked. So init holds the main
 * process of a primary with mounts (--await-go) until each target, as the container's own root has
 * it, was compared with its source, walked once more by the rules of hostpath.h. What another file
 * is mounted for ends the sandbox. That a container was compared is noted in the state directory,
 * and it is not compared again: what runs in it may move about what it can write to.
 *
 * A step: it looks again while the engine is still making the process, makes what is writable
 * durable among the writables, and notes.
 */
#ifndef AGX_BACKEND_DOCKER_COMPARE_H
#define AGX_BACKEND_DOCKER_COMPARE_H

#include "backend/docker/box.h"

#include <sys/types.h>

/* Of a running primary; all borrowed for the call. */
struct agx_docker_compare_params {
    const char *container;
    pid_t pid;             /* as the engine says */
    uid_t owner;           /* whose sandbox it is */
    const json_t *mounts;  /* HostConfig.Mounts of the container */
    bool may_be_elsewhere; /* its processes may not be this machine's: then nothing is compared */
};

enum agx_docker_compared {
    AGX_DOCKER_COMPARED_SAME,
    AGX_DOCKER_COMPARED_GONE, /* the process has ended: the engine has to be asked again */
    AGX_DOCKER_COMPARED_FAILED,
};

/* Once, never inside start, and not when the backend closes. The callee owns `error`. */
typedef void (*agx_docker_compared_fn)(struct agx_docker_box *box, enum agx_docker_compared result,
                                       struct agx_error *error);

/* Its step is the box's, until `compared`. */
int agx_docker_compare_start(struct agx_docker_box *box, const struct agx_docker_compare_params *p,
                             agx_docker_compared_fn compared, struct agx_step **ret_step,
                             struct agx_error **err) AGX_MUST_CHECK;
/* `compared` will not come. Accepts NULL. */
void agx_docker_compare_abandon(struct agx_step *step);

/* What is noted of a sandbox. */
void agx_docker_compare_purge(const char *state_dir, const char *sandbox_id);

#endif

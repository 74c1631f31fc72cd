/*
 * mount_check.h: checks that the engine mounted the files that were meant.
 *
 * An engine opens the sources of mounts by itself, after they were checked. So init holds the main
 * process of a primary with mounts (--await-go) until each target, as seen from the container's
 * root, was compared with its source, which is opened again by the rules of hostpath.h. If any
 * other file is mounted, the sandbox ends. A compared container is recorded in the state directory
 * and not compared again, because what runs in it may move files in its writable mounts.
 *
 * An operation: it looks again while the engine is still making the process, makes what is writable
 * durable among the writables, and notes.
 */
#ifndef AGX_BACKEND_DOCKER_MOUNT_CHECK_H
#define AGX_BACKEND_DOCKER_MOUNT_CHECK_H

#include "backend/docker/box.h"

#include <sys/types.h>

/* Of a running primary; all borrowed for the call. */
struct agx_docker_mount_check_params {
    const char *container;
    pid_t pid;             /* as the engine reports it */
    uid_t owner;           /* owner of the sandbox */
    const json_t *mounts;  /* HostConfig.Mounts of the container */
    bool may_be_elsewhere; /* its processes may be on another machine: nothing is compared then */
};

enum agx_docker_compared {
    AGX_DOCKER_COMPARED_SAME,
    AGX_DOCKER_COMPARED_GONE, /* the process has ended: the engine must be asked again */
    AGX_DOCKER_COMPARED_FAILED,
};

/* Called once, never inside start, and not when the backend closes. The callee owns `error`. */
typedef void (*agx_docker_compared_fn)(struct agx_docker_box *box, enum agx_docker_compared result,
                                       struct agx_error *error);

/* The operation is the box's, until `compared`. */
int agx_docker_mount_check_start(struct agx_docker_box *box,
                                 const struct agx_docker_mount_check_params *p,
                                 agx_docker_compared_fn compared, struct agx_op **ret_op,
                                 struct agx_error **err) AGX_MUST_CHECK;
/* `compared` will not come. Accepts NULL. */
void agx_docker_mount_check_abandon(struct agx_op *op);

/* Removes the record of a sandbox. */
void agx_docker_mount_check_purge(const char *state_dir, const char *sandbox_id);

#endif

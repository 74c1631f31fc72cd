/* mount_check_thread.h: the part of a comparison that runs on a thread: mount_check.h. */
#ifndef AGX_BACKEND_DOCKER_MOUNT_CHECK_THREAD_H
#define AGX_BACKEND_DOCKER_MOUNT_CHECK_THREAD_H

#include "backend/files/binds.h"
#include "backend/proc.h"

/* A primary and its expected mounts. */
struct agx_docker_looked {
    char *sandbox_id, *container, *state_dir;
    pid_t pid;
    struct agx_sources_asker asker; /* holds its sources */
    struct agx_binds binds;         /* opened by the comparison */
    struct agx_native_proc proc;    /* PID 1, as found by the comparison */
    bool noted;                     /* it was compared before */
};

/*
 * Blocking. 0: as expected, or compared before. -AGX_UNAVAILABLE: the process is not init yet;
 * -AGX_NOT_FOUND: it is gone; -AGX_PERMISSION_DENIED: we may not look at it;
 * -AGX_FAILED_PRECONDITION: another file is mounted, or a source is not valid any more.
 */
int agx_docker_look_at_targets(struct agx_docker_looked *x, struct agx_error **err) AGX_MUST_CHECK;
/* Records that it was compared. */
int agx_docker_looked_note(const struct agx_docker_looked *x,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_docker_looked_done(struct agx_docker_looked *x);

#endif

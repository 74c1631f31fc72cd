/*
 * engexec.h: runs commands in a container without our init, by the engine's exec API. It is a link
 * that answers as an init would (codec/initproto.h), so backend/exec/init_client.h sees no
 * difference.
 *
 * docs/design/docker.md lists what is weaker than with init: the image needs sh, grep and sleep; a
 * process that clears its environment is no longer part of its command; output is lost while no
 * daemon runs, and so is the exit code of a command that ended more than minutes ago.
 */
#ifndef AGX_BACKEND_DOCKER_ENGEXEC_H
#define AGX_BACKEND_DOCKER_ENGEXEC_H

#include "backend/docker/api/engine.h"
#include "backend/exec/initlink.h"

/* Strings are copied. */
struct agx_docker_engexec_config {
    struct agx_docker_engine *engine; /* is closed after the link */
    const char *sandbox_id;
    const char *container;
    const char *user; /* runs the commands, and kills them */
    /* The backend's directory. execs/SANDBOX in it records which command is which exec of the
     * engine, for a later daemon. */
    const char *state_dir;
};

int agx_docker_engexec_open(const struct agx_docker_engexec_config *config,
                            const struct agx_initlink_ops *ops, void *user,
                            struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

/* The sandbox is gone: removes the records of its commands. */
int agx_docker_engexec_purge(const char *state_dir, const char *sandbox_id,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * engexec.h: the commands of a container without our init, by the engine's exec API. A link that
 * answers as an init would (codec/initproto.h), so that backend/attend.h knows no difference.
 *
 * What is weaker than with init is in docs/design/docker.md: the image needs sh, grep and sleep; a
 * process that drops its environment leaves its command; output that comes while no daemon runs is
 * lost, and so is the exit code of what ended more than minutes ago.
 */
#ifndef AGX_BACKEND_DOCKER_ENGEXEC_H
#define AGX_BACKEND_DOCKER_ENGEXEC_H

#include "backend/docker/engine.h"
#include "backend/initlink.h"

/* Strings are copied. */
struct agx_docker_engexec_config {
    struct agx_docker_engine *engine; /* closed after the link */
    const char *sandbox_id;
    const char *container;
    const char *user; /* whom commands run as, and are killed by */
    /* The backend's: execs/SANDBOX in it says which command is which exec of the engine's, for the
     * daemon that comes next. */
    const char *state_dir;
};

int agx_docker_engexec_open(const struct agx_docker_engexec_config *config,
                            const struct agx_initlink_ops *ops, void *user,
                            struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

/* The sandbox is gone: and what was noted of its commands. */
int agx_docker_engexec_purge(const char *state_dir, const char *sandbox_id,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif

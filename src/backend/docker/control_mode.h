/* control_mode.h: how commands reach the init of a sandbox in a container. */
#ifndef AGX_BACKEND_DOCKER_CONTROL_MODE_H
#define AGX_BACKEND_DOCKER_CONTROL_MODE_H

/* docs/design/init.md says how the first two work. */
enum agx_docker_control {
    AGX_DOCKER_CONTROL_AUTO,   /* the first of the others that this daemon may use */
    AGX_DOCKER_CONTROL_PIDFD,  /* init's channel, taken by pidfd_getfd(2): needs ptrace rights */
    AGX_DOCKER_CONTROL_STDIO,  /* init's channel over the container's attached streams */
    AGX_DOCKER_CONTROL_ENGINE, /* the engine's exec API, without init: for an engine on another
                                * machine */
    AGX_DOCKER_CONTROL_COUNT,
};

/* "auto", "pidfd", "stdio", "engine": in the configuration, in labels and as init's option. */
const char *agx_docker_control_mode_name(enum agx_docker_control c);

#endif

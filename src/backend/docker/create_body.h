/*
 * create_body.h: bodies of the requests that make a sandbox on the engine: a network, the primary
 * container, companions. Pure: the caller has looked everything up.
 *
 * PID 1 is agentix-init, which starts what the image would have started. docs/design/docker.md
 * explains each field and its value.
 */
#ifndef AGX_BACKEND_DOCKER_CREATE_BODY_H
#define AGX_BACKEND_DOCKER_CREATE_BODY_H

#include "backend/docker/image.h"
#include "backend/docker/names.h"
#include "backend/files/binds.h"

/* Where init is in a container: a directory that every image has. */
#define AGX_DOCKER_INIT "/.agentix-init"

/* The key of init's channel over standard input and output; see docs/design/init.md. */
#define AGX_DOCKER_INIT_KEY "AGENTIX_INIT_KEY"

/* What the containers of one sandbox share; all borrowed. */
struct agx_docker_frame {
    const struct agx_docker_maker *maker;
    const struct agx_sandbox *sandbox;
    const char *network;             /* name or id; NULL: none */
    enum agx_docker_control control; /* not AUTO; with ENGINE there is no init */
    const char *init_path;           /* agentix-init on the engine's host; not with ENGINE */
    uint32_t pids;                   /* processes at a time in each container; 0: no limit */
    const struct agx_words *hosts;   /* "name:address", for its hosts file; NULL: none */
};

/* The rest for a primary; all borrowed. */
struct agx_docker_primary {
    const struct agx_docker_image *image;
    const char *init_key; /* with STDIO: 32 hexadecimal digits */
    const struct agx_binds *binds;
    const struct agx_pairs *tool_envs;
    uint32_t host_uid, host_gid;
    const uint32_t *gpu_groups; /* groups of the devices, with gpus */
    size_t gpu_groups_len;
};

int agx_docker_create_body_primary(const struct agx_docker_frame *f,
                                   const struct agx_docker_primary *p, json_t **ret_body,
                                   struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_FAILED_PRECONDITION when neither spec nor image has a command. */
int agx_docker_create_body_companion(const struct agx_docker_frame *f, size_t companion,
                                     const struct agx_docker_image *image, json_t **ret_body,
                                     struct agx_error **err) AGX_MUST_CHECK;

/* `subnet` is a CIDR, `bridge` the name of its interface on the host; NULL: the engine chooses.
 * `egress` is the list for its label; NULL: none. */
int agx_docker_create_body_network(const struct agx_docker_maker *m,
                                   const struct agx_sandbox *sandbox, const char *name,
                                   const char *subnet, const char *bridge, const char *egress,
                                   json_t **ret_body, struct agx_error **err) AGX_MUST_CHECK;

/* A spare network for a later sandbox. */
int agx_docker_create_body_spare_network(const struct agx_docker_maker *m, const char *name,
                                         const char *subnet, const char *bridge, json_t **ret_body,
                                         struct agx_error **err) AGX_MUST_CHECK;

/* The user of commands in a primary of this image. Borrowed from the image. */
const char *agx_docker_exec_user(const struct agx_docker_maker *m,
                                 const struct agx_docker_image *image);

#endif

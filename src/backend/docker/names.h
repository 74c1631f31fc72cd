/*
 * names.h: names of our objects on the engine, and the labels that mark them as ours.
 *
 * An object is ours when its label io.agentix.instance has this daemon's instance id, whatever its
 * name. Nothing else is ever touched. The labels also hold all that a restarted daemon must know of
 * an object. In compatibility mode, names and labels are those that programs of agents-sandbox use,
 * and ours are added.
 */
#ifndef AGX_BACKEND_DOCKER_NAMES_H
#define AGX_BACKEND_DOCKER_NAMES_H

#include "backend/docker/control_mode.h"
#include "base/json.h"
#include "core/sandbox.h"

#define AGX_DOCKER_LABEL_INSTANCE "io.agentix.instance"
#define AGX_DOCKER_LABEL_SANDBOX "io.agentix.sandbox-id"

/* The maker of objects; borrowed. */
struct agx_docker_maker {
    const char *instance; /* a UUID that the daemon keeps */
    bool compat;
};

struct agx_docker_names {
    char *network, *primary;
    char **companions; /* in the order of the spec */
    size_t companions_len;
};

/* Names of different sandboxes differ, except for companions in compatibility mode. Overwrites `n`;
 * a failure leaves nothing to free. */
int agx_docker_names_init(struct agx_docker_names *n, const struct agx_docker_maker *m,
                          const struct agx_sandbox *sandbox, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_docker_names_done(struct agx_docker_names *n);

enum agx_docker_component {
    AGX_DOCKER_NETWORK,
    AGX_DOCKER_PRIMARY,
    AGX_DOCKER_COMPANION,
    AGX_DOCKER_COMPONENT_COUNT,
};

/* The role of an object in its sandbox; strings are borrowed. */
struct agx_docker_tag {
    const char *sandbox_id;
    enum agx_docker_component component;
    size_t companion; /* index in the spec */
    /* Of a primary: */
    const char *exec_user; /* user of its commands */
    enum agx_docker_control control;
    bool held;      /* init waits until its mounts were compared: mount_check.h */
    uint32_t owner; /* with `held`: owner of the sandbox */
    /* Of a network: */
    const char *egress; /* the list; NULL: none */
};

/* The labels for an object with this tag; `spec` has the companion's name and the user's labels. */
int agx_docker_labels_new(const struct agx_docker_maker *m, const struct agx_docker_tag *tag,
                          const struct agx_spec *spec, json_t **ret_labels,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Reads the tag from an object's labels. False: not ours. Borrows from `labels`. */
bool agx_docker_labels_read(const struct agx_docker_maker *m, const json_t *labels,
                            struct agx_docker_tag *ret);

#endif

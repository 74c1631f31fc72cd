/*
 * names.h: what our objects at the engine are called, and the labels by which they are ours.
 *
 * An object is ours when its label io.agentix.instance names this daemon's instance, whatever its
 * name is. Nothing else is ever touched. The labels also say all that a restarted daemon must know
 * of an object. In compatibility mode names and labels are those of agents-sandbox, whose programs
 * use them, with ours beside.
 */
#ifndef AGX_BACKEND_DOCKER_NAMES_H
#define AGX_BACKEND_DOCKER_NAMES_H

#include "backend/docker/control.h"
#include "base/json.h"
#include "core/sandbox.h"

#define AGX_DOCKER_LABEL_INSTANCE "io.agentix.instance"
#define AGX_DOCKER_LABEL_SANDBOX "io.agentix.sandbox-id"

/* By whom objects are made; borrowed. */
struct agx_docker_maker {
    const char *instance; /* a UUID that the daemon keeps */
    bool compat;
};

struct agx_docker_names {
    char *network, *primary;
    char **companions; /* in the order of the spec */
    size_t companions_len;
};

/* Names of different sandboxes differ, but for companions in compatibility mode. `n` is
 * overwritten; there is nothing to free on failure. */
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

/* What an object is of which sandbox; strings are borrowed. */
struct agx_docker_tag {
    const char *sandbox_id;
    enum agx_docker_component component;
    size_t companion; /* its place in the spec */
    /* Of a primary: */
    const char *exec_user; /* whom commands run as */
    enum agx_docker_control control;
    bool held;      /* init waits until its mounts were compared: compare.h */
    uint32_t owner; /* then: whose sandbox it is */
    /* Of a network: */
    const char *egress; /* the list; NULL: it has none */
};

/* The labels of an object with this tag; `spec` has the companion's name and the user's labels. */
int agx_docker_labels_new(const struct agx_docker_maker *m, const struct agx_docker_tag *tag,
                          const struct agx_spec *spec, json_t **ret_labels,
                          struct agx_error **err) AGX_MUST_CHECK;

/* The tag from an object's labels. False: it is none of ours. Borrows from `labels`. */
bool agx_docker_labels_read(const struct agx_docker_maker *m, const json_t *labels,
                            struct agx_docker_tag *ret);

#endif

/*
 * compose.h: the plan of one part of a sandbox: what its image and its spec say, as init takes it
 * (codec/initproto_plan.h). Looks nothing up.
 */
#ifndef AGX_BACKEND_NATIVE_COMPOSE_H
#define AGX_BACKEND_NATIVE_COMPOSE_H

#include "backend/native/cgroup.h"
#include "backend/shown.h"
#include "base/buf.h"
#include "codec/initproto_plan.h"
#include "image/image.h"

/* Numbers of descriptors in the new process. */
enum {
    AGX_COMPOSE_FD_REPORT = 3,
    AGX_COMPOSE_FD_PLAN,
    AGX_COMPOSE_FD_USER,
    AGX_COMPOSE_FD_NET,
    AGX_COMPOSE_FD_CGROUP /* of version 2; or the first of those of version 1; then sources */
};

/* All borrowed. */
struct agx_compose {
    const struct agx_image *image;
    const struct agx_spec *spec;
    const struct agx_companion *companion; /* NULL: the primary */
    const char *sandbox_id;
    const struct agx_shown *shown; /* of the primary */
    const char *dir;               /* of the part: has fs/; absolute */
    const char *ground;            /* a layer below those of the image; NULL: none */
    const char *devices;           /* what is bound to /dev */
    const struct agx_cgroup_entry *cgroup;
    struct agx_str seccomp;
    uint64_t caps;
    uint32_t host_uid, host_gid;
    bool compat;
    bool first;   /* it is made: what it changed since is left to it at later starts */
    bool shifted; /* layers and mounts have the sandbox's ids already */
    bool at_once; /* nothing is copied into it: its main process does not wait */
};

/* The number of a bind's source there: behind those of the control groups. */
uint32_t agx_compose_bind_fd(const struct agx_cgroup_entry *cgroup, size_t bind);

/* Whom commands of it run as, and where. Borrowed from `c`. */
const char *agx_compose_user(const struct agx_compose *c);
const char *agx_compose_cwd(const struct agx_compose *c);

/*
 * Appends the plan. -AGX_FAILED_PRECONDITION for a companion whose image has no command and that is
 * given none; -AGX_RESOURCE_EXHAUSTED for one that is longer than init takes.
 */
int agx_compose_plan(const struct agx_compose *c, struct agx_buf *out,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

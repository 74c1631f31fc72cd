/*
 * plan_build.h: builds the plan of one part of a sandbox from its image and its spec, in init's
 * format (codec/initproto_plan.h). Looks nothing up.
 */
#ifndef AGX_BACKEND_NATIVE_PLAN_BUILD_H
#define AGX_BACKEND_NATIVE_PLAN_BUILD_H

#include "backend/files/host_view.h"
#include "backend/native/limits/cgroup.h"
#include "base/buf.h"
#include "codec/initproto_plan.h"
#include "image/image.h"

/* Numbers of descriptors in the new process. */
enum {
    AGX_PLAN_BUILD_FD_REPORT = 3,
    AGX_PLAN_BUILD_FD_PLAN,
    AGX_PLAN_BUILD_FD_USER,
    AGX_PLAN_BUILD_FD_NET,
    AGX_PLAN_BUILD_FD_CGROUP /* of version 2; or the first of those of version 1; then sources */
};

/* All borrowed. */
struct agx_plan_build {
    const struct agx_image *image;
    const struct agx_spec *spec;
    const struct agx_companion *companion; /* NULL: the primary */
    const char *sandbox_id;
    const struct agx_host_view *host_view; /* the host view of the primary */
    const char *dir;                       /* of the part: has fs/; absolute */
    const char *ground;  /* the lowest layer, below those of the image; NULL: none */
    const char *devices; /* is bind-mounted to /dev */
    const struct agx_cgroup_entry *cgroup;
    struct agx_str seccomp;
    uint64_t caps;
    uint32_t host_uid, host_gid;
    bool compat;
    bool first;   /* first start: later starts keep what it changed */
    bool shifted; /* layers and mounts already have the sandbox's ids */
    bool at_once; /* its main process starts at once: no copies are made first */
};

/* The descriptor number of a bind's source: behind those of the cgroups. */
uint32_t agx_plan_build_bind_fd(const struct agx_cgroup_entry *cgroup, size_t bind);

/* User and directory of its commands. Borrowed from `c`. */
const char *agx_plan_build_user(const struct agx_plan_build *c);
const char *agx_plan_build_cwd(const struct agx_plan_build *c);

/*
 * Appends the plan. -AGX_FAILED_PRECONDITION for a companion without a command, from its image or
 * its spec; -AGX_RESOURCE_EXHAUSTED for a plan that is longer than init accepts.
 */
int agx_plan_build_encode(const struct agx_plan_build *c, struct agx_buf *out,
                          struct agx_error **err) AGX_MUST_CHECK;

#endif

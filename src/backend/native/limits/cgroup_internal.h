/* cgroup_internal.h: what the files of the cgroup module share. */
#ifndef AGX_BACKEND_NATIVE_LIMITS_CGROUP_INTERNAL_H
#define AGX_BACKEND_NATIVE_LIMITS_CGROUP_INTERNAL_H

#include "backend/native/limits/cgroup.h"
#include "base/buf.h"

#include <limits.h>

/* The controllers that we use, as bits. */
enum agx_cgroup_controller {
    AGX_CGROUP_CPU = 1 << 0,
    AGX_CGROUP_CPUACCT = 1 << 1, /* version 1 only: version 2 has it in cpu */
    AGX_CGROUP_MEMORY = 1 << 2,
    AGX_CGROUP_PIDS = 1 << 3,
    AGX_CGROUP_IO = 1 << 4, /* version 2 only */
};

/* A host must have these. */
#define AGX_CGROUP_NEEDED (AGX_CGROUP_CPU | AGX_CGROUP_MEMORY | AGX_CGROUP_PIDS)

/* One mounted hierarchy, and the group of this process in it. */
struct agx_cgroup_mount {
    unsigned controllers;
    char point[PATH_MAX];
    char own[PATH_MAX]; /* our group, relative to the mount point; "": the mount point itself */
};

struct agx_cgroup_mounts {
    int version; /* 0: `mounts` lacks something that is needed */
    struct agx_cgroup_mount mounts[AGX_CGROUP_TASKS_MAX];
    size_t n;
    unsigned found; /* the controllers of all of them */
};

/* Parses the texts of /proc/self/mountinfo and /proc/self/cgroup: the hierarchies of version 1, and
 * that of version 2 (only point and own, because its controllers are listed in a file in it). */
void agx_cgroup_find_v1(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mounts *ret);
bool agx_cgroup_find_v2(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mount *ret);

/* The controllers in a line of names; unknown names are ignored. */
unsigned agx_cgroup_controllers(struct agx_str names, char separator);

/* What this process can use: version 2 if that has the controllers, else version 1. */
int agx_cgroup_find(struct agx_cgroup_mounts *ret, struct agx_error **err) AGX_MUST_CHECK;

/* A descriptor of the directory `name`, made where we may, with the controllers of version 2
 * enabled below it. */
int agx_cgroup_place(const struct agx_cgroup_mount *m, int version, const char *name,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Makes the group `name` below another and returns a descriptor; an existing one will do if
 * `may_exist`. Everybody may search it, whatever our umask: where version 2 is mounted inside a
 * sandbox, the kernel checks that for the sandbox's root. -1 with errno set. */
int agx_cgroup_make_dir(int above, const char *name, bool may_exist) AGX_MUST_CHECK;

/* Kernel files are in the same directory as groups: ours have a prefix that no kernel file has. */
#define AGX_CGROUP_PREFIX "box-"

/* Writes one value. -1 with errno set on failure. */
int agx_cgroup_write(int dirfd, const char *file, const char *value) AGX_MUST_CHECK;

struct agx_cgroup_tree {
    unsigned controllers;
    int top_fd; /* parent of our groups */
};

struct agx_cgroups {
    int version;
    char top[32]; /* "agentix-12345678" */
    struct agx_cgroup_tree trees[AGX_CGROUP_TASKS_MAX];
    size_t n_trees;
};

/* The directory of a group in the hierarchy with that controller: a descriptor, or
 * -AGX_NOT_FOUND. */
int agx_cgroup_dir(const struct agx_cgroups *g, unsigned controller, const char *name,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif

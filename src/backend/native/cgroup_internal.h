/* cgroup_internal.h: what the files of the cgroup module share. */
#ifndef AGX_BACKEND_NATIVE_CGROUP_INTERNAL_H
#define AGX_BACKEND_NATIVE_CGROUP_INTERNAL_H

#include "backend/native/cgroup.h"
#include "base/buf.h"

#include <limits.h>

/* The controllers that we use, as bits. */
enum agx_cgroup_controller {
    AGX_CGROUP_CPU = 1 << 0,
    AGX_CGROUP_CPUACCT = 1 << 1, /* of version 1 alone: version 2 counts in cpu */
    AGX_CGROUP_MEMORY = 1 << 2,
    AGX_CGROUP_PIDS = 1 << 3,
    AGX_CGROUP_IO = 1 << 4, /* of version 2 alone */
};

/* What a host without which we cannot do must have. */
#define AGX_CGROUP_NEEDED (AGX_CGROUP_CPU | AGX_CGROUP_MEMORY | AGX_CGROUP_PIDS)

/* One hierarchy that is mounted, and where this process is in it. */
struct agx_cgroup_mount {
    unsigned controllers;
    char point[PATH_MAX];
    char own[PATH_MAX]; /* our group, from the mount point on; "" is the mount point itself */
};

struct agx_cgroup_mounts {
    int version; /* 0: `mounts` has not all that is needed */
    struct agx_cgroup_mount mounts[AGX_CGROUP_TASKS_MAX];
    size_t n;
    unsigned found; /* the controllers of all of them */
};

/* The hierarchies out of the text of /proc/self/mountinfo and /proc/self/cgroup: version 1's, and
 * (point and own alone, for its controllers are in a file of it) version 2's. */
void agx_cgroup_find_v1(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mounts *ret);
bool agx_cgroup_find_v2(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mount *ret);

/* The controllers that a line of names stands for; words that we do not know count nothing. */
unsigned agx_cgroup_controllers(struct agx_str names, char separator);

/* What this process can see: version 2 if that has the controllers, else version 1. */
int agx_cgroup_find(struct agx_cgroup_mounts *ret, struct agx_error **err) AGX_MUST_CHECK;

/* A descriptor of the directory `name`, made where we may make one, with the controllers of version
 * 2 turned on for what is below it. */
int agx_cgroup_place(const struct agx_cgroup_mount *m, int version, const char *name,
                     struct agx_error **err) AGX_MUST_CHECK;

/* A descriptor of the group `name` below another, which is made; one that is there is as good if
 * `may_exist`. Whatever our umask, everybody may pass through: where version 2 is mounted inside a
 * sandbox, the kernel asks for that in the name of the sandbox's root. -1 with errno set. */
int agx_cgroup_make_dir(int above, const char *name, bool may_exist) AGX_MUST_CHECK;

/* Files of the kernel are in the same directory as groups: ours have a prefix that none of them
 * has. */
#define AGX_CGROUP_PREFIX "box-"

/* Writes one value. -1 with errno set on failure. */
int agx_cgroup_write(int dirfd, const char *file, const char *value) AGX_MUST_CHECK;

struct agx_cgroup_tree {
    unsigned controllers;
    int top_fd; /* the directory that our groups are in */
};

struct agx_cgroups {
    int version;
    char top[32]; /* "agentix-12345678" */
    struct agx_cgroup_tree trees[AGX_CGROUP_TASKS_MAX];
    size_t n_trees;
};

/* The directory of a group in the tree with that controller: a descriptor, or -AGX_NOT_FOUND. */
int agx_cgroup_dir(const struct agx_cgroups *g, unsigned controller, const char *name,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif

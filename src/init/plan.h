/*
 * plan.h: `agentix-init --plan FD`: turns a process of the daemon into PID 1 of a sandbox.
 *
 *     plan.c        on the host: cgroup, limits, sources; the namespace set; cloning PID 1
 *     plan_root.c   PID 1: its root file system
 *     plan_layer.c  PID 1: host directories below a writable layer of the sandbox
 *     plan_mount.c  PID 1: which host files are mounted, which kernel files are hidden
 *     plan_user.c   PID 1: its user in /etc/passwd
 *     plan_power.c  PID 1: its powers and those of all its children
 *
 * One process at a time, one thread (plan_power.c may start that of init/suid.h), no allocation
 * except from the kernel. No code of the sandbox runs before the end, so nothing inside can change
 * what was checked. The first failure ends it, and is reported with its stage.
 */
#ifndef AGX_INIT_PLAN_H
#define AGX_INIT_PLAN_H

#include "init/report.h"

enum {
    PLAN_LAYERS_MAX = 500, /* the limit of codec/initproto_plan.c */
    PLAN_MOUNTS_MAX = 4096
};

/* State that is passed from one stage to the next. */
struct agx_planned {
    struct agx_plan plan; /* borrows from a mapping that stays */
    int report_fd;
    int cloned_fd; /* PID 1: reaches its end when the daemon knows of the clone; else -1 */

    /* Detached mounts, taken while we were root of the host. */
    int layers[PLAN_LAYERS_MAX];
    int writable, devices;
    int mounts[PLAN_MOUNTS_MAX];
    int log_fds[2]; /* of the main process: data and index, or -1 */
    int suid_fd;    /* receives calls that would set the setuid or setgid bit, or -1 */
};

/* Returns only in PID 1, with its root complete: after GO, where the plan wants that. Open
 * descriptors: 0 to 2, which are /dev/null, the socket of the reports and the log. */
const struct agx_planned *agx_plan_run(int plan_fd);

/* Reports the current errno and ends the process. `what` may be NULL. */
_Noreturn void agx_plan_fail(const struct agx_planned *p, enum agx_plan_stage stage,
                             const char *what);

/* plan_root.c, plan_mount.c, plan_user.c, plan_power.c: in this order. */
void agx_plan_make_root(struct agx_planned *p);
/* Part of make_root, on the stage. */
void agx_plan_layer(struct agx_planned *p);
void agx_plan_hide(const struct agx_planned *p);
void agx_plan_list_user(const struct agx_planned *p);
void agx_plan_mount(const struct agx_planned *p);
void agx_plan_give_up_power(struct agx_planned *p);

#endif

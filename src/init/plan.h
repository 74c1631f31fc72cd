/*
 * plan.h: `agentix-init --plan FD`: from a process of the daemon to PID 1 of a sandbox.
 *
 *     plan.c        on the host: cgroup, limits, sources; the nest; the clone that is PID 1
 *     plan_root.c   PID 1: its root file system
 *     plan_layer.c  PID 1: what of the host lies below a layer of the sandbox's own
 *     plan_mount.c  PID 1: what of the host is seen there, what of the kernel is hidden
 *     plan_user.c   PID 1: its user in /etc/passwd
 *     plan_power.c  PID 1: what it and all below it may do
 *
 * One process at a time, one thread (plan_power.c may begin that of init/suid.h), no allocation but
 * from the kernel. No code of the sandbox runs before the end, so that nobody inside changes what
 * was looked at. The first failure ends it, and is told with its stage.
 */
#ifndef AGX_INIT_PLAN_H
#define AGX_INIT_PLAN_H

#include "init/report.h"

enum {
    PLAN_LAYERS_MAX = 500, /* as codec/initproto_plan.c has it */
    PLAN_MOUNTS_MAX = 4096
};

/* What is carried from one stage to the next. */
struct agx_planned {
    struct agx_plan plan; /* borrows from a mapping that stays */
    int report_fd;
    int cloned_fd; /* PID 1: ends when the daemon has been told of it; else -1 */

    /* Mounts that nobody sees yet, taken while we were root of the host. */
    int layers[PLAN_LAYERS_MAX];
    int writable, devices;
    int mounts[PLAN_MOUNTS_MAX];
    int log_fds[2]; /* of the main process: data and index, or -1 */
    int suid_fd;    /* told of calls that would set the setuid or setgid bit, or -1 */
};

/* Returns in PID 1 alone, in a root that is ready: after GO, where the plan wants that. No
 * descriptor is open but 0 to 2, which are /dev/null, the socket of the reports and the log. */
const struct agx_planned *agx_plan_run(int plan_fd);

/* Tells errno as it is now, and ends the process. `what` may be NULL. */
_Noreturn void agx_plan_fail(const struct agx_planned *p, enum agx_plan_stage stage,
                             const char *what);

/* plan_root.c, plan_mount.c, plan_user.c, plan_power.c: in this order. */
void agx_plan_make_root(struct agx_planned *p);
/* Of make_root, in the stage. */
void agx_plan_layer(struct agx_planned *p);
void agx_plan_hide(const struct agx_planned *p);
void agx_plan_list_user(const struct agx_planned *p);
void agx_plan_mount(const struct agx_planned *p);
void agx_plan_give_up_power(struct agx_planned *p);

#endif

/*
 * launch.h: one run of `agentix-init --plan`: from a plan to a running PID 1.
 *
 *     agx_launch_start(loop, &params, &ops, user, &launch, err);
 *     ops->told(CLONED), [told(READY); agx_launch_go(launch)], told(RUNNING)     or ops->failed
 *     agx_launch_close(launch);                                                  in any case
 *
 * The spawned program makes PID 1, which is also a child of ours, and exits. Reports come in the
 * order of initproto_plan.h. Loop thread only.
 */
#ifndef AGX_BACKEND_NATIVE_LAUNCH_H
#define AGX_BACKEND_NATIVE_LAUNCH_H

#include "backend/files/binds.h"
#include "backend/native/limits/cgroup.h"
#include "base/buf.h"
#include "codec/initproto_plan.h"
#include "loop/loop.h"

struct agx_launch;

/* All borrowed for the call. */
struct agx_launch_params {
    const char *init_path;
    const struct agx_buf *plan;
    int user_fd, net_fd; /* of the namespace set */
    const struct agx_cgroup_entry *cgroup;
    const struct agx_binds *binds; /* with open sources; NULL: none */
};

/* Never called inside start; each may close the launch. */
struct agx_launch_ops {
    /* AGX_PLAN_CLONED: `pidfd` is the callee's, and `pid` its number; READY and RUNNING: -1. */
    void (*told)(void *user, enum agx_plan_kind kind, int pidfd, pid_t pid);
    /* Final: init reports why, or was killed. The callee owns `error`. */
    void (*failed)(void *user, struct agx_error *error);
};

int agx_launch_start(struct agx_loop *l, const struct agx_launch_params *p,
                     const struct agx_launch_ops *ops, void *user, struct agx_launch **ret_launch,
                     struct agx_error **err) AGX_MUST_CHECK;

/* The root is complete: the main process may start. */
int agx_launch_go(struct agx_launch *x, struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more. A program that has not finished is killed; a PID 1 that was cloned
 * but not told to go ends too. Accepts and returns NULL. `closed` may be NULL and comes later, when
 * nothing of it is left on the loop. */
struct agx_launch *agx_launch_close(struct agx_launch *x, void (*closed)(void *user), void *user);

#endif

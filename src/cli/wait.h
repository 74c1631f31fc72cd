/* wait.h: waiting for a sandbox: the daemon answers when it is so far. A daemon that goes away in
 * between is waited for too. */
#ifndef AGX_CLI_WAIT_H
#define AGX_CLI_WAIT_H

#include "cli/ctl.h"
#include "cli/progress.h"
#include "wire/view.h"

#define AGX_WAIT_BIT(state) (UINT32_C(1) << (state))

struct agx_wait {
    const char *id;
    uint32_t states;    /* bits of enum agx_state; 0: any that it stays in */
    int64_t timeout_ns; /* 0: none */
    bool pulls;         /* show how far pulls of its images are */
};

/*
 * On success *ret_view is owned: in one of the states. -AGX_DEADLINE_EXCEEDED: the time is up. The
 * progress has begun; it is ended in either case.
 */
int agx_wait_sandbox(struct agx_ctl *ctl, const struct agx_wait *w, struct agx_progress *p,
                     struct agx_sandbox_view *ret_view, struct agx_error **err) AGX_MUST_CHECK;

#endif

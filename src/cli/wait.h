/* wait.h: waits for a sandbox with one call that the daemon answers when it is in the state. Also
 * survives a restart of the daemon. */
#ifndef AGX_CLI_WAIT_H
#define AGX_CLI_WAIT_H

#include "cli/ctl.h"
#include "cli/progress.h"
#include "wire/view.h"

#define AGX_WAIT_BIT(state) (UINT32_C(1) << (state))

struct agx_wait {
    const char *id;
    uint32_t states;    /* bits of enum agx_state; 0: any lasting state */
    int64_t timeout_ns; /* 0: none */
    bool pulls;         /* show the progress of its images' pulls */
};

/*
 * On success *ret_view is owned and in one of the states. -AGX_DEADLINE_EXCEEDED: the time is up.
 * The progress must have begun; it is ended in either case.
 */
int agx_wait_sandbox(struct agx_ctl *ctl, const struct agx_wait *w, struct agx_progress *p,
                     struct agx_sandbox_view *ret_view, struct agx_error **err) AGX_MUST_CHECK;

#endif

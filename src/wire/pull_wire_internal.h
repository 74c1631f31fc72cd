/* pull_wire_internal.h: PullProgress, which both services send. */
#ifndef AGX_WIRE_PULL_WIRE_INTERNAL_H
#define AGX_WIRE_PULL_WIRE_INTERNAL_H

#include "wire/unpack_internal.h"
#include "wire/view.h"

typedef struct Agentix__V1__PullProgress Agentix__V1__PullProgress;

/* Fills in the message, which borrows; `sandbox_id` may be NULL. */
void agx_pull_pack(Agentix__V1__PullProgress *m, const char *sandbox_id,
                   const struct agx_pull *pull);

/* `v` must be empty; after a failure there is nothing to free. */
int agx_pull_unpack(struct agx_unpack *u, const Agentix__V1__PullProgress *m,
                    struct agx_pull_view *v) AGX_MUST_CHECK;

#endif

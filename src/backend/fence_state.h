/*
 * fence_state.h: the fence's members as they shall be, as they are in the kernel, and the script
 * that leads from one to the other. No I/O.
 *
 *   set, remove --> wanted --script--> in flight --landed--> applied
 *
 * A script is the difference between `wanted` and `applied` of all members, or, when `whole` is
 * set, all of it: the table is taken away and made again, in one transaction, so that no packet
 * sees a state between. No member is wanted: no table is left.
 */
#ifndef AGX_BACKEND_FENCE_STATE_H
#define AGX_BACKEND_FENCE_STATE_H

#include "backend/fence_text.h"
#include "base/map.h"

/* Elements of the table: of a sandbox, or of the host. */
struct agx_fence_part {
    struct agx_words wanted, flight, applied; /* sorted */
    bool dirty;                               /* `wanted` was set since the last script */
    bool flying;                              /* `flight` is part of the last script */
};

struct agx_fence_state {
    char table[32];
    bool lan_blocked, routed; /* see fence.h */
    bool whole;               /* `applied` says nothing about the kernel */
    struct agx_map members;   /* by sandbox id */
    struct agx_fence_part host;
    bool flying_whole, flying_some; /* of the script in flight: all of it; with any member */
};

void agx_fence_state_init(struct agx_fence_state *s, const char *instance, bool lan_blocked,
                          struct agx_siphash_key seed);
void agx_fence_state_done(struct agx_fence_state *s);

/* Adds a member or gives it other values. See agx_fence_text_member(); also -AGX_INVALID_ARGUMENT
 * for a bridge that another member has. */
int agx_fence_state_set(struct agx_fence_state *s, const struct agx_fence_member *m,
                        struct agx_error **err) AGX_MUST_CHECK;
void agx_fence_state_remove(struct agx_fence_state *s, const char *sandbox_id);

/* Elements of the host, sorted. True when they are others than before. */
bool agx_fence_state_set_host(struct agx_fence_state *s, struct agx_words *take_words);

/* Somebody is wanted. */
bool agx_fence_state_any(const struct agx_fence_state *s);

/* What makes the kernel's table what is wanted now; may be empty. Call landed() when it was done;
 * after a failure the next one takes its place. */
int agx_fence_state_script(struct agx_fence_state *s, struct agx_buf *out,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_fence_state_landed(struct agx_fence_state *s);

#endif

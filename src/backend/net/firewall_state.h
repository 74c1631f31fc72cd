/*
 * firewall_state.h: the wanted members of the firewall, those in the kernel, and the script that
 * turns one into the other. No I/O.
 *
 *   set, remove --> wanted --script--> in flight --landed--> applied
 *
 * A script is the difference between `wanted` and `applied` of all members. When `whole` is set, it
 * removes the table and makes it again in one transaction, so that no packet sees a state in
 * between. When no member is wanted, there is no table.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_STATE_H
#define AGX_BACKEND_NET_FIREWALL_STATE_H

#include "backend/net/firewall_text.h"
#include "base/map.h"

/* Set elements of one sandbox, or of the host. */
struct agx_firewall_part {
    struct agx_words wanted, flight, applied; /* sorted */
    bool dirty;                               /* `wanted` was changed since the last script */
    bool flying;                              /* `flight` is part of the last script */
};

struct agx_firewall_state {
    char table[32];
    bool lan_blocked, routed; /* see firewall.h */
    bool whole;               /* `applied` says nothing about the kernel */
    struct agx_map members;   /* by sandbox id */
    struct agx_firewall_part host;
    bool flying_whole, flying_some; /* the script in flight: is whole; has any member */
};

void agx_firewall_state_init(struct agx_firewall_state *s, const char *instance, bool lan_blocked,
                             struct agx_siphash_key seed);
void agx_firewall_state_done(struct agx_firewall_state *s);

/* Adds or updates a member. See agx_firewall_text_member(); also -AGX_INVALID_ARGUMENT for a bridge
 * that another member has. */
int agx_firewall_state_set(struct agx_firewall_state *s, const struct agx_firewall_member *m,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_firewall_state_remove(struct agx_firewall_state *s, const char *sandbox_id);

/* Sets the elements of the host, sorted. Returns true when they changed. */
bool agx_firewall_state_set_host(struct agx_firewall_state *s, struct agx_words *take_words);

/* At least one member is wanted. */
bool agx_firewall_state_any(const struct agx_firewall_state *s);

/* Writes the script that makes the kernel's table equal to `wanted`; may be empty. Call landed()
 * when it was applied; after a failure, the next script replaces it. */
int agx_firewall_state_script(struct agx_firewall_state *s, struct agx_buf *out,
                              struct agx_error **err) AGX_MUST_CHECK;
void agx_firewall_state_landed(struct agx_firewall_state *s);

#endif

/*
 * fence.h: what a sandbox may reach on the network, by nftables in a table of our own.
 *
 *     agx_fence_open(loop, &config, &fence, err);
 *     agx_fence_sync(fence, members, n, done, user, &op, err);   first: what stands already
 *     agx_fence_put(fence, &member, done, user, &op, err);       before its first process runs
 *     agx_fence_remove(fence, "web-1", done, user, &op, err);    after its last one is gone
 *
 * A member is a sandbox with the bridge that all its packets come from. Rules are the same for all
 * and written once; a member is a few elements of sets. With the last member the table goes.
 *
 * From inside a sandbox:
 *  (1) no address of the host answers, nor a port that is published on one;
 *  (2) no other bridge or container of this host, ours or not;
 *  (3) no link-local, metadata, multicast or reserved address;
 *  (4) a packet whose source is not of the member's own subnets goes nowhere;
 *  (5) where the LAN is blocked, no private address but those of its own network, and port 53 of
 *      the resolvers that the host itself uses;
 *  (6) a member in egress mode reaches what its list names, as far as (1) to (5) allow it.
 * Towards a sandbox nothing is forwarded: only the host itself may open a connection, which is how
 * declared ports work. Answers pass, in both directions. IPv4 and IPv6 alike.
 *
 * The table outlives the daemon, as sandboxes do. When somebody else takes it away (a firewall that
 * is loaded anew flushes all tables) it is put back at once.
 *
 * Loop thread only; the kernel is asked on a thread of the fence's own, changes that come meanwhile
 * share the next transaction.
 */
#ifndef AGX_BACKEND_FENCE_H
#define AGX_BACKEND_FENCE_H

#include "core/egress.h"
#include "core/subnet.h"
#include "loop/loop.h"

struct agx_fence;
struct agx_fence_op; /* one request until its done */

struct agx_fence_config {
    const char *instance; /* the table is "agentix-" and its first 8 characters (hexadecimal) */
    bool lan_blocked;
    /* No engine routes for the members: what leaves the host gets the host's address, and passes
     * the chain that Docker keeps for others, where there is one. */
    bool routed;
    int net_fd; /* the network namespace that has the table; 0: our own. Borrowed */
    /* Somebody else changed the table, and it stands again (error NULL), or it does not, and will
     * be tried again. The callee owns `error`. May be NULL. */
    agx_done_fn restored;
    void *restored_user;
};

struct agx_fence_member {
    const char *sandbox_id;
    const char *bridge;               /* name of the interface, 1..15 bytes */
    const struct agx_subnet *subnets; /* of its network: at least one */
    size_t n_subnets;
    bool closed;                     /* egress mode: only what follows */
    const struct agx_egress *egress; /* addresses; a name opens nothing: see resolve.h */
    size_t n_egress;
};

/* 0, or -AGX_FAILED_PRECONDITION with the setcap command: this process lacks CAP_NET_ADMIN. */
int agx_fence_allowed(struct agx_error **err) AGX_MUST_CHECK;

/* Touches nothing in the kernel yet. Strings are copied. */
int agx_fence_open(struct agx_loop *l, const struct agx_fence_config *config,
                   struct agx_fence **ret_fence, struct agx_error **err) AGX_MUST_CHECK;

/*
 * These return 0 and `done` follows once, or fail and it does not. Members are copied. `ret_op` may
 * be NULL. -AGX_INVALID_ARGUMENT for a member that cannot be: a bad name, a bridge that another
 * has.
 */

/* The first call, and after each time that the world may have changed: the table becomes exactly
 * these members and those that this object was told of by put and not by remove. */
int agx_fence_sync(struct agx_fence *f, const struct agx_fence_member *members, size_t n,
                   agx_done_fn done, void *user, struct agx_fence_op **ret_op,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Adds a member, or gives it other values. When done says success the rules hold. The bridge need
 * not exist yet. -AGX_FAILED_PRECONDITION before the first sync. */
int agx_fence_put(struct agx_fence *f, const struct agx_fence_member *member, agx_done_fn done,
                  void *user, struct agx_fence_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* One that is no member is removed already. */
int agx_fence_remove(struct agx_fence *f, const char *sandbox_id, agx_done_fn done, void *user,
                     struct agx_fence_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* `done` will not come; what was asked for still happens. */
void agx_fence_abandon(struct agx_fence_op *op);

/* No done comes any more but `closed` (may be NULL). The table stays. */
void agx_fence_close(struct agx_fence *f, agx_done_fn closed, void *user);

#endif

/*
 * firewall.h: the firewall: what a sandbox may reach on the network, enforced by nftables in our
 * own table.
 *
 *     agx_firewall_open(loop, &config, &firewall, err);
 *     agx_firewall_sync(fw, members, n, done, user, &op, err);   first: the existing sandboxes
 *     agx_firewall_put(fw, &member, done, user, &op, err);       before its first process runs
 *     agx_firewall_remove(firewall, "web-1", done, user, &op, err);    after its last process ended
 *
 * A member is a sandbox and the bridge that all its packets come from. The rules are written once
 * and are the same for all members; a member is only a few set elements. The table is removed with
 * the last member.
 *
 * From inside a sandbox:
 *  (1) no address of the host answers, nor any port that is published on one;
 *  (2) no other bridge or container of this host can be reached, ours or not;
 *  (3) no link-local, metadata, multicast or reserved address can be reached;
 *  (4) packets whose source address is outside the member's own subnets are dropped;
 *  (5) where the LAN is blocked, private addresses are blocked too, except those of its own network
 *      and port 53 of the resolvers that the host itself uses;
 *  (6) a member in egress mode reaches what its list names, as far as (1) to (5) allow.
 * No connections are forwarded to a sandbox: only the host itself may open one, which is how
 * declared ports work. Replies pass in both directions. The same holds for IPv4 and IPv6.
 *
 * The table outlives the daemon, as sandboxes do. When another program removes it (reloading a
 * firewall flushes all tables), it is restored at once.
 *
 * Loop thread only. The kernel is called on the firewall's own thread; changes that arrive during a
 * transaction share the next one.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_H
#define AGX_BACKEND_NET_FIREWALL_H

#include "core/egress.h"
#include "core/subnet.h"
#include "loop/loop.h"

struct agx_firewall;
struct agx_firewall_op; /* one request, until its done */

struct agx_firewall_config {
    const char *instance; /* the table is "agentix-" and its first 8 characters (hexadecimal) */
    bool lan_blocked;
    /* No engine routes for the members: packets that leave the host get the host's address and pass
     * Docker's chain for user rules, where there is one. */
    bool routed;
    int net_fd; /* network namespace of the table; 0: our own. Borrowed */
    /* Another program changed the table. `error` NULL: it is restored. Else restoring failed and
     * will be tried again. The callee owns `error`. May be NULL. */
    agx_done_fn restored;
    void *restored_user;
};

struct agx_firewall_member {
    const char *sandbox_id;
    const char *bridge;               /* name of the interface, 1..15 bytes */
    const struct agx_subnet *subnets; /* of its network; at least one */
    size_t n_subnets;
    bool closed;                     /* egress mode: only `egress` can be reached */
    const struct agx_egress *egress; /* addresses; a name allows nothing by itself: see resolve.h */
    size_t n_egress;
};

/* 0, or -AGX_FAILED_PRECONDITION with the setcap command: this process lacks CAP_NET_ADMIN. */
int agx_firewall_allowed(struct agx_error **err) AGX_MUST_CHECK;

/* Does not touch the kernel yet. Strings are copied. */
int agx_firewall_open(struct agx_loop *l, const struct agx_firewall_config *config,
                      struct agx_firewall **ret_firewall, struct agx_error **err) AGX_MUST_CHECK;

/*
 * These calls return 0, and `done` follows once; or they fail, and it does not. Members are copied.
 * `ret_op` may be NULL. -AGX_INVALID_ARGUMENT for an invalid member: a bad name, or a bridge that
 * another member has.
 */

/* Must be the first call, and is repeated whenever the system may have changed. The table becomes
 * exactly these members plus those that were put and not removed through this object. */
int agx_firewall_sync(struct agx_firewall *f, const struct agx_firewall_member *members, size_t n,
                      agx_done_fn done, void *user, struct agx_firewall_op **ret_op,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Adds or updates a member. After a successful `done` the rules are in force. The bridge need not
 * exist yet. -AGX_FAILED_PRECONDITION before the first sync. */
int agx_firewall_put(struct agx_firewall *f, const struct agx_firewall_member *member,
                     agx_done_fn done, void *user, struct agx_firewall_op **ret_op,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Removing an unknown member succeeds. */
int agx_firewall_remove(struct agx_firewall *f, const char *sandbox_id, agx_done_fn done,
                        void *user, struct agx_firewall_op **ret_op,
                        struct agx_error **err) AGX_MUST_CHECK;

/* `done` is not called any more; the request is still carried out. */
void agx_firewall_abandon(struct agx_firewall_op *op);

/* No done is called any more except `closed` (may be NULL). The table stays. */
void agx_firewall_close(struct agx_firewall *f, agx_done_fn closed, void *user);

#endif

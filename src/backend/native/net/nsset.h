/*
 * nsset.h: namespace sets: a user namespace with its own ids, the network namespace that belongs to
 * it, the link to the host, its addresses and its membership in the firewall. A sandbox is started
 * in one.
 *
 *     agx_nsset_pool_open(loop, &config, &nssets, err);
 *     agx_nsset_pool_adopt(pool, &record, &nsset, err);  each running one of an earlier daemon
 *     agx_nsset_pool_reserve(nssets, id_base, err);      ids of each stopped sandbox
 *     agx_nsset_pool_begin(nssets, done, user, err);     removes what has no owner
 *     agx_nsset_pool_take(nssets, &want, done, user, &op, err);
 *     agx_nsset_remove(nsset);                           after its last process ended
 *
 * A set has a member for the sandbox and one for each companion; each member has its own
 * namespaces. A single member is connected to the host by a veth pair, several by a bridge. In both
 * cases all their packets come from one interface of the host, and they have one subnet:
 *
 *     host   agx0123abcd  10.213.0.1/28          veth, or bridge
 *     inside eth0         10.213.0.2/28, .3, ... default route by 10.213.0.1
 *
 * Namespaces are kept alive by descriptors, without a process. Sets for one member with an open
 * network are made in advance and kept as spares; all others are made on demand. The spares of a
 * daemon that dies go with it.
 *
 * Loop thread only. Kernel calls are made on one thread of this module: the kernel serialises such
 * work anyway.
 */
#ifndef AGX_BACKEND_NATIVE_NET_NSSET_H
#define AGX_BACKEND_NATIVE_NET_NSSET_H

#include "base/idmap.h"
#include "base/limits_native.h"
#include "core/egress.h"
#include "core/subnet.h"
#include "loop/loop.h"

#include <net/if.h>

struct agx_nsset_pool;
struct agx_nsset_op;     /* a take, until its done */
struct agx_nsset_repair; /* likewise */

enum agx_nsset_network {
    AGX_NSSET_NAT,    /* the Internet, by the host's address; not the host or its neighbours */
    AGX_NSSET_CLOSED, /* like NAT, but only what a list names, and the other members */
    AGX_NSSET_NONE,   /* only loopback, each member its own */
};

struct agx_nsset_pool_config {
    const char *init_path;  /* agentix-init */
    const char *instance;   /* of the daemon: names the firewall's table and marks links */
    struct agx_subnet pool; /* of subnets of size AGX_SUBNETS_PREFIX */
    uint32_t id_base;       /* first id of the first range of AGX_NSSET_IDS */
    uint32_t id_ranges;     /* number of ranges */
    struct agx_idmap idmap; /* of an ordinary user: all share one range, from 1 on */
    int net_fd;     /* network namespace for the host's end of links; 0: the host's own. Borrowed */
    unsigned ready; /* number of spares */
    bool lan_blocked; /* see firewall.h */
    /* Loop thread: reports what an operator should know and we survive: forwarding was switched on,
     * a spare could not be made, the firewall had to be restored. Borrowed. */
    void (*notice)(void *user, const char *text);
    void *user;
};

/* One member. The namespace set owns strings and descriptors. */
struct agx_nsset_member {
    uint32_t id_base;    /* id 0 inside is this id outside, and so on for AGX_NSSET_IDS ids */
    int user_fd, net_fd; /* its namespaces; -1 after a restart if the record had none */
    char address[16];    /* "10.213.0.2"; "" without a network */
};

struct agx_nsset {
    enum agx_nsset_network network;
    char interface[IF_NAMESIZE]; /* of the host; "": none */
    struct agx_subnet subnet;    /* prefix 0: none */
    char gateway[16];            /* "": none */
    size_t n;
    struct agx_nsset_member *members; /* the sandbox, then its companions */
};

int agx_nsset_pool_open(struct agx_loop *l, const struct agx_nsset_pool_config *config,
                        struct agx_nsset_pool **ret_nssets, struct agx_error **err) AGX_MUST_CHECK;

/* Free the running sets first (agx_nsset_free). No done comes any more except `closed`, which may
 * be NULL. Running sandboxes keep their sets; spares are removed. */
void agx_nsset_pool_close(struct agx_nsset_pool *s, agx_done_fn closed, void *user);

/* ---- before begin: what there is from an earlier daemon ---- */

struct agx_nsset_record {
    enum agx_nsset_network network;
    const char *interface; /* "" or NULL: none */
    struct agx_subnet subnet;
    size_t n;
    const uint32_t *id_bases; /* n */
    /* n pairs of user and network namespace, each pair -1 or taken over; NULL: all unknown. For a
     * running process: /proc/PID/ns/user and net. */
    const int (*fds)[2];
    const struct agx_egress *egress; /* for AGX_NSSET_CLOSED */
    size_t n_egress;
};

/* Adopts the set of a running sandbox. Does not touch the kernel. */
int agx_nsset_pool_adopt(struct agx_nsset_pool *s, const struct agx_nsset_record *record,
                         struct agx_nsset **ret_nsset, struct agx_error **err) AGX_MUST_CHECK;

/* Reserves ids that files on disk belong to. -AGX_ALREADY_EXISTS when they are taken,
 * -AGX_INVALID_ARGUMENT when they are not one of the ranges. */
int agx_nsset_pool_reserve(struct agx_nsset_pool *s, uint32_t id_base,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Frees ids: the sandbox is deleted, or was never made. Removing a namespace set does not free its
 * ids, because the files of a stopped sandbox have them. */
void agx_nsset_pool_release(struct agx_nsset_pool *s, uint32_t id_base);

/* Removes links and rules without an owner, writes the firewall, and begins to make spares. `done`
 * comes when the firewall is in force. */
int agx_nsset_pool_begin(struct agx_nsset_pool *s, agx_done_fn done, void *user,
                         struct agx_error **err) AGX_MUST_CHECK;

/* ---- after it ---- */

struct agx_nsset_want {
    enum agx_nsset_network network;
    size_t n; /* the sandbox and its companions: 1..AGX_NSSET_MEMBERS_MAX */
    /* Reserved ranges to use (resume), one for each of the n members; NULL: any free ones, which
     * stay reserved until agx_nsset_pool_release(). */
    const uint32_t *id_bases;
    const struct agx_egress *egress; /* for AGX_NSSET_CLOSED: addresses; see resolve.h for names */
    size_t n_egress;
};

/* The callee owns `nsset` and `error`; one of them is NULL. */
typedef void (*agx_nsset_fn)(void *user, struct agx_nsset *nsset, struct agx_error *error);

/* On success the network exists and the firewall covers it. Returns 0, and `done` follows, or an
 * error, and it does not. `ret_op` may be NULL. A failure leaves no new ids reserved. */
int agx_nsset_pool_take(struct agx_nsset_pool *s, const struct agx_nsset_want *want,
                        agx_nsset_fn done, void *user, struct agx_nsset_op **ret_op,
                        struct agx_error **err) AGX_MUST_CHECK;

/* `done` is not called any more; what was being made is removed, and its new ids are freed. */
void agx_nsset_abandon(struct agx_nsset_op *op);

/* Makes new namespaces and links for the members whose bit is set, in a set of several members.
 * These members have no process: their namespaces went with the last process and the daemon that
 * held them. Ids and addresses stay, and the other members are not affected. As with a take, `done`
 * follows a 0. */
int agx_nsset_repair(struct agx_nsset *n, uint32_t members, agx_done_fn done, void *user,
                     struct agx_nsset_repair **ret_mend, struct agx_error **err) AGX_MUST_CHECK;

/* `done` is not called any more, and the set may be removed. */
void agx_nsset_repair_abandon(struct agx_nsset_repair *m);

/* New addresses for the list of an AGX_NSSET_CLOSED set. `done` may be NULL. */
int agx_nsset_restrict(struct agx_nsset *n, const struct agx_egress *egress, size_t n_egress,
                       agx_done_fn done, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* Its last process has ended: removes link, rules and namespaces, in the background. Its address
 * and name are not reused before they are gone. Accepts and returns NULL. */
struct agx_nsset *agx_nsset_remove(struct agx_nsset *n);

/* Frees the object: nothing changes for the sandbox in it. Accepts and returns NULL. */
struct agx_nsset *agx_nsset_free(struct agx_nsset *n);

#endif

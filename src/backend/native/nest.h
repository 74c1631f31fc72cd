/*
 * nest.h: where a sandbox lives before it is one: a user namespace with ids of its own, a network
 * namespace that belongs to it, the link to the host, its addresses and its place in the fence.
 *
 *     agx_nests_open(loop, &config, &nests, err);
 *     agx_nests_adopt(nests, &record, &nest, err);           each that lives on from before
 *     agx_nests_reserve(nests, id_base, err);                ids of each that is stopped
 *     agx_nests_begin(nests, done, user, err);               what is nobody's goes
 *     agx_nests_take(nests, &want, done, user, &op, err);
 *     agx_nest_remove(nest);                                 after its last process is gone
 *
 * A nest has a member for the sandbox and one for each companion. Each member has namespaces of its
 * own. One member alone is joined to the host by a veth pair; several by a bridge. In both cases
 * one interface of the host is what all their packets come from, and one subnet is theirs:
 *
 *     host   agx0123abcd  10.213.0.1/28          veth, or bridge
 *     inside eth0         10.213.0.2/28, .3, ... default route by 10.213.0.1
 *
 * Namespaces live by descriptors, without a process. Nests for one member with an open network are
 * made before they are wanted and kept ready; all others on demand. What a daemon that died had
 * ready dies with it.
 *
 * Loop thread only. The kernel is asked on one thread of the nests' own: it serialises such work
 * anyway.
 */
#ifndef AGX_BACKEND_NATIVE_NEST_H
#define AGX_BACKEND_NATIVE_NEST_H

#include "base/idmap.h"
#include "base/limits_native.h"
#include "core/egress.h"
#include "core/subnet.h"
#include "loop/loop.h"

#include <net/if.h>

struct agx_nests;
struct agx_nest_op;   /* a take until its done */
struct agx_nest_mend; /* likewise */

enum agx_nest_network {
    AGX_NEST_NAT,    /* the Internet, by the host's address; not the host or its neighbours */
    AGX_NEST_CLOSED, /* of that only what a list names, and the other members */
    AGX_NEST_NONE,   /* loopback, of each member its own */
};

struct agx_nests_config {
    const char *init_path;  /* agentix-init */
    const char *instance;   /* of the daemon: names the fence's table and marks links */
    struct agx_subnet pool; /* where subnets come from, cut into /AGX_SUBNETS_PREFIX */
    uint32_t id_base;       /* first id of the first range of AGX_NEST_IDS */
    uint32_t id_ranges;     /* how many there are */
    struct agx_idmap idmap; /* of an ordinary user's: all share one range, from 1 on */
    int net_fd; /* the network namespace that takes the host's part; 0: the host's own. Borrowed */
    unsigned ready;   /* nests that are kept ready */
    bool lan_blocked; /* see fence.h */
    /* Loop thread: something an operator wants to know and that we live with: forwarding was
     * switched on, a ready nest could not be made, the fence had to be put back. Borrowed. */
    void (*notice)(void *user, const char *text);
    void *user;
};

/* One member. Strings and descriptors are the nest's. */
struct agx_nest_member {
    uint32_t id_base;    /* id 0 inside is this one outside, and so for AGX_NEST_IDS ids */
    int user_fd, net_fd; /* its namespaces; -1 after a restart when the record had none */
    char address[16];    /* "10.213.0.2"; "" without a network */
};

struct agx_nest {
    enum agx_nest_network network;
    char interface[IF_NAMESIZE]; /* of the host; "" when there is none */
    struct agx_subnet subnet;    /* prefix 0 when there is none */
    char gateway[16];            /* "" when there is none */
    size_t n;
    struct agx_nest_member *members; /* the sandbox, then its companions */
};

int agx_nests_open(struct agx_loop *l, const struct agx_nests_config *config,
                   struct agx_nests **ret_nests, struct agx_error **err) AGX_MUST_CHECK;

/* Living nests are forgotten (agx_nest_free) before. No done comes any more but `closed`, which may
 * be NULL. What lives goes on to live; what was only ready goes. */
void agx_nests_close(struct agx_nests *s, agx_done_fn closed, void *user);

/* ---- before begin: what there is from an earlier daemon ---- */

struct agx_nest_record {
    enum agx_nest_network network;
    const char *interface; /* "" or NULL: none */
    struct agx_subnet subnet;
    size_t n;
    const uint32_t *id_bases; /* n */
    /* n pairs of user and network namespace, each pair -1 or taken over; NULL: none is known. For
     * a process that lives: /proc/PID/ns/user and net. */
    const int (*fds)[2];
    const struct agx_egress *egress; /* of AGX_NEST_CLOSED */
    size_t n_egress;
};

/* The nest of a sandbox that lives. Nothing in the kernel is touched. */
int agx_nests_adopt(struct agx_nests *s, const struct agx_nest_record *record,
                    struct agx_nest **ret_nest, struct agx_error **err) AGX_MUST_CHECK;

/* Ids that files on disk belong to: nobody else gets them. -AGX_ALREADY_EXISTS when somebody has
 * them, -AGX_INVALID_ARGUMENT when they are none of the ranges. */
int agx_nests_reserve(struct agx_nests *s, uint32_t id_base, struct agx_error **err) AGX_MUST_CHECK;

/* Nobody needs these ids any more: the sandbox is deleted, or was never made. A nest's end alone
 * does not release its ids, for the files of a stopped sandbox have them. */
void agx_nests_release(struct agx_nests *s, uint32_t id_base);

/* Removes the links and the rules of nobody, writes the fence, and begins to keep nests ready.
 * `done` tells when the fence stands. */
int agx_nests_begin(struct agx_nests *s, agx_done_fn done, void *user,
                    struct agx_error **err) AGX_MUST_CHECK;

/* ---- after it ---- */

struct agx_nest_want {
    enum agx_nest_network network;
    size_t n; /* the sandbox and its companions: 1..AGX_NEST_MEMBERS_MAX */
    /* Ranges that are reserved for them (resume), for all n members; NULL: any that are free. These
     * are reserved from then on until agx_nests_release(). */
    const uint32_t *id_bases;
    const struct agx_egress *egress; /* of AGX_NEST_CLOSED: addresses; see resolve.h for names */
    size_t n_egress;
};

/* The callee owns `nest` and `error`; one of them is NULL. */
typedef void (*agx_nest_fn)(void *user, struct agx_nest *nest, struct agx_error *error);

/* When done says success the network is there and fenced. 0 and `done` follows, or an error and it
 * does not. `ret_op` may be NULL. After a failure no ids of `any` are reserved. */
int agx_nests_take(struct agx_nests *s, const struct agx_nest_want *want, agx_nest_fn done,
                   void *user, struct agx_nest_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* `done` will not come; what was being made is removed again and its new ids released. */
void agx_nest_abandon(struct agx_nest_op *op);

/* Namespaces and links anew for those of several members whose bit is set, who have no process: a
 * member's went with its last process and the daemon that held them. Ids and addresses stay. Other
 * members notice nothing. As with a take, `done` follows a 0. */
int agx_nest_mend(struct agx_nest *n, uint32_t members, agx_done_fn done, void *user,
                  struct agx_nest_mend **ret_mend, struct agx_error **err) AGX_MUST_CHECK;

/* `done` will not come, and the nest may go. */
void agx_nest_mend_abandon(struct agx_nest_mend *m);

/* Other addresses for the list of one that is AGX_NEST_CLOSED. `done` may be NULL. */
int agx_nest_restrict(struct agx_nest *n, const struct agx_egress *egress, size_t n_egress,
                      agx_done_fn done, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* The last process in it is gone: link, rules and namespaces go, off the path. Its address and name
 * are not used again before they are gone. Returns NULL and accepts it. */
struct agx_nest *agx_nest_remove(struct agx_nest *n);

/* Forgets it: nothing changes for what lives in it. Returns NULL and accepts it. */
struct agx_nest *agx_nest_free(struct agx_nest *n);

#endif

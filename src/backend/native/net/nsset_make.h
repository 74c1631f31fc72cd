/*
 * nsset_make.h: the kernel calls of the namespace sets, on their one thread. Blocking.
 *
 * `agentix-init --nssets` (codec/initproto_plan.h) makes the namespaces, because a process with
 * threads cannot make a user namespace. We configure their network by sockets that init opened
 * inside.
 */
#ifndef AGX_BACKEND_NATIVE_NET_NSSET_MAKE_H
#define AGX_BACKEND_NATIVE_NET_NSSET_MAKE_H

#include "backend/native/net/nsset.h"
#include "backend/net/subnets.h"
#include "core/text.h"

/* Used only by that thread. */
struct agx_nsset_maker {
    char *init_path;
    struct agx_idmap idmap; /* as in struct agx_nsset_pool_config */
    char alias[32];         /* of our links */
    struct agx_subnets subnets;
    struct agx_subnet_list taken; /* taken by the host, when last read, and by us since */
    uint64_t taken_ms;
    int net_fd; /* namespace that the thread works in; 0: the host's. Borrowed */
    int fd;     /* rtnetlink socket there; -1 until the first use */
    /* agentix-init and its reports; 0 and -1 until the first use and after a failure. */
    pid_t init_pid;
    int init_fd;
};

/* Fills in a set, whose network, n and members' id_base the caller has set. A failure leaves
 * nothing behind. */
int agx_nsset_make(struct agx_nsset_maker *m, struct agx_nsset *n,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Namespaces and a link to the bridge for one of several members; the rest of the set exists. After
 * a failure the member has none. */
int agx_nsset_make_member(struct agx_nsset_maker *m, struct agx_nsset *n, size_t i,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Fills in the gateway's and the members' addresses in that network. */
void agx_nsset_number(struct agx_nsset *n, const struct agx_subnet *subnet);

/* The first work of a daemon: removes the links without an owner, which are all with our alias that
 * are not in `keep`. *ret_forwarding: the host did not forward packets, and does now. */
int agx_nsset_clean(struct agx_nsset_maker *m, const struct agx_words *keep, bool *ret_forwarding,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Whether a link is gone; with `now`, deletes it first. */
bool agx_nsset_gone(struct agx_nsset_maker *m, const char *interface, bool now);

void agx_nsset_maker_done(struct agx_nsset_maker *m);

#endif

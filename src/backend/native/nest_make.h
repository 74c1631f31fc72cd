/*
 * nest_make.h: what the nests ask the kernel, on their one thread. Blocking.
 *
 * Namespaces are made by `agentix-init --nests` (codec/initproto_plan.h), for a process with
 * threads may not make a user namespace; the network in them is ours to make, by sockets that were
 * opened inside.
 */
#ifndef AGX_BACKEND_NATIVE_NEST_MAKE_H
#define AGX_BACKEND_NATIVE_NEST_MAKE_H

#include "backend/native/nest.h"
#include "backend/subnets.h"
#include "core/text.h"

/* Of the thread alone. */
struct agx_nest_maker {
    char *init_path;
    struct agx_idmap idmap; /* as in struct agx_nests_config */
    char alias[32];         /* of our links */
    struct agx_subnets subnets;
    struct agx_subnet_list taken; /* by the host, when it was looked at last, and by us since */
    uint64_t taken_ms;
    int net_fd; /* that the thread works in; 0: the host's. Borrowed */
    int fd;     /* rtnetlink there; -1 until the first use */
    /* agentix-init and its reports; 0 and -1 until the first use, and behind a failure. */
    pid_t init_pid;
    int init_fd;
};

/* Fills the nest, whose network, n and members' id_base are set, with all the rest. After a failure
 * nothing is left of it. */
int agx_nest_make(struct agx_nest_maker *m, struct agx_nest *n,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Namespaces and a link to the bridge for one member of several; the rest of the nest stands. After
 * a failure the member has none. */
int agx_nest_make_member(struct agx_nest_maker *m, struct agx_nest *n, size_t i,
                         struct agx_error **err) AGX_MUST_CHECK;

/* The gateway's and the members' addresses in that network. */
void agx_nest_number(struct agx_nest *n, const struct agx_subnet *subnet);

/* A daemon's first work: the links of nobody go, which are all with our alias but those in `keep`.
 * *ret_forwarding: the host did not forward packets, and now does. */
int agx_nest_clean(struct agx_nest_maker *m, const struct agx_words *keep, bool *ret_forwarding,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Whether a link is gone, by itself or, when `now` is set, by us. */
bool agx_nest_gone(struct agx_nest_maker *m, const char *interface, bool now);

void agx_nest_maker_done(struct agx_nest_maker *m);

#endif

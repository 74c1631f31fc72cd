/*
 * forward.h: declared ports, and name lookups that only the host can make. Each sandbox that needs
 * it gets a process of its own: agentix-forward (src/forward/).
 *
 *     agx_forward_bind(ports, n, &sockets, err);   first of all: a port may be taken
 *     agx_forward_start(loop, &params, done, user, &forward, err);        when PID 1 exists
 *     agx_forward_watch(forward, ended, user);
 *     agx_forward_stop(forward);
 *
 * For ports it listens on 127.0.0.1 of the host and connects inside the sandbox's network to the
 * sandbox's own address, so that it reaches servers that listen on all addresses, as with an
 * engine's published port. For names (resolv.h) it listens inside and connects from the host to one
 * server.
 *
 * It outlives the daemon, and ends when the sandbox's PID 1 does. Loop thread only.
 */
#ifndef AGX_BACKEND_NATIVE_FORWARD_H
#define AGX_BACKEND_NATIVE_FORWARD_H

#include "backend/proc.h"
#include "core/spec.h"
#include "loop/loop.h"

struct agx_forward;

/* Bound sockets, one for each port, in the same order. TCP sockets listen: early connections wait
 * until the process runs. */
struct agx_forward_sockets {
    int *fds;
    size_t n;
};

/* -AGX_ALREADY_EXISTS names a port that is taken, -AGX_FAILED_PRECONDITION a protocol that is not
 * forwarded (sctp). A failure leaves nothing open. */
int agx_forward_bind(const struct agx_port *ports, size_t n, struct agx_forward_sockets *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
void agx_forward_sockets_done(struct agx_forward_sockets *s);

/* All borrowed for the call. */
struct agx_forward_params {
    const char *program; /* agentix-forward */
    int net_fd;          /* the sandbox's network namespace */
    int pidfd;           /* the sandbox's PID 1 */
    /* Either ports: the sandbox's address ("10.213.0.2"; "127.0.0.1" without a network), the ports,
     * and their sockets. */
    const char *address;
    const struct agx_port *ports;
    const struct agx_forward_sockets *sockets;
    /* Or names: the server that the host asks; `upstream` of agx_resolv. */
    const char *dns;
};

/* `done` reports that it works, or why not; in both cases stop or free must follow. */
int agx_forward_start(struct agx_loop *l, const struct agx_forward_params *params, agx_done_fn done,
                      void *user, struct agx_forward **ret_forward,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Adopts one that an earlier daemon started. -AGX_NOT_FOUND when it is gone, or when the process is
 * another: then start a new one (its ports are free again and must be bound first). */
int agx_forward_adopt(struct agx_loop *l, const struct agx_native_proc *proc,
                      struct agx_forward **ret_forward, struct agx_error **err) AGX_MUST_CHECK;

/* For one that was just started or adopted. `ended` reports, once and never inside a call, that it
 * worked and then ended by itself, so that its ports are free. Stop or free must follow. */
typedef void (*agx_forward_ended_fn)(void *user);
void agx_forward_watch(struct agx_forward *f, agx_forward_ended_fn ended, void *user);

/* Identifies the process, to be kept in the sandbox's record. Borrowed; valid as long as `f`. */
const struct agx_native_proc *agx_forward_proc(const struct agx_forward *f);

/* A pidfd of the process, owned by the caller, to wait for its end; -1 when there is none. Accepts
 * NULL. */
int agx_forward_dup_pidfd(const struct agx_forward *f);

/* Kills the process; its ports are free when the kernel has ended it. Neither `done` nor `ended`
 * comes any more. Accepts and returns NULL. */
struct agx_forward *agx_forward_stop(struct agx_forward *f);

/* Frees the object; the process keeps running. Neither `done` nor `ended` comes any more. Accepts
 * and returns NULL. */
struct agx_forward *agx_forward_free(struct agx_forward *f);

#endif

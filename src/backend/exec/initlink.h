/*
 * initlink.h: the control channel to one agentix-init, on the loop; reconnects when it breaks.
 * docs/design/init.md
 *
 * There are several kinds of links; they differ in their transport. The one that is opened here
 * takes the channel with pidfd_getfd(2).
 *
 *     agx_initlink_open(loop, &config, &ops, user, &link, err);
 *     ... ops->ready: QUERY or START known commands ... agx_initlink_send() ... ops->message ...
 *     agx_initlink_close(link, closed, user);
 *
 * Init keeps its state, but not unsent messages: after each `ready` the user asks again about every
 * command that it waits for. Loop thread only.
 */
#ifndef AGX_BACKEND_EXEC_INITLINK_H
#define AGX_BACKEND_EXEC_INITLINK_H

#include "base/limits.h"
#include "codec/initproto.h"
#include "loop/loop.h"

#include <sys/types.h>

struct agx_initlink;

/* A kind of link: implements send, is_ready and close below. */
struct agx_initlink_kind {
    const char *name;
    /* START carries descriptors of the logs; else init keeps the logs and sends OUTPUT. */
    bool carries_logs;
    int (*send)(struct agx_initlink *k, const struct agx_init_msg *m, const int *fds, size_t n_fds,
                struct agx_error **err);
    bool (*is_ready)(const struct agx_initlink *k);
    void (*close)(struct agx_initlink *k, agx_done_fn closed, void *user);
};

/* Embedded first by implementations. */
struct agx_initlink {
    const struct agx_initlink_kind *kind;
};

struct agx_initlink_ops {
    /* Connected: at first, and after each break. Requests without an answer must be sent again. */
    void (*ready)(void *user);
    /* Borrowed for the call. WELCOME is not passed on. */
    void (*message)(void *user, const struct agx_init_msg *m);
    /* Comes once and last: init has ended (-AGX_UNAVAILABLE), may not be traced
     * (-AGX_PERMISSION_DENIED), or does not answer (-AGX_DEADLINE_EXCEEDED). The callee owns
     * `error`; the link must still be closed. */
    void (*lost)(void *user, struct agx_error *error);
};

struct agx_initlink_config {
    int pidfd;           /* of init; borrowed for the call of open */
    uint64_t connect_ms; /* time limit of each attempt to connect */
    bool patient;        /* retries after that limit instead of reporting `lost` */
    uint64_t retry_ms;   /* between two attempts */
    size_t queue_max;    /* bytes that may wait to be sent */
};

#define AGX_INITLINK_CONFIG_INIT                                                                   \
    {                                                                                              \
        .pidfd = -1, .connect_ms = AGX_INITLINK_CONNECT_MS, .retry_ms = AGX_INITLINK_RETRY_MS,     \
        .queue_max = AGX_INITLINK_QUEUE_MAX                                                        \
    }

int agx_initlink_open(struct agx_loop *loop, const struct agx_initlink_config *config,
                      const struct agx_initlink_ops *ops, void *user,
                      struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Sends a packet with up to AGX_INIT_FDS_MAX descriptors, which stay the caller's.
 * -AGX_UNAVAILABLE: not connected; `ready` or `lost` will follow. -AGX_RESOURCE_EXHAUSTED: too
 * large, or too much is queued; nothing was sent.
 */
AGX_MUST_CHECK static inline int agx_initlink_send(struct agx_initlink *k,
                                                   const struct agx_init_msg *m, const int *fds,
                                                   size_t n_fds, struct agx_error **err)
{
    return k->kind->send(k, m, fds, n_fds, err);
}

static inline bool agx_initlink_is_ready(const struct agx_initlink *k)
{
    return k->kind->is_ready(k);
}

/* No callback comes any more except `closed` (may be NULL). Init and its commands keep running.
 * NULL is accepted and ignored. */
static inline void agx_initlink_close(struct agx_initlink *k, agx_done_fn closed, void *user)
{
    if (k)
        k->kind->close(k, closed, user);
}

#endif

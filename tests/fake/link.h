/*
 * link.h: one connection between the fake backend and its world, on the loop: messages, and the
 * descriptors that go with them.
 *
 * Callers may write to it before it is connected. At the end of the turn it sends everything, in as
 * few system calls as descriptors allow.
 */
#ifndef AGX_TESTS_FAKE_LINK_H
#define AGX_TESTS_FAKE_LINK_H

#include "loop/loop.h"
#include "tests/fake/msg.h"

struct agx_fake_link;

struct agx_fake_link_ops {
    /* A message. Negative: it is malformed, and the link is closed. */
    int (*message)(void *user, struct agx_fake_in *in);
    /* Called exactly once, at the end, whichever side closed it; the link is gone. */
    void (*closed)(void *user);
};

/* Without a socket yet. */
struct agx_fake_link *agx_fake_link_new(struct agx_loop *l, const struct agx_fake_link_ops *ops,
                                        void *user);
/* Takes *take_fd (non-blocking, a Unix stream socket) on success. */
int agx_fake_link_attach(struct agx_fake_link *k, int *take_fd,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Begins a message. End it with agx_fake_link_send() before the next. */
void agx_fake_link_begin(struct agx_fake_link *k, struct agx_fake_out *o, enum agx_fake_kind kind,
                         uint64_t tag);
/* Duplicates the descriptors. -AGX_RESOURCE_EXHAUSTED: too large, or no descriptor left; nothing is
 * sent. */
int agx_fake_link_send(struct agx_fake_link *k, struct agx_fake_out *o, const int *fds,
                       unsigned n_fds) AGX_MUST_CHECK;

/* Inside message(): the next of its descriptors, which the caller owns; -1: there is none. */
int agx_fake_link_take_fd(struct agx_fake_link *k);

/* Sends what can be sent at once and closes; closed() follows, but no message. May be repeated. */
void agx_fake_link_close(struct agx_fake_link *k);

#endif

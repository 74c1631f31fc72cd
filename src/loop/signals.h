/*
 * signals.h: orderly shutdown on SIGTERM and SIGINT.
 *
 * The process's signals are one thing, so a process opens this once, on its main loop. It also
 * ignores SIGPIPE (a write to a gone peer is an error, not a death) and sets SIGCHLD back to its
 * default: ignored by whoever started us, it would take our children's exit status away.
 */
#ifndef AGX_LOOP_SIGNALS_H
#define AGX_LOOP_SIGNALS_H

#include "base/error.h"

struct agx_loop;
struct agx_signals;

/* On the loop thread, for each signal; `count` is 1 for the first, which asks for an orderly end,
 * and grows with those that come while it is under way, which ask for an end at once. */
typedef void (*agx_shutdown_fn)(void *user, int signo, unsigned count);

/* Does not keep the loop running. */
int agx_signals_open(struct agx_loop *l, agx_shutdown_fn on_shutdown, void *user,
                     struct agx_signals **ret_signals, struct agx_error **err) AGX_MUST_CHECK;

/* No callback follows. Returns NULL and accepts it. The signals have their default action again. */
struct agx_signals *agx_signals_close(struct agx_signals *s);

#endif

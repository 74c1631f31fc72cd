/*
 * signals.h: orderly shutdown on SIGTERM and SIGINT.
 *
 * Signals are per process, so a process opens this once, on its main loop. It also ignores SIGPIPE
 * (a write to a closed peer is an error, not a death) and resets SIGCHLD to its default: if it were
 * inherited as ignored, our children's exit statuses would be lost.
 */
#ifndef AGX_LOOP_SIGNALS_H
#define AGX_LOOP_SIGNALS_H

#include "base/error.h"

struct agx_loop;
struct agx_signals;

/* On the loop thread, for each signal. `count` is 1 for the first, which requests an orderly stop,
 * and grows with later ones during that stop, which request an immediate end. */
typedef void (*agx_shutdown_fn)(void *user, int signo, unsigned count);

/* Does not keep the loop running. */
int agx_signals_open(struct agx_loop *l, agx_shutdown_fn on_shutdown, void *user,
                     struct agx_signals **ret_signals, struct agx_error **err) AGX_MUST_CHECK;

/* No callback follows. Restores the signals' default actions. Returns NULL and accepts it. */
struct agx_signals *agx_signals_close(struct agx_signals *s);

#endif

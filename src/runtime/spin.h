/*
 * spin.h: keeps the loop awake for a moment after each message, while messages follow each other
 * closely.
 *
 * Waking a sleeping CPU costs more than handling a call (a virtual machine halts an idle CPU at
 * once). So the loop polls without sleeping for a short time after a message, but only while recent
 * gaps between messages were that short: a server that is idle or called now and then sleeps.
 */
#ifndef AGX_RUNTIME_SPIN_H
#define AGX_RUNTIME_SPIN_H

#include "base/error.h"

struct agx_loop;
struct agx_spin;

/* `spin_us` 0: never. */
struct agx_spin *agx_spin_open(struct agx_loop *l, unsigned spin_us);
/* Call for each message. Cheap: one clock reading. */
void agx_spin_touch(struct agx_spin *s);
/* Returns NULL and accepts it. */
struct agx_spin *agx_spin_close(struct agx_spin *s);

#endif

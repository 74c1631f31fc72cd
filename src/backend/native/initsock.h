/* initsock.h: what the daemon says to an agentix-init that reports (codec/initproto_plan.h). */
#ifndef AGX_BACKEND_NATIVE_INITSOCK_H
#define AGX_BACKEND_NATIVE_INITSOCK_H

#include "base/error.h"

/* GO, on our end of its socket. Does not block: a packet that it has not read yet is one too many.
 *
 * 1: said. 0: nobody is there to hear it, which is no error yet: whether it ended before or after
 * this packet is chance, and what it reported last, or its end, is what the caller reads next. */
int agx_initsock_go(int fd, struct agx_error **err) AGX_MUST_CHECK;

#endif

/* initsock.h: what the daemon sends to an agentix-init that reports (codec/initproto_plan.h). */
#ifndef AGX_BACKEND_NATIVE_INITSOCK_H
#define AGX_BACKEND_NATIVE_INITSOCK_H

#include "base/error.h"

/* Sends GO on our end of its socket. Does not block: two unread packets would be an error.
 *
 * 1: sent. 0: init has ended, which is not an error yet: it may have ended before or after this
 * packet, and the caller next reads its last report or its end. */
int agx_initsock_go(int fd, struct agx_error **err) AGX_MUST_CHECK;

#endif

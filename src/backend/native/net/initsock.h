/* initsock.h: what the daemon and an agentix-init that reports say to each other
 * (codec/initproto_plan.h). */
#ifndef AGX_BACKEND_NATIVE_NET_INITSOCK_H
#define AGX_BACKEND_NATIVE_NET_INITSOCK_H

#include "base/error.h"
#include "codec/initproto_plan.h"

#include <sys/types.h>

struct agx_fdpass;

/* Sends GO on our end of its socket. Does not block: two unread packets would be an error.
 *
 * 1: sent. 0: init has ended, which is not an error yet: it may have ended before or after this
 * packet, and the caller next reads its last report or its end. */
int agx_initsock_go(int fd, struct agx_error **err) AGX_MUST_CHECK;

/* It is told on which descriptor to report. */
#define AGX_INITSOCK_REPORT_FD 3
#define AGX_INITSOCK_REPORT_ARG "3"

/* Runs argv[0] with its end of a socket at AGX_INITSOCK_REPORT_FD, in a session of its own: what a
 * terminal tells the daemon is not for it. Reading from *ret_fd gives up after AGX_NSSET_SPAWN_MS.
 */
int agx_initsock_spawn(const char *const *argv, int *ret_fd, pid_t *ret_pid,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Waits for its next report, which shall be `want`: a report of a failure is an error, as is the
 * end of it. What comes beside it is in `in` (base/fdpass.h), also after a failure. */
int agx_initsock_hear(int fd, enum agx_plan_kind want, struct agx_fdpass *in, pid_t *ret_pid,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif

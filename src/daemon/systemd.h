/*
 * systemd.h: the interface to the service manager: sockets that it passes, and readiness
 * notifications. Works with any manager that follows systemd's protocol.
 */
#ifndef AGX_DAEMON_SYSTEMD_H
#define AGX_DAEMON_SYSTEMD_H

#include "base/error.h"

/* The values of the environment, read before a fork; children do not inherit them. */
struct agx_systemd {
    char *notify_socket; /* NULL: no notifications. Owned. */
    unsigned n_fds;      /* descriptors passed, from AGX_SYSTEMD_FIRST_FD on */
};
#define AGX_SYSTEMD_FIRST_FD 3

/* -AGX_INVALID_ARGUMENT for invalid variables. Removes them from the environment. */
int agx_systemd_init(struct agx_systemd *s, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. Does not close the descriptors. */
void agx_systemd_done(struct agx_systemd *s);

/* Sends "READY=1" or "STOPPING=1". No effect without a socket. A failure does not concern our
 * clients: -code for the log. */
int agx_systemd_notify(const struct agx_systemd *s, const char *state,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif

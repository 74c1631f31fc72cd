/*
 * systemd.h: what a service manager and its service say to each other: sockets that are handed
 * over, and when it is ready. Both work for whoever does the same as systemd.
 */
#ifndef AGX_DAEMON_SYSTEMD_H
#define AGX_DAEMON_SYSTEMD_H

#include "base/error.h"

/* The environment's part of it, read before a fork; it is not passed on to children. */
struct agx_systemd {
    char *notify_socket; /* NULL: nobody wants to know. Owned. */
    unsigned n_fds;      /* descriptors from AGX_SYSTEMD_FIRST_FD on that are ours */
};
#define AGX_SYSTEMD_FIRST_FD 3

/* -AGX_INVALID_ARGUMENT for variables that make no sense. Removes them from the environment. */
int agx_systemd_init(struct agx_systemd *s, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. Does not close the descriptors. */
void agx_systemd_done(struct agx_systemd *s);

/* "READY=1", "STOPPING=1". Nothing where nobody listens; a manager that cannot be told is none of
 * our clients' concern: -code for the log. */
int agx_systemd_notify(const struct agx_systemd *s, const char *state,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif

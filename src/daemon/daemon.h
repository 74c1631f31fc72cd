/*
 * daemon.h: all subsystems of agentixd, opened in order, run, and closed in the reverse order.
 *
 *     lock, log, loop, store, images, backend, manager, server with its services, sockets, ready
 *
 * Nothing is touched before the lock is held. Clients can connect once everything else is open.
 */
#ifndef AGX_DAEMON_DAEMON_H
#define AGX_DAEMON_DAEMON_H

#include "daemon/backend_config.h"
#include "daemon/background.h"
#include "daemon/config.h"
#include "daemon/docker_setup.h"
#include "daemon/file_layout.h"
#include "daemon/native_setup.h"
#include "daemon/systemd.h"

struct agx_backend_kind;

struct agx_daemon_options {
    const struct agx_config *config;
    const struct agx_file_layout *layout;
    const struct agx_file_layout_agbox *agbox; /* NULL: not in compatibility mode */
    const struct agx_systemd *systemd;
    const struct agx_backend_kind *const *backends; /* to choose from, and NULL */
    const struct agx_backend_config *backend;       /* of whichever backend */
    const struct agx_docker_setup *docker;
    const struct agx_docker_env *docker_env; /* also used for images */
    const struct agx_native_setup *native;
    struct agx_background *background;
    const char *home; /* replaces "~" in clients' paths; absolute */
    bool log_to_file; /* else to stderr */
};

/* Returns after a signal asked for shutdown, or with the error of a failed start; *ret_held
 * is set when another daemon holds the lock. A second signal and the shutdown's time limit exit
 * the process directly. */
int agx_daemon_run(const struct agx_daemon_options *o, bool *ret_held,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif

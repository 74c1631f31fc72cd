/*
 * rootless.h: a daemon without root enters namespaces in which it is root. A process of their own
 * (`agentix-init --hold`) keeps them alive as long as sandboxes run, also without a daemon.
 *
 *     agx_rootless_enter(&r, &config, err);    with one thread, before anything else is opened
 *     agx_rootless_leave(&r);
 *
 * Inside, id 0 is the daemon's user, and AGX_IDMAP_IDS more ids come from /etc/subuid and
 * /etc/subgid (base/idmap.h). Only the user and mount namespaces are entered: paths, network and
 * pids stay the host's. A separate network namespace holds the host's end of the sandboxes' links,
 * and their rules.
 */
#ifndef AGX_BACKEND_NATIVE_ROOTLESS_H
#define AGX_BACKEND_NATIVE_ROOTLESS_H

#include "backend/proc.h"
#include "base/idmap.h"

struct agx_rootless_config {
    const char *init_path; /* agentix-init */
    const char *dir;       /* absolute; the file `rootless` in it records that process */
};

struct agx_rootless {
    struct agx_idmap idmap;
    int net_fd; /* the network namespace of links and rules */
    int pidfd;  /* of that process */
    bool ours;  /* our child */
    bool empty; /* no sandbox runs: set for new namespaces, later by the backend's close */
    int dir_fd; /* directory of the record */
};

#define AGX_ROOTLESS_INIT                                                                          \
    {                                                                                              \
        .net_fd = -1, .pidfd = -1, .dir_fd = -1                                                    \
    }

/* -AGX_FAILED_PRECONDITION where the host forbids it, naming the setting and what helps. */
int agx_rootless_enter(struct agx_rootless *r, const struct agx_rootless_config *c,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Ends that process if the backend left nothing running. Accepts one that was never entered. */
void agx_rootless_leave(struct agx_rootless *r);

#endif

/*
 * rootless.h: a daemon that is not root: the namespaces that it enters, in which it is. Their own
 * process (`agentix-init --hold`) keeps them for as long as sandboxes live, also without a daemon.
 *
 *     agx_rootless_enter(&r, &config, err);    one thread, before anything else is opened
 *     agx_rootless_leave(&r);
 *
 * Inside, id 0 is the daemon's user and AGX_IDMAP_IDS more are those that /etc/subuid and
 * /etc/subgid give him (base/idmap.h). Paths, the network and process numbers are the host's: only
 * the user and mount namespaces are entered. A network namespace takes the host's part for
 * sandboxes: their links and rules are there.
 */
#ifndef AGX_BACKEND_NATIVE_ROOTLESS_H
#define AGX_BACKEND_NATIVE_ROOTLESS_H

#include "backend/native/proc.h"
#include "base/idmap.h"

struct agx_rootless_config {
    const char *init_path; /* agentix-init */
    const char *dir;       /* absolute: remembers that process, in the file `rootless` */
};

struct agx_rootless {
    struct agx_idmap idmap;
    int net_fd; /* the network namespace of links and rules */
    int pidfd;  /* of that process */
    bool ours;  /* our child */
    bool empty; /* no sandbox runs: known of namespaces that are new, then by the backend's end */
    int dir_fd; /* has the record */
};

#define AGX_ROOTLESS_INIT                                                                          \
    {                                                                                              \
        .net_fd = -1, .pidfd = -1, .dir_fd = -1                                                    \
    }

/* -AGX_FAILED_PRECONDITION where the host forbids it, with the setting and what helps. */
int agx_rootless_enter(struct agx_rootless *r, const struct agx_rootless_config *c,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Ends that process when the backend left nothing that runs. What was never entered is accepted. */
void agx_rootless_leave(struct agx_rootless *r);

#endif

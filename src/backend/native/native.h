/*
 * native.h: the native backend, which runs sandboxes without a container engine: `--backend
 * native`. docs/design/native.md
 *
 * A sandbox is a directory (boxdirs.h), a namespace set (nsset.h), a cgroup (cgroup.h) and an
 * agentix-init process for itself and for each companion. All that a restarted daemon needs to know
 * is in the directory.
 */
#ifndef AGX_BACKEND_NATIVE_NATIVE_H
#define AGX_BACKEND_NATIVE_NATIVE_H

#include "backend/backend.h"
#include "backend/config.h"
#include "backend/native/rootless.h"
#include "base/limits.h"

struct agx_images;
struct agx_puller;

/* Strings are borrowed for the call of open; images and puller must outlive the backend. */
struct agx_native_config {
    struct agx_backend_config common; /* compat: user and environment */
    const char *data_dir; /* absolute: ours is "native" in it; has the file `instance` */
    const char *run_dir;  /* absolute: for what need not survive a boot */
    const char *init_path, *unpack_path, *forward_path; /* our programs; absolute */
    struct agx_images *images;
    struct agx_puller *puller;
    const char *pool;              /* addresses of our networks, as a CIDR */
    uint32_t id_base;              /* of the first range of ids */
    struct agx_rootless *rootless; /* NULL: the daemon is root */
    unsigned ready;                /* spare namespace sets for creates */
    uint32_t pids;                 /* processes in one sandbox or companion */
};

#define AGX_NATIVE_CONFIG_INIT                                                                     \
    {                                                                                              \
        .pool = AGX_SUBNETS_POOL, .id_base = AGX_NSSET_ID_BASE, .ready = AGX_NSSET_READY,          \
        .pids = AGX_NATIVE_PIDS                                                                    \
    }

/*
 * Sandboxes of earlier daemons are found after this call: operations wait for it.
 * -AGX_FAILED_PRECONDITION, with advice, where the host cannot run sandboxes: no root, no cgroups,
 * no firewall.
 */
int agx_backend_native_open(struct agx_loop *l, const struct agx_native_config *c,
                            struct agx_backend **ret_backend,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * docker_internal.h: the Docker backend's object, shared by its files.
 *
 *     docker.c             open, close, the calls that are no operations
 *     calls.c              engine calls, side by side, as work of an operation
 *     docker_op.c          operations that the daemon asks for (backend/sandbox_op.h)
 *     box.c                a sandbox that we know: its commands, and how its init is found
 *     inventory.c          what the engine has of a sandbox, or of all
 *     op_up.c              create, resume, revive: from what is there to a sandbox that runs
 *     up_make.c            ... the part of create that makes it, and its undoing
 *     up_egress_names.c    ... the names in its egress list
 *     up_fail.c            ... its errors, with the container that they are about
 *     up_copy.c            ... what is copied into it
 *     up_rejoin.c          ... the part of resume for a network that is gone
 *     post_start.c         ... and post-start commands, which run on their own
 *     post_start_record.c  ... also after a restart
 *     op_stop.c            stop, halt
 *     op_delete.c          delete, and the removal that others use
 *     state_query.c        looks at one sandbox and at all
 *     resource_usage.c     resource usage of one sandbox
 *     info.c               the engine's abilities, and what is refused without them
 *     firewall_networks.c  networks in the firewall
 *     egress_dns.c         ... with egress lists: the egress watch
 *     spare_networks.c     spare networks
 *     dup_networks.c       duplicate networks of a sandbox, which are not used
 */
#ifndef AGX_BACKEND_DOCKER_DOCKER_INTERNAL_H
#define AGX_BACKEND_DOCKER_DOCKER_INTERNAL_H

#include "backend/docker/api/events.h"
#include "backend/docker/box.h"
#include "backend/docker/docker.h"
#include "backend/docker/docker_op.h"
#include "backend/docker/names.h"
#include "backend/docker/pull.h"
#include "backend/files/host_view.h"
#include "backend/net/firewall.h"
#include "backend/net/resolve.h"
#include "backend/net/subnets.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "loop/job.h"

struct agx_docker_spare_networks;

/* The peer's clients look for the word "Prerequisites". */
#define AGX_DOCKER_NO_DISK_LIMIT                                                                   \
    "disk_limit: the engine cannot limit a container's disk here. Prerequisites: overlay2 on xfs " \
    "that is mounted with prjquota; see 'docker info' and 'findmnt -T /var/lib/docker'"

/* The engine's abilities; unknown before the first answer. */
struct agx_docker_info {
    bool known, has_nvidia, has_disk_limits;
    char driver[32];
};

struct agx_docker {
    struct agx_backend base;
    struct agx_op_group operations;
    struct agx_docker_maker maker;
    char instance[AGX_UUID_TEXT_SIZE];
    char *init_path, *state_dir;
    struct agx_host_view_host host;
    struct agx_pool *copies_pool;    /* reads the sources of copies */
    enum agx_docker_control control; /* of new sandboxes; never AUTO */
    uint32_t pids, host_uid, host_gid;
    struct agx_docker_info info;
    bool has_pool;
    struct agx_subnets subnets;
    struct agx_docker_engine *engine;
    struct agx_docker_puller *puller;
    struct agx_docker_events *events;
    struct agx_firewall *firewall; /* NULL: isolation is off, or impossible */
    struct agx_resolver *resolver; /* open whenever the firewall is */
    struct agx_map egress_dns;     /* egress lists, by sandbox id */
    bool firewall_synced;
    bool cannot_isolate;            /* it is required, and the engine is on another machine */
    struct agx_op *syncing;         /* brings the firewall in line with what there is */
    struct agx_list firewall_waits; /* of struct agx_docker_firewalling: for its end */
    unsigned networks_ready;        /* that are kept */
    struct agx_docker_spare_networks *spare_networks; /* NULL: none is, or not yet */
    bool spare_begun;          /* those of an earlier daemon are looked for once */
    struct agx_map boxes;      /* by sandbox id */
    unsigned n_open;           /* init clients, the firewall, the close itself */
    bool was_away;             /* the engine did not answer meanwhile */
    bool post_starts_restored; /* those of an earlier daemon go on */
    agx_done_fn closed;
    void *closed_user;
};

static inline struct agx_docker *agx_docker_of(struct agx_backend *b)
{
    return container_of(b, struct agx_docker, base);
}

/* Whose operation it is. */
static inline struct agx_docker *agx_docker_by(const struct agx_op *op)
{
    return container_of(op->group, struct agx_docker, operations);
}

/* Something that keeps a closed backend alive is gone: an operation, an init client. */
void agx_docker_released(struct agx_docker *d);

/* ---- op_delete.c ---- */

struct agx_docker_removal {
    const char *sandbox_id;
    const char *network; /* a spare network taken for it, besides that of its containers; or NULL */
    uint64_t grace_ms, deadline_ms;
};

/* Removes all that the engine has of a sandbox, and its isolation. `done` follows once, with what
 * could not be removed. Strings are copied. */
struct agx_op *agx_docker_remove(struct agx_docker *d, const struct agx_docker_removal *q,
                                 agx_done_fn done, void *user);

/* ---- info.c ---- */

void agx_docker_info_ask(struct agx_docker *d);
/* The backend's `check`. */
/* -AGX_FAILED_PRECONDITION for a sandbox that would run without the required isolation. */
int agx_docker_check_isolation(const struct agx_docker *d, const struct agx_spec *spec,
                               struct agx_error **err) AGX_MUST_CHECK;
int agx_docker_check(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                     struct agx_error **err) AGX_MUST_CHECK;

/* ---- state_query.c ---- */

int agx_docker_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;

/* ---- resource_usage.c ---- */

int agx_docker_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                     agx_backend_usage_fn use, agx_done_fn done, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

#endif

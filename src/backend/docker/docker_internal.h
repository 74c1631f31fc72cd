/*
 * docker_internal.h: the Docker backend's object, shared by its files.
 *
 *     docker.c    open, close, the calls that are no operations
 *     ask.c       engine calls, side by side, as work of an operation
 *     task.c      what the daemon asks for, and the operation that does it (backend/task.h)
 *     box.c       a sandbox that we know: its commands, and how its init is found
 *     census.c    what the engine has of a sandbox, or of all
 *     op_up.c     create, resume, revive: from what is there to a sandbox that runs
 *     op_make.c   ... the part of create that makes it, and its undoing
 *     op_names.c  ... the names in its egress list
 *     op_part.c   ... its containers, in messages
 *     copy.c      ... what is copied into it
 *     op_rejoin.c ... the part of resume for a network that is gone
 *     after.c     ... and post-start commands, which run on their own
 *     after_note.c ... also after a restart
 *     op_stop.c   stop, halt
 *     op_delete.c delete, and the removal that others use
 *     look.c      looks at one sandbox and at all
 *     use.c       resource usage of one sandbox
 *     info.c      the engine's abilities, and what is refused without them
 *     isolate.c   networks in the firewall
 *     guard.c     ... with egress lists: the egress watch
 *     ready.c     spare networks
 *     twins.c     duplicate networks of a sandbox, which are not used
 */
#ifndef AGX_BACKEND_DOCKER_INTERNAL_H
#define AGX_BACKEND_DOCKER_INTERNAL_H

#include "backend/docker/box.h"
#include "backend/docker/docker.h"
#include "backend/docker/events.h"
#include "backend/docker/names.h"
#include "backend/docker/pull.h"
#include "backend/docker/task.h"
#include "backend/fence.h"
#include "backend/resolve.h"
#include "backend/shown.h"
#include "backend/subnets.h"
#include "base/list.h"
#include "base/map.h"
#include "loop/job.h"
#include "base/uuid.h"

struct agx_docker_ready;

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
    struct agx_shown_host host;
    struct agx_pool *copies_pool;    /* reads the sources of copies */
    enum agx_docker_control control; /* of new sandboxes; never AUTO */
    uint32_t pids, host_uid, host_gid;
    struct agx_docker_info info;
    bool has_pool;
    struct agx_subnets subnets;
    struct agx_docker_engine *engine;
    struct agx_docker_puller *puller;
    struct agx_docker_events *events;
    struct agx_fence *fence;       /* NULL: isolation is off, or impossible */
    struct agx_resolver *resolver; /* open whenever the firewall is */
    struct agx_map guards;         /* egress lists, by sandbox id */
    bool fence_synced;
    bool cannot_isolate;            /* it is required, and the engine is on another machine */
    struct agx_op *syncing;         /* brings the fence in line with what there is */
    struct agx_list fence_waits;    /* of struct agx_docker_fencing: for its end */
    unsigned networks_ready;        /* that are kept */
    struct agx_docker_ready *ready; /* NULL: none is, or not yet */
    bool ready_begun;               /* those of an earlier daemon are looked for once */
    struct agx_map boxes;           /* by sandbox id */
    unsigned n_open;                /* attends, the fence, the close itself */
    bool was_away;                  /* the engine did not answer meanwhile */
    bool afters_restored;           /* those of an earlier daemon go on */
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

/* Something that keeps a closed backend alive is gone: an operation, an attend. */
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

/* ---- look.c ---- */

int agx_docker_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;

/* ---- use.c ---- */

int agx_docker_use(struct agx_backend *b, const struct agx_sandbox *sandbox, agx_backend_use_fn use,
                   agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif

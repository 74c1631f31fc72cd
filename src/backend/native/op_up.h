/* op_up.h: the operation that brings a sandbox up; shared by op_up.c and up_*.c. */
#ifndef AGX_BACKEND_NATIVE_OP_UP_H
#define AGX_BACKEND_NATIVE_OP_UP_H

#include "backend/files/copies.h"
#include "backend/native/launch.h"
#include "backend/native/native_internal.h"

/*
 *     AWAIT --> SCAN --> [CLEAR] --> NAMES --> MAKE --> PREPARE --> LAUNCH
 *                 |                                                   |
 *                 |    STAT and UNPACK for each copy, MADE, GO <------+
 *                 |                                   |
 *                 |                                   +--> FORWARD --> REACH --> done
 *                 +--> it runs --------------------------------------^
 *
 * A failure from MAKE on leads to UNDO.
 *
 * CLEAR removes a half-made sandbox, or stops what is left of one before a restart. A failed create
 * leaves nothing; a failed resume leaves the files and nothing that runs.
 */
enum {
    UP_DONE = AGX_OP_DONE,
    UP_AWAIT,
    UP_SCAN,
    UP_CLEAR,
    UP_NAMES,
    UP_MAKE,
    UP_PREPARE,
    UP_LAUNCH,
    UP_STAT,
    UP_UNPACK,
    UP_MADE,
    UP_GO,
    UP_FORWARD,
    UP_REACH,
    UP_UNDO,
};

struct agx_native_unpack;

/* The primary comes first, companions follow in the order of the spec. */
struct agx_native_up_part {
    struct agx_native_up *up;
    struct agx_puller_want *want; /* its image, during the search */
    struct agx_image *image;      /* a reference */
    struct agx_cgroup_entry cgroup;
    struct agx_launch *launch;
    bool runs;  /* it is running already */
    bool waits; /* its root is complete, and it waits to be told to go on: no state waits for it */
    struct agx_error *failed; /* why a companion failed, until it is reported; for one that waits */
};

struct agx_native_up {
    struct agx_sandbox_op task;
    struct agx_native *native;
    struct agx_native_box *box;
    struct agx_native_up_part *parts;
    size_t n_parts;
    bool makes;  /* it is being created: a failure removes it */
    bool mends;  /* the primary runs: only stopped companions are started */
    bool undoes; /* a failure must end processes of the box */
    struct agx_native_downing *downing;
    struct agx_nsset_op *nsset_op;
    struct agx_nsset *nsset;
    struct agx_pasta_op *pasta_op;
    struct agx_nsset_repair *nsset_repair; /* for companions, of the box's namespace set */
    struct agx_host_view_job *host_view_job;
    struct agx_host_view host_view;
    struct agx_resolve *resolve; /* while NAMES waits for it */
    struct agx_words egress, hosts;
    size_t copy;        /* index of the current copy of the spec; past the end: the tools' files */
    struct agx_buf tar; /* the tools' files */
    enum agx_copies_target copy_target;
    struct agx_native_unpack *unpack;
    struct agx_forward_sockets sockets; /* bound to its ports, until they are forwarded */
    char dns[64];                       /* server that a forwarder asks for it; "": it asks
                                         * itself */
    unsigned forwarding;                /* forwarders still to start */
    bool has_disks;                     /* some disks are limited: settled once it runs */
    bool recorded;                      /* its processes are in the record */
    uint64_t reach_until_ms;
};

static inline struct agx_native_up *agx_native_up_of(struct agx_op *op)
{
    return container_of(agx_sandbox_op_of(op), struct agx_native_up, task);
}

/* egress_dns.c */
int agx_native_up_enter_names(struct agx_op *op, struct agx_error **err);
void agx_native_up_cancel_names(struct agx_native_up *up);
/* up_make.c */
int agx_native_up_enter_make(struct agx_op *op, struct agx_error **err);
int agx_native_up_enter_prepare(struct agx_op *op, struct agx_error **err);
void agx_native_up_cancel_make(struct agx_native_up *up);
/* A namespace set that no box has taken; frees its ids. */
void agx_native_up_drop_nsset(struct agx_native_up *up);
/* up_start.c */
int agx_native_up_enter_launch(struct agx_op *op, struct agx_error **err);
void agx_native_up_cancel_launch(struct agx_native_up *up);
/* up_files.c: a state's: packs the tools' files as a tar for the sandbox's user. */
int agx_native_up_pack_files(struct agx_native_up *up, struct agx_error **err) AGX_MUST_CHECK;
/* up_copy.c */
/* The number of copies into a new sandbox: the spec's, and the tools' files. */
static inline size_t agx_native_up_copies(const struct agx_native_up *up)
{
    return !up->makes ? 0
                      : up->task.sandbox.spec.copies_len + (up->host_view.files.len > 0 ? 1 : 0);
}
int agx_native_up_enter_stat(struct agx_op *op, struct agx_error **err);
int agx_native_up_enter_unpack(struct agx_op *op, struct agx_error **err);
int agx_native_up_enter_made(struct agx_op *op, struct agx_error **err);
int agx_native_up_enter_go(struct agx_op *op, struct agx_error **err);
void agx_native_up_cancel_unpack(struct agx_native_up *up);
/* up_forward.c */
int agx_native_up_enter_forward(struct agx_op *op, struct agx_error **err);
void agx_native_up_cancel_forward(struct agx_native_up *up);
/* Writes the box's record, on a thread; the state waits for it. */
int agx_native_up_record(struct agx_native_up *up, struct agx_error **err) AGX_MUST_CHECK;

#endif

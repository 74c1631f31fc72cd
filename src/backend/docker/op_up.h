/* op_up.h: the operation that brings a sandbox up; shared by op_up.c and its states, up_*.c. */
#ifndef AGX_BACKEND_DOCKER_OP_UP_H
#define AGX_BACKEND_DOCKER_OP_UP_H

#include "backend/docker/firewall_networks.h"
#include "backend/docker/inventory.h"
#include "backend/files/copies.h"

/*
 *   resume, revive, and a create of a sandbox that was started before:
 *
 *     SCAN --> FIREWALL --> START --> REACH --> done      (a resume that fails: UNDO,
 *                |         ^                                  what it started is stopped)
 *                +-REJOIN--+   its network was pruned and is made again
 *
 *   any other create; one that fails leaves nothing behind:
 *
 *     SCAN --> [CLEAN] --> NAMES --> MAKE --> STAT <--> UPLOAD
 *                                      |       |   \
 *                                      |       |    +--> START --> REACH --> done
 *                                      |       |           |         |
 *                                      +-------+-----------+---------+--> UNDO --> done
 *
 * Copies are made before the first start, so a primary that was ever started is complete.
 */
enum {
    UP_DONE = AGX_OP_DONE,
    UP_SCAN,
    UP_CLEAN,
    UP_NAMES,
    UP_MAKE,
    UP_STAT,
    UP_UPLOAD,
    UP_FIREWALL,
    UP_REJOIN,
    UP_START,
    UP_REACH,
    UP_UNDO,
};

/* One container: the primary comes first, companions follow in the order of the spec. */
struct agx_docker_part {
    struct agx_docker_up *up;
    char *id; /* NULL: does not exist */
    enum agx_docker_status status;
    struct agx_docker_want *want;  /* its image, during the search */
    struct agx_docker_image image; /* for a container that is made */
    struct agx_error *failed;      /* why a companion failed, until it is reported */
};

struct agx_docker_up {
    struct agx_sandbox_op task;
    struct agx_docker_box *box;
    struct agx_docker_names names;
    struct agx_docker_part *parts;
    size_t n_parts;
    struct agx_docker_inventory found;
    bool makes;      /* it is being created: a failure is undone */
    unsigned rounds; /* tries that found a name taken */
    struct agx_host_view_job *plan;
    struct agx_host_view host_view;
    struct agx_op *removal;
    struct agx_docker_net net;
    char *egress;                /* the spec's list, with the addresses of its names; NULL: none */
    struct agx_resolve *resolve; /* while NAMES waits for it */
    bool resolved;
    struct agx_words hosts; /* names and addresses for its hosts file */
    unsigned net_tries;
    struct agx_docker_firewalling *firewalling;
    size_t copy; /* index of the current copy of the spec */
    enum agx_copies_target copy_target;
    struct agx_copies *copies;
    struct agx_buf tar; /* the tools' files, while they are uploaded */
    size_t tar_at;
    uint64_t reach_until_ms;
    bool looked; /* since its main process was started */
};

static inline struct agx_docker_up *agx_docker_up_of(struct agx_op *op)
{
    return container_of(agx_sandbox_op_of(op), struct agx_docker_up, task);
}

/* The name of a part in messages: "sandbox 'web-1'", "companion 'db'". Returns `out`. */
char *agx_docker_part_title(const struct agx_docker_up *up, size_t part, char *out, size_t size);

/* A part failed: a primary fails the operation, a companion is reported. Takes the error. */
void agx_docker_part_fail(struct agx_docker_up *up, size_t part, struct agx_error *error);

/* The network exists; it is added to the firewall before anything starts. */
void agx_docker_up_firewall(struct agx_docker_up *up);

/* up_egress_names.c */
int agx_docker_up_enter_names(struct agx_op *op, struct agx_error **err);
void agx_docker_up_cancel_names(struct agx_docker_up *up);

/* up_make.c: its states. */
int agx_docker_up_enter_clean(struct agx_op *op, struct agx_error **err);
int agx_docker_up_enter_make(struct agx_op *op, struct agx_error **err);
/* Begins to remove what was made; the state waits for it. */
void agx_docker_up_unmake(struct agx_docker_up *up);
/* Begins to make the network, which is then added to the firewall. */
void agx_docker_up_make_network(struct agx_docker_up *up);
/*
 * Requests of an earlier daemon may be carried out after we looked at the engine. Network names are
 * not unique: a second one may appear. A half-made container that it removed may disappear after we
 * have found it started. And a spare network may have been pruned. True: this is a create, and the
 * error, which is then taken, means such a case: all is made again.
 */
bool agx_docker_up_again(struct agx_docker_up *up, struct agx_error **error);
/* There are two networks of its name, of which at most one is in use. True: the error, which is
 * then taken, means that, and FIREWALL follows again when only one is left. */
bool agx_docker_up_part_dup_networks(struct agx_docker_up *up, struct agx_error **error);
/* up_rejoin.c */
int agx_docker_up_enter_rejoin(struct agx_op *op, struct agx_error **err);

/* up_tool_files.c: a state's: uploads the files of builtin tools into the new primary. */
int agx_docker_up_give_files(struct agx_docker_up *up, struct agx_error **err) AGX_MUST_CHECK;
/* File mode bits in Go's encoding, which the engine uses. */
#define AGX_GO_MODE_DIR (INT64_C(1) << 31)
#define AGX_GO_MODE_SYMLINK (INT64_C(1) << 27)

/* up_copy.c */
/* Parses the engine's description of a path, a header with base64 of JSON: name, size, mode,
 * linkTarget. */
int agx_docker_up_read_stat(const struct agx_docker_answer *answer, int64_t *ret_mode,
                            char **ret_link, struct agx_error **err) AGX_MUST_CHECK;
int agx_docker_up_enter_stat(struct agx_op *op, struct agx_error **err);
int agx_docker_up_enter_upload(struct agx_op *op, struct agx_error **err);
void agx_docker_up_cancel_make(struct agx_docker_up *up);

#endif

/* op_up.h: the operation that brings a sandbox up, which op_up.c and op_make.c share. */
#ifndef AGX_BACKEND_DOCKER_OP_UP_H
#define AGX_BACKEND_DOCKER_OP_UP_H

#include "backend/copies.h"
#include "backend/docker/census.h"
#include "backend/docker/isolate.h"

/*
 *   resume, revive, and a create of what was started before:
 *
 *     SCAN --> FENCE --> START --> REACH --> done      (a resume that fails: UNDO, what it started
 *                |         ^                            is stopped)
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
 * Copies come before the first start, so a primary that was ever started is complete.
 */
enum {
    UP_DONE = AGX_OP_DONE,
    UP_SCAN,
    UP_CLEAN,
    UP_NAMES,
    UP_MAKE,
    UP_STAT,
    UP_UPLOAD,
    UP_FENCE,
    UP_REJOIN,
    UP_START,
    UP_REACH,
    UP_UNDO,
};

/* One container: the primary is the first, companions follow in the order of the spec. */
struct agx_docker_part {
    struct agx_docker_up *up;
    char *id; /* NULL: not there */
    enum agx_docker_status status;
    struct agx_docker_want *want;  /* its image, while it is looked for */
    struct agx_docker_image image; /* of one that is made */
    struct agx_error *failed;      /* of a companion, until it is told */
};

struct agx_docker_up {
    struct agx_task task;
    struct agx_docker_box *box;
    struct agx_docker_names names;
    struct agx_docker_part *parts;
    size_t n_parts;
    struct agx_docker_census found;
    bool makes;      /* it is being made: a failure is undone */
    unsigned rounds; /* that found a name taken */
    struct agx_shown_job *plan;
    struct agx_shown shown;
    struct agx_step *removal;
    struct agx_docker_net net;
    char *egress; /* the spec's list, with addresses that its names had; NULL: none */
    struct agx_resolve *resolve; /* while NAMES waits for it */
    bool resolved;
    struct agx_words hosts; /* names and addresses for its hosts file */
    unsigned net_tries;
    struct agx_docker_fencing *fencing;
    size_t copy; /* which of the spec's copies is being made */
    enum agx_copies_target copy_target;
    struct agx_copies *copies;
    struct agx_buf tar; /* of the tools' files, while it is uploaded */
    size_t tar_at;
    uint64_t reach_until_ms;
    bool looked; /* since its main process was let go */
};

static inline struct agx_docker_up *agx_docker_up_of(struct agx_step *s)
{
    return container_of(agx_task_of(s), struct agx_docker_up, task);
}

/* How a part is called in messages: "sandbox 'web-1'", "companion 'db'". Returns `out`. */
char *agx_docker_part_title(const struct agx_docker_up *up, size_t part, char *out, size_t size);

/* A part cannot be: the primary fails the operation, a companion is reported. Takes the error. */
void agx_docker_part_fail(struct agx_docker_up *up, size_t part, struct agx_error *error);

/* The network stands; it is fenced before anything starts. */
void agx_docker_up_fence(struct agx_docker_up *up);

/* op_names.c */
int agx_docker_up_enter_names(struct agx_op *op, struct agx_error **err);
void agx_docker_up_cancel_names(struct agx_docker_up *up);

/* op_make.c: its states. */
int agx_docker_up_enter_clean(struct agx_op *op, struct agx_error **err);
int agx_docker_up_enter_make(struct agx_op *op, struct agx_error **err);
/* Begins to remove what was made; the state waits for it. */
void agx_docker_up_unmake(struct agx_docker_up *up);
/* op_rejoin.c */
int agx_docker_up_enter_rejoin(struct agx_op *op, struct agx_error **err);
/* Begins to make the network, which is fenced then. */
void agx_docker_up_make_network(struct agx_docker_up *up);
/*
 * What an earlier daemon had asked for when it died may be done after we have looked. Names of
 * networks are not unique: a second one may come. A container that it removed, because it was
 * half-made, may go when we have found it started. And a network that was kept ready may have been
 * pruned. True: it is a create, and the error, which is taken then, says so: all is made again.
 */
bool agx_docker_up_again(struct agx_docker_up *up, struct agx_error **error);
/* There are two networks of its name, of which one is in use or none. True: the error, which is
 * taken then, says so, and FENCE follows again when only one is left. */
bool agx_docker_up_part_twins(struct agx_docker_up *up, struct agx_error **error);
/* op_files.c: a state's: the files of builtin tools are put into the primary, which was made. */
int agx_docker_up_give_files(struct agx_docker_up *up, struct agx_error **err) AGX_MUST_CHECK;
/* Bits of a file's mode as the engine's language counts them. */
#define AGX_GO_MODE_DIR (INT64_C(1) << 31)
#define AGX_GO_MODE_SYMLINK (INT64_C(1) << 27)

/* copy.c */
/* What the engine says of a path, in a header with base64 of JSON: name, size, mode, linkTarget. */
int agx_docker_up_read_stat(const struct agx_docker_answer *answer, int64_t *ret_mode,
                            char **ret_link, struct agx_error **err) AGX_MUST_CHECK;
int agx_docker_up_enter_stat(struct agx_op *op, struct agx_error **err);
int agx_docker_up_enter_upload(struct agx_op *op, struct agx_error **err);
void agx_docker_up_cancel_make(struct agx_docker_up *up);

#endif

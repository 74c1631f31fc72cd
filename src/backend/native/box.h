/*
 * box.h: a sandbox that the native backend knows: its record, the processes of its parts, its
 * commands, and the operations on all of it.
 */
#ifndef AGX_BACKEND_NATIVE_BOX_H
#define AGX_BACKEND_NATIVE_BOX_H

#include "backend/exec/init_client.h"
#include "backend/exec/post_start.h"
#include "backend/native/forward.h"
#include "backend/native/net/nsset.h"
#include "backend/native/state.h"
#include "backend/net/resolve.h"
#include "backend/sandbox_op.h"
#include "core/ident.h"

struct agx_image;
struct agx_native;
struct agx_native_downing;
struct agx_native_forward_keep;
struct agx_native_watch;

/* The primary or a companion, with its process. */
struct agx_native_part {
    struct agx_native_box *box;
    struct agx_native_watch *watch; /* while its PID 1 runs; else NULL */
    struct agx_image *image;        /* pinned; NULL: unknown */
    struct agx_forward *names;      /* its name server forwarder; NULL: it asks the servers
                                     * itself */
    bool has_main;                  /* a program of the image runs in it; else init idles */
    int exit_code;                  /* of its last PID 1; -1: unknown */
};

struct agx_native_box {
    struct agx_native *native;
    char *id;
    bool known; /* it exists: `state` and `parts` are valid */
    struct agx_native_state state;
    struct agx_native_part *parts;        /* as many as in `state` */
    struct agx_nsset *nsset;              /* while anything runs */
    struct agx_forward *ports;            /* the forwarder of its ports, if it has any */
    struct agx_init_client *init_client;  /* the init client: commands of the primary */
    bool init_is_up;                      /* the init client is up */
    struct agx_sandbox_op *task;          /* the current operation, also one that was given up; or
                                         * NULL */
    struct agx_native_downing *downing;   /* it is being stopped or removed; or NULL */
    struct agx_resolve *egress_dns;       /* follows the names of its egress list */
    struct agx_post_starts afters;        /* what its companions still have to do */
    struct agx_native_forward_keep *keep; /* starts forwarders again; or NULL */
    unsigned forward_keep_tries;          /* in a row, the last of them then */
    uint64_t forward_keep_ms;
    bool unnoted; /* a restarted forwarder is not in the record yet */
    bool unheard; /* a part ended during an operation: news to report after it */
};

/* The box of an operation; not for one that was refused. */
static inline struct agx_native_box *agx_native_box_of(const struct agx_sandbox_op *t)
{
    return container_of(t->slot, struct agx_native_box, task);
}

/* The box of a sandbox; makes one when there is none. */
int agx_native_box_get(struct agx_native *n, const char *sandbox_id,
                       struct agx_native_box **ret_box, struct agx_error **err) AGX_MUST_CHECK;
struct agx_native_box *agx_native_box_find(const struct agx_native *n, const char *sandbox_id);
/* The sandbox exists: takes the record. */
void agx_native_box_know(struct agx_native_box *box, struct agx_native_state *take_state);
/* Nothing is left of the sandbox: its images and ids are free again. */
void agx_native_box_forget(struct agx_native_box *box);
/* Frees the box itself. */
void agx_native_box_drop(struct agx_native_box *box);
/* PID 1 of that part runs; takes the pidfd. */
void agx_native_part_watch(struct agx_native_part *p, int pidfd);
/* Signals its PID 1, if it runs. */
void agx_native_part_signal(struct agx_native_part *p, int signo);
int agx_native_part_pidfd(const struct agx_native_part *p);
static inline bool agx_native_part_runs(const struct agx_native_box *box, size_t part)
{
    return box->known && box->parts[part].watch;
}
/* Any of its parts runs. */
bool agx_native_box_runs(const struct agx_native_box *box);
/* Reports a part that ended by itself. Does nothing during an operation on the box, whose end calls
 * it again. */
void agx_native_box_tell(struct agx_native_box *box);
/* Ends its forwarders. */
void agx_native_box_unforward(struct agx_native_box *box);
/* Connects the init client to the PID 1 of its primary; or takes it down with the error, which is
 * taken. */
int agx_native_box_init_client(struct agx_native_box *box, struct agx_error **err) AGX_MUST_CHECK;
void agx_native_box_down(struct agx_native_box *box, struct agx_error *error);
/* For the end of the backend; the rest follows later. */
void agx_native_box_close(struct agx_native_box *box);
void agx_native_box_free(struct agx_native_box *box);
/* "web-1", or "web-1.2" for its second companion: names of cgroups. */
#define AGX_NATIVE_GROUP_SIZE (AGX_IDENT_MAX + 24)
char *agx_native_group(const char *sandbox_id, size_t part, char out[AGX_NATIVE_GROUP_SIZE]);

/* ---- down.c ---- */

enum agx_native_down { AGX_NATIVE_DOWN_STOP, AGX_NATIVE_DOWN_REMOVE };

struct agx_native_downing;

/*
 * Ends all processes of the box: SIGTERM, the grace period, SIGKILL. Then it removes the namespace
 * set and cgroups and, with REMOVE, the files and the record. `done` follows once, never inside the
 * call. The caller holds the box's operation, or makes sure that there is none.
 */
struct agx_native_downing *agx_native_down_start(struct agx_native_box *box,
                                                 enum agx_native_down what, uint64_t grace_ms,
                                                 agx_done_fn done, void *user);
/* Ends it early: `done` follows. */
void agx_native_down_cancel(struct agx_native_downing *d);
/* A process of the box or its init client has ended. */
void agx_native_down_hear(struct agx_native_downing *d);

/* ---- forward_keep.c ---- */

/* Each starts a forwarder, which is restarted when it ends by itself. The sockets are borrowed.
 * `done` is that of agx_forward_start(). */
int agx_native_forward_ports(struct agx_native_box *box, const struct agx_forward_sockets *sockets,
                             agx_done_fn done, void *user, struct agx_error **err) AGX_MUST_CHECK;
/* For a part whose record names the server to ask. */
int agx_native_forward_names(struct agx_native_part *p, agx_done_fn done, void *user,
                             struct agx_error **err) AGX_MUST_CHECK;
/* Adopts those of an earlier daemon that still run. */
void agx_native_forward_adopt(struct agx_native_box *box);
/* Restarts missing forwarders and writes them to the record. Does nothing during an operation on
 * the box, whose end calls it again. */
void agx_native_forward_keep(struct agx_native_box *box);
/* Makes way for an operation, which is woken when `keep` is NULL. Accepts a box that has none. */
void agx_native_forward_keep_cancel(struct agx_native_box *box);

/* ---- egress_dns.c ---- */

/* Parses the valid entries; `ret` has room for AGX_FIREWALL_EGRESS_MAX. They borrow from `words`.
 */
size_t agx_native_egress_parse(const struct agx_words *words, struct agx_egress *ret);
/* Starts the egress watch: its list follows the names in it while it has a namespace set. Does
 * nothing for a list without names. */
void agx_native_egress_dns(struct agx_native_box *box);

/* ---- post_start.c ---- */

/* Runs on its own from here; does nothing for a companion without such commands. */
void agx_native_post_start_start(struct agx_native_box *box, size_t part,
                                 const struct agx_companion *companion);

#endif

/*
 * box.h: a sandbox that the native backend knows: its record, the processes of its parts, its
 * commands, and what is done to all of it.
 */
#ifndef AGX_BACKEND_NATIVE_BOX_H
#define AGX_BACKEND_NATIVE_BOX_H

#include "backend/attend.h"
#include "backend/native/forward.h"
#include "backend/native/nest.h"
#include "backend/native/state.h"
#include "backend/post_start.h"
#include "backend/resolve.h"
#include "backend/task.h"
#include "core/ident.h"

struct agx_image;
struct agx_native;
struct agx_native_downing;
struct agx_native_tend;
struct agx_native_watch;

/* The primary, or a companion: its process. */
struct agx_native_part {
    struct agx_native_box *box;
    struct agx_native_watch *watch; /* its PID 1 runs; NULL: it does not */
    struct agx_image *image;        /* pinned; NULL: not known */
    struct agx_forward *names;      /* asks for names for it; NULL: it does so itself */
    bool has_main;                  /* something of the image runs in it; else init idles */
    int exit_code;                  /* of its last PID 1; -1: not known */
};

struct agx_native_box {
    struct agx_native *native;
    char *id;
    bool known; /* it is there: `state` counts, and `parts` */
    struct agx_native_state state;
    struct agx_native_part *parts;      /* as many as state has */
    struct agx_nest *nest;              /* while anything runs */
    struct agx_forward *ports;          /* the forwarder of its ports, if it has any */
    struct agx_attend *attend;          /* commands of the primary */
    bool attended;                      /* the attend is up */
    struct agx_task *task;              /* what is done to it, also what was given up; or NULL */
    struct agx_native_downing *downing; /* it is being stopped or removed; or NULL */
    struct agx_resolve *guard;          /* follows the names of its egress list */
    struct agx_post_starts afters;      /* what its companions still have to do */
    struct agx_native_tend *tend;       /* starts forwarders again; or NULL */
    unsigned tend_tries;                /* in a row, the last of them then */
    uint64_t tend_ms;
    bool unnoted; /* a forwarder was started again that is not in the record */
    bool unheard; /* a part ended while something was done to it: news, when that is over */
};

/* What is done to it; not of one that was refused. */
static inline struct agx_native_box *agx_native_box_of(const struct agx_task *t)
{
    return container_of(t->slot, struct agx_native_box, task);
}

/* The box of a sandbox; made when there is none. */
int agx_native_box_get(struct agx_native *n, const char *sandbox_id,
                       struct agx_native_box **ret_box, struct agx_error **err) AGX_MUST_CHECK;
struct agx_native_box *agx_native_box_find(const struct agx_native *n, const char *sandbox_id);
/* It is there: takes the record. */
void agx_native_box_know(struct agx_native_box *box, struct agx_native_state *take_state);
/* Nothing of it is left, or will be found: its images and ids are free again. */
void agx_native_box_forget(struct agx_native_box *box);
/* The box itself goes. */
void agx_native_box_drop(struct agx_native_box *box);
/* PID 1 of that part runs; takes the pidfd. */
void agx_native_part_watch(struct agx_native_part *p, int pidfd);
/* To its PID 1, if it runs. */
void agx_native_part_signal(struct agx_native_part *p, int signo);
int agx_native_part_pidfd(const struct agx_native_part *p);
static inline bool agx_native_part_runs(const struct agx_native_box *box, size_t part)
{
    return box->known && box->parts[part].watch;
}
/* Any of its parts runs. */
bool agx_native_box_runs(const struct agx_native_box *box);
/* News of a part that ended by itself; nothing while something is done to the box: whoever ends
 * that asks again. */
void agx_native_box_tell(struct agx_native_box *box);
/* Its forwarders end. */
void agx_native_box_unforward(struct agx_native_box *box);
/* Its commands are reached in the PID 1 of its primary; or there is none: takes the error. */
int agx_native_box_attend(struct agx_native_box *box, struct agx_error **err) AGX_MUST_CHECK;
void agx_native_box_down(struct agx_native_box *box, struct agx_error *error);
/* For the end of the backend; and later the rest. */
void agx_native_box_close(struct agx_native_box *box);
void agx_native_box_free(struct agx_native_box *box);
/* "web-1", or "web-1.2" of its second companion: names of control groups. */
#define AGX_NATIVE_GROUP_SIZE (AGX_IDENT_MAX + 24)
char *agx_native_group(const char *sandbox_id, size_t part, char out[AGX_NATIVE_GROUP_SIZE]);

/* ---- down.c ---- */

enum agx_native_down { AGX_NATIVE_DOWN_STOP, AGX_NATIVE_DOWN_REMOVE };

struct agx_native_downing;

/*
 * All processes of the box end: TERM, the grace, KILL. Then its nest and control groups go, and
 * with REMOVE its files and the record. `done` follows once, never inside the call. Whoever calls
 * has the box's task, or sees to it that there is none.
 */
struct agx_native_downing *agx_native_down_start(struct agx_native_box *box,
                                                 enum agx_native_down what, uint64_t grace_ms,
                                                 agx_done_fn done, void *user);
/* Ends it early: `done` follows. */
void agx_native_down_cancel(struct agx_native_downing *d);
/* A process of the box has ended, or its attend. */
void agx_native_down_hear(struct agx_native_downing *d);

/* ---- tend.c ---- */

/* Each begins to forward, and is started again when it ends by itself. The sockets are borrowed.
 * `done` is agx_forward_start()'s. */
int agx_native_forward_ports(struct agx_native_box *box, const struct agx_forward_sockets *sockets,
                             agx_done_fn done, void *user, struct agx_error **err) AGX_MUST_CHECK;
/* Of a part whose record says whom to ask. */
int agx_native_forward_names(struct agx_native_part *p, agx_done_fn done, void *user,
                             struct agx_error **err) AGX_MUST_CHECK;
/* Those of an earlier daemon that are still at work. */
void agx_native_forward_adopt(struct agx_native_box *box);
/* If any is missing it will be started, and the record says so. Nothing happens while something is
 * done to the box: whoever ends that asks again. */
void agx_native_tend(struct agx_native_box *box);
/* Gives way to a task, which is woken when `tend` is NULL. Accepts a box without one. */
void agx_native_tend_cancel(struct agx_native_box *box);

/* ---- names.c ---- */

/* The entries that are any; `ret` has room for AGX_FENCE_EGRESS_MAX. They borrow from `words`. */
size_t agx_native_egress_parse(const struct agx_words *words, struct agx_egress *ret);
/* Its list follows its names from now on, while it has a nest; where it has names. */
void agx_native_guard(struct agx_native_box *box);

/* ---- after.c ---- */

/* By itself from here on; nothing happens for a companion without such commands. */
void agx_native_after_start(struct agx_native_box *box, size_t part,
                            const struct agx_companion *companion);

#endif

/*
 * native_internal.h: the object of the native backend, which its files share.
 *
 *     native.c    open, close, the calls that are no operations
 *     load.c      what earlier daemons left: found, adopted, or removed
 *     box.c       a sandbox that we know, and the processes of its parts
 *     task.c      what the daemon asks for, and the operation that does it (backend/task.h)
 *     op_up.c     create, resume, revive: the states
 *     up_make.c   ... images, nest, files
 *     up_start.c  ... processes
 *     up_forward.c ... forwarders of ports and names
 *     tend.c      forwarders that ended by themselves are started again
 *     down.c      stops what runs, and removes it; stop, halt, delete
 *     look.c      looks at one and at all
 *     use.c       what one uses
 *     names.c     names of egress lists
 *     after.c     what companions do afterwards
 *     check.c     what is refused
 */
#ifndef AGX_BACKEND_NATIVE_INTERNAL_H
#define AGX_BACKEND_NATIVE_INTERNAL_H

#include "backend/native/box.h"
#include "backend/native/boxdirs.h"
#include "backend/native/cgroup.h"
#include "backend/native/devices.h"
#include "backend/native/disk.h"
#include "backend/native/native.h"
#include "backend/native/nest.h"
#include "backend/native/pasta.h"
#include "backend/resolve.h"
#include "backend/shown.h"
#include "backend/step.h"
#include "base/map.h"
#include "image/images.h"
#include "image/pull.h"

struct agx_native {
    struct agx_backend base;
    struct agx_steps steps;
    char instance[AGX_UUID_TEXT_SIZE];
    char *dir;    /* <data>/native */
    char *ground; /* the lowest layer of all; NULL: layers have other ids than files of ours */
    char *init_path, *unpack_path, *forward_path;
    struct agx_boxdirs dirs;
    struct agx_disk disk;
    struct agx_shown_host host;
    struct agx_pool *disk_pool; /* our own directories and control groups */
    struct agx_pool *copies_pool;
    struct agx_pool *use_pool;   /* counts files of sandboxes, likewise */
    struct agx_pool *trash_pool; /* removes files, which takes as long as there are many */
    struct agx_images *images;
    struct agx_puller *puller;
    struct agx_nests *nests;
    struct agx_resolver *resolver;
    struct agx_cgroups *cgroups;
    struct agx_devices *devices;
    struct agx_buf seccomp;
    uint32_t pids, host_uid, host_gid;
    struct agx_rootless *rootless; /* NULL: the daemon is root */
    struct agx_pasta *pasta;       /* NULL likewise */
    bool compat;
    bool loaded;                /* all that there is is in `boxes` */
    bool fenced;                /* nests can be taken */
    struct agx_error *unfenced; /* why not; NULL: it is not known yet */
    bool trash_is_full, trash_runs;
    struct agx_map boxes; /* by sandbox id */
    unsigned n_open;      /* steps, attends, handles, pools, the close itself */
    agx_done_fn closed;
    void *closed_user;
};

static inline struct agx_native *agx_native_of(struct agx_backend *b)
{
    return container_of(b, struct agx_native, base);
}

/* Something that keeps a closed backend alive is gone. */
void agx_native_released(struct agx_native *n);
/* For things whose `closed` is an agx_done_fn; `user` is the backend. */
void agx_native_on_closed(void *user, struct agx_error *error);
/* Something was put into the trash: it is emptied, off the path. */
void agx_native_empty_trash(struct agx_native *n);

/* ---- task.c ---- */

int agx_native_task_start(struct agx_backend *b, const struct agx_backend_request *q,
                          const struct agx_backend_hooks *hooks, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;
/* A state that waits until all is loaded and the box is the task's alone; `self` is its number. */
int agx_native_task_await(struct agx_task *t, unsigned self, unsigned then);
/* The `ended` of tasks. */
void agx_native_task_ended(struct agx_step *s, struct agx_error *error);
extern const struct agx_task_verb agx_native_verb_up;   /* CREATE, RESUME, REVIVE */
extern const struct agx_task_verb agx_native_verb_down; /* STOP, HALT, DELETE */

/* ---- load.c ---- */

void agx_native_load(struct agx_native *n);

/* ---- check.c ---- */

int agx_native_check(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                     struct agx_error **err) AGX_MUST_CHECK;
struct agx_native_limits {
    struct agx_cgroup_limits group;
    int64_t disk_bytes; /* 0: no limit */
};
/* The limits of a part, which can be had here. */
int agx_native_limits(const struct agx_native *n, const struct agx_spec *spec, size_t part,
                      struct agx_native_limits *ret, struct agx_error **err) AGX_MUST_CHECK;

/* ---- look.c ---- */

int agx_native_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;

/* ---- use.c ---- */

int agx_native_use(struct agx_backend *b, const struct agx_sandbox *sandbox, agx_backend_use_fn use,
                   agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif

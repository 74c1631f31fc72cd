/*
 * native_internal.h: the native backend's object, shared by its files.
 *
 *     native.c          open, close, the calls that are not operations
 *     load.c            sandboxes of earlier daemons: found, adopted, or removed
 *     box.c             a known sandbox, and the processes of its parts
 *     native_op.c       sandbox operations (backend/sandbox_op.h)
 *     op_up.c           create, resume, revive: the states
 *     up_make.c         ... images, namespace set, files
 *     up_start.c        ... processes
 *     up_forward.c      ... forwarders of ports and names
 *     forward_keep.c    keeping forwarders: restarts those that ended by themselves
 *     down.c            stops what runs, and removes it; stop, halt, delete
 *     state_query.c            looks at one sandbox and at all
 *     resource_usage.c  resource usage of one sandbox
 *     egress_dns.c           names of egress lists
 *     post_start.c      post-start commands of companions
 *     check.c           which specs are refused
 */
#ifndef AGX_BACKEND_NATIVE_NATIVE_INTERNAL_H
#define AGX_BACKEND_NATIVE_NATIVE_INTERNAL_H

#include "backend/files/host_view.h"
#include "backend/native/box.h"
#include "backend/native/boxdirs.h"
#include "backend/native/devices.h"
#include "backend/native/limits/cgroup.h"
#include "backend/native/limits/disk.h"
#include "backend/native/native.h"
#include "backend/native/net/nsset.h"
#include "backend/native/net/pasta.h"
#include "backend/net/resolve.h"
#include "base/map.h"
#include "image/images.h"
#include "image/pull.h"
#include "loop/op.h"

struct agx_native {
    struct agx_backend base;
    struct agx_op_group operations;
    char instance[AGX_UUID_TEXT_SIZE];
    char *dir;    /* <data>/native */
    char *ground; /* the lowest layer; NULL: layers have other ids than our files */
    char *init_path, *unpack_path, *forward_path;
    struct agx_boxdirs dirs;
    struct agx_disk disk;
    struct agx_host_view_host host;
    struct agx_pool *disk_pool; /* our own directories and cgroups */
    struct agx_pool *copies_pool;
    struct agx_pool *usage_pool; /* counts files of sandboxes */
    struct agx_pool *trash_pool; /* removes files, which may take long */
    struct agx_images *images;
    struct agx_puller *puller;
    struct agx_nsset_pool *nssets;
    struct agx_resolver *resolver;
    struct agx_cgroups *cgroups;
    struct agx_devices *devices;
    struct agx_buf seccomp;
    uint32_t pids, host_uid, host_gid;
    struct agx_rootless *rootless; /* NULL: the daemon is root */
    struct agx_pasta *pasta;       /* likewise */
    bool compat;
    bool loaded;                    /* `boxes` is complete */
    bool firewalled;                /* the firewall is in force: namespace sets can be taken */
    struct agx_error *unfirewalled; /* why not; NULL: not known yet */
    bool trash_is_full, trash_runs;
    struct agx_map boxes; /* by sandbox id */
    unsigned n_open;      /* operations, init clients, handles, pools, the close itself */
    agx_done_fn closed;
    void *closed_user;
};

static inline struct agx_native *agx_native_of(struct agx_backend *b)
{
    return container_of(b, struct agx_native, base);
}

/* Something that kept a closed backend alive is gone. */
void agx_native_released(struct agx_native *n);
/* For objects whose `closed` is an agx_done_fn; `user` is the backend. */
void agx_native_on_closed(void *user, struct agx_error *error);
/* Something was put into the trash: empties it, in the background. */
void agx_native_empty_trash(struct agx_native *n);

/* ---- native_op.c ---- */

int agx_native_op_start(struct agx_backend *b, const struct agx_backend_request *q,
                        const struct agx_backend_hooks *hooks, void *user,
                        struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;
/* A state that waits until all is loaded and no other operation has the box; `self` is its
 * number. */
int agx_native_op_await(struct agx_sandbox_op *t, unsigned self, unsigned then);
/* The `finish` of tasks. */
void agx_native_op_ended(struct agx_op *op, struct agx_error *error);
extern const struct agx_sandbox_op_verb agx_native_verb_up;   /* CREATE, RESUME, REVIVE */
extern const struct agx_sandbox_op_verb agx_native_verb_down; /* STOP, HALT, DELETE */

/* ---- load.c ---- */

void agx_native_load(struct agx_native *n);

/* ---- check.c ---- */

int agx_native_check(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                     struct agx_error **err) AGX_MUST_CHECK;
struct agx_native_limits {
    struct agx_cgroup_limits group;
    int64_t disk_bytes; /* 0: no limit */
};
/* The limits of a part, as far as this host supports them. */
int agx_native_limits(const struct agx_native *n, const struct agx_spec *spec, size_t part,
                      struct agx_native_limits *ret, struct agx_error **err) AGX_MUST_CHECK;

/* ---- state_query.c ---- */

int agx_native_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;

/* ---- resource_usage.c ---- */

int agx_native_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                     agx_backend_usage_fn use, agx_done_fn done, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

#endif

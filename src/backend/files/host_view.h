/*
 * host_view.h: the host view of a new primary: mounts, builtin tools, GPUs. Reading the host may
 * block, so a thread does it.
 */
#ifndef AGX_BACKEND_FILES_HOST_VIEW_H
#define AGX_BACKEND_FILES_HOST_VIEW_H

#include "backend/files/gpus.h"
#include "backend/files/tools.h"
#include "core/sandbox.h"
#include "loop/job.h"

struct agx_host_view_job;

/* What a backend keeps for that. */
struct agx_host_view_host {
    struct agx_tools_host tools; /* its strings are in `texts` */
    struct agx_words texts;
    struct agx_sources *sources;
    struct agx_pool *pool; /* the owner's; its threads read the host's files, which may hang */
};

/* Copies everything except `sources`, which are shared; the caller of init sets the pool. After a
 * failure, only done may be called. */
int agx_host_view_host_init(struct agx_host_view_host *h, const struct agx_tools_host *tools,
                            struct agx_sources *sources, struct agx_error **err) AGX_MUST_CHECK;
/* Frees all except the pool. Accepts NULL. */
void agx_host_view_host_done(struct agx_host_view_host *h);

/* The result; the caller moves out what it keeps. */
struct agx_host_view {
    struct agx_binds binds;
    struct agx_pairs envs; /* set by tools */
    struct agx_tool_files files;
    struct agx_gpus gpus;
};

/* Accepts NULL; empty afterwards. */
void agx_host_view_done(struct agx_host_view *s);

/* Adds the variables that describe the host view to the primary: the owner of the host's files,
 * where sockets appear, and those of the tools. `uid` and `gid` are the daemon's. */
int agx_host_view_envs(const struct agx_binds *binds, const struct agx_pairs *tool_envs,
                       uint32_t uid, uint32_t gid, struct agx_pairs *envs,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Called once, never inside start; the callee empties `host_view` and owns `error`. */
typedef void (*agx_host_view_fn)(void *user, struct agx_host_view *host_view,
                                 struct agx_error *error);

/* Does this spec use anything of the host? */
bool agx_host_view_is_needed(const struct agx_spec *spec);

/* For that sandbox. `exec_user` is the user that commands will run as; NULL: any. `makes`: the
 * sandbox is being created, and gets the files of its tools. Writable directories are stored
 * durably in the writables before `found` comes. Everything is copied. */
int agx_host_view_start(const struct agx_host_view_host *h, const struct agx_sandbox *sandbox,
                        const char *exec_user, bool makes, agx_host_view_fn found, void *user,
                        struct agx_host_view_job **ret_job, struct agx_error **err) AGX_MUST_CHECK;

/* `found` is not called any more; the thread may run on for a while. Accepts NULL. */
void agx_host_view_abandon(struct agx_host_view_job *p);

#endif

/*
 * shown.h: the host view of a new primary: mounts, builtin tools, GPUs. Reading the host may block,
 * so a thread does it.
 */
#ifndef AGX_BACKEND_SHOWN_H
#define AGX_BACKEND_SHOWN_H

#include "backend/gpus.h"
#include "backend/tools.h"
#include "core/sandbox.h"
#include "loop/job.h"

struct agx_shown_job;

/* What a backend keeps for that. */
struct agx_shown_host {
    struct agx_tools_host tools; /* its strings are in `texts` */
    struct agx_words texts;
    struct agx_sources *sources;
    struct agx_pool *pool; /* the owner's; its threads read the host's files, which may hang */
};

/* Copies everything except `sources`, which are shared; the caller of init sets the pool. After a
 * failure, only done may be called. */
int agx_shown_host_init(struct agx_shown_host *h, const struct agx_tools_host *tools,
                        struct agx_sources *sources, struct agx_error **err) AGX_MUST_CHECK;
/* Frees all except the pool. Accepts NULL. */
void agx_shown_host_done(struct agx_shown_host *h);

/* The result; the caller moves out what it keeps. */
struct agx_shown {
    struct agx_binds binds;
    struct agx_pairs envs; /* set by tools */
    struct agx_tool_files files;
    struct agx_gpus gpus;
};

/* Accepts NULL; empty afterwards. */
void agx_shown_done(struct agx_shown *s);

/* Adds the variables that describe the host view to the primary: the owner of the host's files,
 * where sockets appear, and those of the tools. `uid` and `gid` are the daemon's. */
int agx_shown_envs(const struct agx_binds *binds, const struct agx_pairs *tool_envs, uint32_t uid,
                   uint32_t gid, struct agx_pairs *envs, struct agx_error **err) AGX_MUST_CHECK;

/* Called once, never inside start; the callee empties `shown` and owns `error`. */
typedef void (*agx_shown_fn)(void *user, struct agx_shown *shown, struct agx_error *error);

/* Does this spec use anything of the host? */
bool agx_shown_is_needed(const struct agx_spec *spec);

/* For that sandbox. `exec_user` is the user that commands will run as; NULL: any. `makes`: the
 * sandbox is being created, and gets the files of its tools. Writable directories are stored
 * durably in the writables before `found` comes. Everything is copied. */
int agx_shown_start(const struct agx_shown_host *h, const struct agx_sandbox *sandbox,
                    const char *exec_user, bool makes, agx_shown_fn found, void *user,
                    struct agx_shown_job **ret_job, struct agx_error **err) AGX_MUST_CHECK;

/* `found` is not called any more; the thread may run on for a while. Accepts NULL. */
void agx_shown_abandon(struct agx_shown_job *p);

#endif

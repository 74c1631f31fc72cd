/*
 * shown.h: what of the host a new primary shows: mounts, builtin tools, GPUs. Looking at the host
 * may block, so a thread does it.
 */
#ifndef AGX_BACKEND_SHOWN_H
#define AGX_BACKEND_SHOWN_H

#include "backend/gpus.h"
#include "backend/tools.h"
#include "core/sandbox.h"
#include "loop/job.h"

struct agx_shown_job;

/* What a backend keeps for it. */
struct agx_shown_host {
    struct agx_tools_host tools; /* its strings are in `texts` */
    struct agx_words texts;
    struct agx_sources *sources;
    struct agx_pool *pool; /* its owner's: looks at the host's files, which may hang */
};

/* All is copied, but for `sources`, which are shared; the pool is set by whoever opens it. After a
 * failure only to be done. */
int agx_shown_host_init(struct agx_shown_host *h, const struct agx_tools_host *tools,
                        struct agx_sources *sources, struct agx_error **err) AGX_MUST_CHECK;
/* But for the pool. Accepts NULL. */
void agx_shown_host_done(struct agx_shown_host *h);

/* What was found; moved out of it by whoever wants to keep it. */
struct agx_shown {
    struct agx_binds binds;
    struct agx_pairs envs; /* that tools bring along */
    struct agx_tool_files files;
    struct agx_gpus gpus;
};

/* Accepts NULL; empty afterwards. */
void agx_shown_done(struct agx_shown *s);

/* Adds the variables that a primary has for what it shows: whose files the host's are, where
 * sockets appear, what tools bring along. `uid` and `gid` are the daemon's. */
int agx_shown_envs(const struct agx_binds *binds, const struct agx_pairs *tool_envs, uint32_t uid,
                   uint32_t gid, struct agx_pairs *envs, struct agx_error **err) AGX_MUST_CHECK;

/* Once, never inside start; `shown` is the callee's to empty. The callee owns `error`. */
typedef void (*agx_shown_fn)(void *user, struct agx_shown *shown, struct agx_error *error);

/* Does this spec show anything? */
bool agx_shown_is_needed(const struct agx_spec *spec);

/* For that sandbox. `exec_user` is whom commands will run as; NULL: no matter. `makes`: it is made,
 * and gets the files of its tools. What is writable is durable among the writables before `found`
 * comes. Everything is copied. */
int agx_shown_start(const struct agx_shown_host *h, const struct agx_sandbox *sandbox,
                    const char *exec_user, bool makes, agx_shown_fn found, void *user,
                    struct agx_shown_job **ret_job, struct agx_error **err) AGX_MUST_CHECK;

/* `found` will not come; the thread may go on for a while. Accepts NULL. */
void agx_shown_abandon(struct agx_shown_job *p);

#endif

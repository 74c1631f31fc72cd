/*
 * attend.h: the commands of one sandbox, run by its agentix-init. docs/design/init.md
 *
 *     agx_attend_open(&config, &attend, err);           nothing is known yet: calls wait
 *     agx_attend_up_pid(attend, &pid, err);             its init runs: they are asked for
 *     agx_attend_exec() ... agx_attend_kill() ...       as agx_backend_exec_start() and so on
 *     agx_attend_down(attend, error);                   nothing runs: each call has its end
 *     agx_attend_close(attend, closed, user);
 *
 * What a backend's exec_start, exec_kill, exec_write and forget_exec hand through: ops, hooks and
 * invariants are those of backend.h. The ops bring their own cancel and abandon.
 *
 * A connection that breaks is made again, and init asked again for every command; nothing is
 * started twice. Another init (the sandbox was started anew) knows no command of the one before:
 * those are lost.
 *
 * Loop thread only.
 */
#ifndef AGX_BACKEND_ATTEND_H
#define AGX_BACKEND_ATTEND_H

#include "backend/backend.h"
#include "backend/initlink.h"

#include <sys/types.h>

struct agx_attend;

/* Strings are copied. */
struct agx_attend_config {
    struct agx_backend *backend; /* whose ops these are; its loop */
    const char *sandbox_id;
    const char *exec_user; /* as init takes it: "name", "uid", with ":group"; empty: init's own */
    const char *cwd;       /* of commands that name none; empty: "/" */
    /* Connected: at first, and after each break. May be NULL. */
    void (*ready)(void *user);
    /* Init has ended, or cannot be reached at all (-AGX_PERMISSION_DENIED): the attend is down, and
     * every call has had its end. Not for agx_attend_down(). The callee owns `error`. May be NULL.
     */
    void (*ended)(void *user, struct agx_error *error);
    void *user;
};

/* In the state UNKNOWN: calls wait for up or down. */
int agx_attend_open(const struct agx_attend_config *config, struct agx_attend **ret_attend,
                    struct agx_error **err) AGX_MUST_CHECK;

/* What the labels or the image said, when they are known only after open. */
int agx_attend_set_defaults(struct agx_attend *a, const char *exec_user, const char *cwd,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Each init that is reached from now on may start its main process (AGX_INIT_GO): before anything
 * else is asked of it. */
void agx_attend_set_go(struct agx_attend *a, bool go);

/* What PID 1 of a container must be. */
struct agx_attend_pid {
    pid_t pid;                /* as the engine says, in our pid namespace */
    const char *container_id; /* in full, as it stands in the names of its cgroups */
    dev_t init_dev;           /* of the agentix-init that was put into the container */
    ino_t init_ino;
};

/*
 * An init runs: the attend is up, and commands of an init before it are lost. `ready` or `ended`
 * follows, never inside the call. Init is
 *  - the process that the engine named (copied), once it has become init: it may be the engine's
 *    own program for a moment, and is looked at again;
 *  - or that of a pidfd (borrowed);
 *  - or at the other end of a link, opened with agx_attend_link_ops and the attend as user; the
 *    attend's from here on.
 */
int agx_attend_up_pid(struct agx_attend *a, const struct agx_attend_pid *want,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_attend_up_pidfd(struct agx_attend *a, int pidfd, struct agx_error **err) AGX_MUST_CHECK;
void agx_attend_up(struct agx_attend *a, struct agx_initlink *link);
extern const struct agx_initlink_ops agx_attend_link_ops;

/*
 * No init runs: commands that ran are lost with `error` (taken; NULL: it has ended), starts are
 * refused, what is asked for is unknown, kills have nothing to do. Hooks come within this call, and
 * none of the calls until now is left after it. So it is too for calls until the next up.
 */
void agx_attend_down(struct agx_attend *a, struct agx_error *error);

/* An init is about to be there (or to be looked for): calls wait again. Of no effect while it is
 * up. */
void agx_attend_expect(struct agx_attend *a);

/* The link stands, and calls reach init at once. */
bool agx_attend_is_ready(const struct agx_attend *a);

int agx_attend_exec(struct agx_attend *a, const struct agx_backend_exec *q, bool adopt,
                    const struct agx_backend_exec_hooks *hooks, void *user,
                    struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;
int agx_attend_kill(struct agx_attend *a, const char *exec_id, uint64_t grace_ms, agx_done_fn gone,
                    void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Whether bytes arrived that were on their way when the connection broke is not known:
 * -AGX_UNAVAILABLE in `taken`, and they are not sent twice. */
int agx_attend_write(struct agx_attend *a, const char *exec_id, struct agx_str data, bool eof,
                     agx_done_fn taken, void *user, struct agx_backend_op **ret_op,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Sent once there is a connection. */
int agx_attend_forget(struct agx_attend *a, const char *exec_id,
                      struct agx_error **err) AGX_MUST_CHECK;

/* A command of the backend's own. */
struct agx_attend_run {
    const char *name; /* one that was started under this name, and not forgotten, is adopted */
    const struct agx_words *command;
    const struct agx_pairs *envs; /* over those of the sandbox; NULL: none */
    bool adopt; /* one that init does not know is not started: that is an error in `ran` */
};

/* `output` is the end of what it wrote to its standard error, for a message; borrowed. */
typedef void (*agx_attend_ran_fn)(void *user, int32_t exit_code, struct agx_str output,
                                  struct agx_error *error);

/* Runs it to its end, as the exec user in the default directory. `ran` comes once, with an error
 * when it did not come to an exit code; init forgets the command after it. Cancelling the op kills
 * the command. */
int agx_attend_run(struct agx_attend *a, const struct agx_attend_run *run, agx_attend_ran_fn ran,
                   void *user, struct agx_backend_op **ret_op,
                   struct agx_error **err) AGX_MUST_CHECK;

/* No hook comes any more but `closed` (may be NULL). Init and its commands go on. Accepts NULL:
 * nothing happens then. */
void agx_attend_close(struct agx_attend *a, agx_done_fn closed, void *user);

/*
 * A pidfd of that process, and of no other that was given its number meanwhile. -AGX_NOT_FOUND when
 * it is gone, -AGX_FAILED_PRECONDITION when that number is another process, -AGX_PERMISSION_DENIED
 * when we may not look at it.
 */
int agx_attend_pidfd(const struct agx_attend_pid *want, struct agx_error **err) AGX_MUST_CHECK;

#endif

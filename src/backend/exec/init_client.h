/*
 * init_client.h: the init client: runs the commands of one sandbox through its agentix-init. See
 * docs/design/init.md
 *
 *     agx_init_client_open(&config, &init_client, err);  nothing is known yet: calls wait
 *     agx_init_client_up_pid(client, &pid, err);         init runs: waiting calls are sent to it
 *     agx_init_client_exec_start(), ..._kill(), ...       as agx_backend_exec_start() and so on
 *     agx_init_client_down(init_client, error);          nothing runs: every call ends
 *     agx_init_client_close(init_client, closed, user);
 *
 * A backend passes its exec_start, exec_kill, exec_write and forget_exec on to it. Ops, hooks and
 * invariants are those of backend.h; the ops bring their own cancel and abandon.
 *
 * A broken connection is made again, and init is then asked about every command; nothing is started
 * twice. When the sandbox is started anew, its new init does not know the commands of the previous
 * one: those are lost.
 *
 * Loop thread only.
 */
#ifndef AGX_BACKEND_EXEC_INIT_CLIENT_H
#define AGX_BACKEND_EXEC_INIT_CLIENT_H

#include "backend/backend.h"
#include "backend/exec/initlink.h"

#include <sys/types.h>

struct agx_init_client;

/* Strings are copied. */
struct agx_init_client_config {
    struct agx_backend *backend; /* the backend that these ops belong to; its loop is used */
    const char *sandbox_id;
    const char *exec_user; /* in init's syntax: "name" or "uid", optionally ":group"; empty: init's
                            * own user */
    const char *cwd;       /* for commands that name none; empty: "/" */
    /* Connected: at first, and after each break. May be NULL. */
    void (*ready)(void *user);
    /* Init has ended, or cannot be reached at all (-AGX_PERMISSION_DENIED). The client is now down,
     * and every call has ended. Not called for agx_init_client_down(). The callee owns `error`. May
     * be NULL. */
    void (*ended)(void *user, struct agx_error *error);
    void *user;
};

/* Starts in the state UNKNOWN: calls wait for up or down. */
int agx_init_client_open(const struct agx_init_client_config *config,
                         struct agx_init_client **ret_init_client,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Sets what the labels or the image say, where that is known only after open. */
int agx_init_client_set_defaults(struct agx_init_client *a, const char *exec_user, const char *cwd,
                                 struct agx_error **err) AGX_MUST_CHECK;

/* Every init that is reached from now on may start its main process: AGX_INIT_GO is the first
 * message that it gets. */
void agx_init_client_set_go(struct agx_init_client *a, bool go);

/* Which process PID 1 of a container must be. */
struct agx_init_client_pid {
    pid_t pid;                /* in our pid namespace, as the engine reports it */
    const char *container_id; /* the full id, as in the names of its cgroups */
    dev_t init_dev;           /* device of the agentix-init that was put into the container */
    ino_t init_ino;
};

/*
 * An init runs: the client is now up, and commands of an earlier init are lost. `ready` or `ended`
 * follows, never inside the call. Init is one of these:
 *  - the process that the engine reported (copied). It may still be the engine's own program for a
 *    moment, so it is checked again until it has become init;
 *  - the process of a pidfd (borrowed);
 *  - the other end of a link that was opened with agx_init_client_link_ops and this client as user;
 *    the client owns the link from now on.
 */
int agx_init_client_up_pid(struct agx_init_client *a, const struct agx_init_client_pid *want,
                           struct agx_error **err) AGX_MUST_CHECK;
int agx_init_client_up_pidfd(struct agx_init_client *a, int pidfd,
                             struct agx_error **err) AGX_MUST_CHECK;
void agx_init_client_up(struct agx_init_client *a, struct agx_initlink *link);
extern const struct agx_initlink_ops agx_init_client_link_ops;

/*
 * No init runs. Running commands are lost with `error` (taken; NULL: init has ended), starts are
 * refused, adoptions end as `unknown` and kills succeed. The hooks of all pending calls run inside
 * this call. Calls from now until the next up end the same way.
 */
void agx_init_client_down(struct agx_init_client *a, struct agx_error *error);

/* An init is about to start or is being looked for: calls wait again. Has no effect while the
 * client is up. */
void agx_init_client_expect(struct agx_init_client *a);

/* The link is connected: calls reach init at once. */
bool agx_init_client_is_ready(const struct agx_init_client *a);

int agx_init_client_exec_start(struct agx_init_client *a, const struct agx_backend_exec *q,
                               bool adopt, const struct agx_backend_exec_hooks *hooks, void *user,
                               struct agx_backend_op **ret_op,
                               struct agx_error **err) AGX_MUST_CHECK;
int agx_init_client_kill(struct agx_init_client *a, const char *exec_id, uint64_t grace_ms,
                         agx_done_fn gone, void *user, struct agx_backend_op **ret_op,
                         struct agx_error **err) AGX_MUST_CHECK;
/* After a broken connection it is unknown whether bytes on their way arrived: `taken` reports
 * -AGX_UNAVAILABLE, and they are not sent again. */
int agx_init_client_write(struct agx_init_client *a, const char *exec_id, struct agx_str data,
                          bool eof, agx_done_fn taken, void *user, struct agx_backend_op **ret_op,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Is sent as soon as there is a connection. */
int agx_init_client_forget(struct agx_init_client *a, const char *exec_id,
                           struct agx_error **err) AGX_MUST_CHECK;

/* A command that the backend itself runs. */
struct agx_init_client_run {
    const char *name; /* a command with this name that was started and not forgotten is adopted */
    const struct agx_words *command;
    const struct agx_pairs *envs; /* override those of the sandbox; NULL: none */
    bool adopt; /* adopt only: a command that init does not know is an error in `ran` */
};

/* `output` is the end of the command's standard error, for a message; borrowed. */
typedef void (*agx_init_client_ran_fn)(void *user, int32_t exit_code, struct agx_str output,
                                       struct agx_error *error);

/* Runs it to its end, as the exec user in the default directory. `ran` comes once, with an error
 * when there is no exit code; init then forgets the command. Cancelling the op kills the
 * command. */
int agx_init_client_run(struct agx_init_client *a, const struct agx_init_client_run *run,
                        agx_init_client_ran_fn ran, void *user, struct agx_backend_op **ret_op,
                        struct agx_error **err) AGX_MUST_CHECK;

/* No hook is called any more except `closed` (may be NULL). Init and its commands keep running.
 * NULL is accepted and ignored. */
void agx_init_client_close(struct agx_init_client *a, agx_done_fn closed, void *user);

/*
 * Returns a pidfd of exactly that process, not of one that got its number since. -AGX_NOT_FOUND: it
 * is gone. -AGX_FAILED_PRECONDITION: that number is another process. -AGX_PERMISSION_DENIED: we may
 * not look at it.
 */
int agx_init_client_pidfd(const struct agx_init_client_pid *want,
                          struct agx_error **err) AGX_MUST_CHECK;

#endif

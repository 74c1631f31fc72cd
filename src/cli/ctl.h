/*
 * ctl.h: the command line's connection to the daemon, with errors that say what to do next.
 *
 * Where nobody listens, agx_ctl_open() starts a daemon (launch.h) unless AGENTIX_AUTOSTART is 0.
 */
#ifndef AGX_CLI_CTL_H
#define AGX_CLI_CTL_H

#include "base/buf.h"
#include "cli/command.h"
#include "rpc/client.h"

struct agx_ctl {
    const struct agx_cli_env *env;
    char *path; /* of the socket */
    struct agx_rpc_client *client;
    bool may_launch;  /* a daemon is started where there is none */
    char reason[64];  /* of the last refusal, as ErrorInfo has it; empty: none */
    uint64_t lost_ms; /* since when it cannot be held for long; 0: it can */
    uint64_t up_ms;   /* when it was made */
};

/* `ctl` is to be closed in either case. */
int agx_ctl_open(struct agx_ctl *ctl, const struct agx_cli_env *env,
                 struct agx_error **err) AGX_MUST_CHECK;
/* The same without starting one: -AGX_UNAVAILABLE. */
int agx_ctl_connect(struct agx_ctl *ctl, const struct agx_cli_env *env,
                    struct agx_error **err) AGX_MUST_CHECK;
/* After that: starts one with these options and connects to it. Says so on stderr. */
int agx_ctl_launch(struct agx_ctl *ctl, char *const *options, size_t count,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Its replies are closed before. */
void agx_ctl_close(struct agx_ctl *ctl);

/* One request, one answer, which is appended to `reply`. `request` may be NULL: it has no fields.
 * A daemon that is about to end may not take it any more: then the next one gets it. */
int agx_ctl_call(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                 struct agx_buf *reply, struct agx_error **err) AGX_MUST_CHECK;

/* One request without a deadline, whose answers are taken with agx_rpc_reply_next(). */
int agx_ctl_start(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                  struct agx_rpc_reply **ret_reply, struct agx_error **err) AGX_MUST_CHECK;

/* For what agx_rpc_reply_next() returned: puts into *err what to do next, and keeps the reason.
 * Returns `r`. */
int agx_ctl_explain(struct agx_ctl *ctl, int r, struct agx_str details, struct agx_error **err);

/*
 * After -AGX_UNAVAILABLE in the middle of something that can go on: says so on stderr, and waits
 * for a daemon to be there again. All replies are closed before. It gives up when it had no
 * connection that lasted for AGX_CLI_LOST_MS, and then *err is what it was called with. Frees *err
 * otherwise.
 */
int agx_ctl_again(struct agx_ctl *ctl, struct agx_error **err) AGX_MUST_CHECK;

/* The process that listens there. */
int agx_ctl_pid(const struct agx_ctl *ctl, int *ret_pid, struct agx_error **err) AGX_MUST_CHECK;

/* Prints "agentix: message" on stderr, sanitised. Frees the error. Returns AGX_EXIT_FAILED. */
int agx_cli_fail(struct agx_error *err);

/* Prints a message of the wire on stdout as JSON: indented, or on one line. */
int agx_cli_json(const char *name, struct agx_str message, bool one_line,
                 struct agx_error **err) AGX_MUST_CHECK;

/* Prints a text that came from a server, sanitised, and a newline on stdout. */
int agx_cli_line(const char *text, struct agx_error **err) AGX_MUST_CHECK;

/* The work of a subcommand with a daemon, which is started where none runs: the exit status. */
int agx_ctl_run(const struct agx_cli *cli,
                int (*run)(struct agx_ctl *ctl, void *user, struct agx_error **err), void *user);

#endif

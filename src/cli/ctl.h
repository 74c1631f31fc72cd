/*
 * ctl.h: the command line's connection to the daemon, with errors that advise what to do next.
 *
 * If no daemon listens, agx_ctl_open() starts one (launch.h) unless AGENTIX_AUTOSTART is 0.
 */
#ifndef AGX_CLI_CTL_H
#define AGX_CLI_CTL_H

#include "base/buf.h"
#include "cli/command.h"
#include "grpc/client.h"

struct agx_ctl {
    const struct agx_cli_env *env;
    char *path; /* of the socket */
    struct agx_grpc_client *client;
    bool may_launch;  /* start a daemon if none runs */
    char reason[64];  /* of the last refusal, from ErrorInfo; empty: none */
    uint64_t lost_ms; /* since when connections do not last; 0: they do */
    uint64_t up_ms;   /* time of the connect */
};

/* Close `ctl` in either case. */
int agx_ctl_open(struct agx_ctl *ctl, const struct agx_cli_env *env,
                 struct agx_error **err) AGX_MUST_CHECK;
/* The same without starting a daemon: -AGX_UNAVAILABLE. */
int agx_ctl_connect(struct agx_ctl *ctl, const struct agx_cli_env *env,
                    struct agx_error **err) AGX_MUST_CHECK;
/* After that: starts a daemon with these options, connects to it, and reports it on stderr. */
int agx_ctl_launch(struct agx_ctl *ctl, char *const *options, size_t count,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Close its replies first. */
void agx_ctl_close(struct agx_ctl *ctl);

/* One request, one answer, which is appended to `reply`. `request` may be NULL: it has no fields.
 * If a stopping daemon does not accept it, its successor gets it. */
int agx_ctl_call(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                 struct agx_buf *reply, struct agx_error **err) AGX_MUST_CHECK;

/* One request without a deadline, whose answers are taken with agx_grpc_reply_next(). */
int agx_ctl_start(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                  struct agx_grpc_reply **ret_reply, struct agx_error **err) AGX_MUST_CHECK;

/* For a result of agx_grpc_reply_next(): adds advice to *err, and stores the reason. Returns `r`.
 */
int agx_ctl_explain(struct agx_ctl *ctl, int r, struct agx_str details, struct agx_error **err);

/*
 * After -AGX_UNAVAILABLE during work that can continue: reports it on stderr and waits for a
 * daemon. All replies must be closed. Gives up after AGX_CLI_LOST_MS without a lasting connection;
 * then *err is unchanged. Otherwise frees *err.
 */
int agx_ctl_again(struct agx_ctl *ctl, struct agx_error **err) AGX_MUST_CHECK;

/* The process that listens there. */
int agx_ctl_pid(const struct agx_ctl *ctl, int *ret_pid, struct agx_error **err) AGX_MUST_CHECK;

/* Prints "agentix: message" on stderr, sanitised. Frees the error. Returns AGX_EXIT_FAILED. */
int agx_cli_fail(struct agx_error *err);

/* Prints a message of the wire on stdout as JSON: indented, or on one line. */
int agx_cli_json(const char *name, struct agx_str message, bool one_line,
                 struct agx_error **err) AGX_MUST_CHECK;

/* Prints a server's text, sanitised, and a newline on stdout. */
int agx_cli_line(const char *text, struct agx_error **err) AGX_MUST_CHECK;

/* Runs a subcommand with a daemon, which is started if none runs. Returns the exit status. */
int agx_ctl_run(const struct agx_cli *cli,
                int (*run)(struct agx_ctl *ctl, void *user, struct agx_error **err), void *user);

#endif

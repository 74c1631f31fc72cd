/* ctl.c: the command line's connection to the daemon. */
#include "cli/ctl.h"

#include "base/clock.h"
#include "base/limits.h"
#include "cli/launch.h"
#include "cli/show.h"
#include "wire/status_details.h"
#include "wire/wire_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/banned.h"

enum {
    TEXT_SIZE = 4096,
    RETRY_MS = 50,
    RELAUNCH_MS = 500,
    LASTING_MS = 1000, /* a connection that lasted this long counts as good */
};

int agx_cli_fail(struct agx_error *err)
{
    _cleanup_buf_ struct agx_buf printable = AGX_BUF_INIT((size_t)TEXT_SIZE * 8);
    char text[TEXT_SIZE];

    agx_error_format(err, text, sizeof(text));
    if (agx_show_text(&printable, agx_str_from(text)) < 0)
        agx_buf_clear(&printable);
    fprintf(stderr, "agentix: %.*s\n", AGX_STR_ARG(agx_buf_peek(&printable)));
    agx_error_free(err);
    return AGX_EXIT_FAILED;
}

int agx_cli_json(const char *name, struct agx_str message, bool one_line, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf json = AGX_BUF_INIT(4 * AGX_CLI_REPLY_MAX);
    int r = agx_wire_json(&json, name, message, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < json.len; i++) {
        if (one_line && json.data[i] == '\n') { /* not inside a string, where it would be escaped */
            while (i + 1 < json.len && json.data[i + 1] == ' ')
                i++;
        } else {
            (void)putchar(json.data[i]);
        }
    }
    (void)putchar('\n');
    return 0;
}

int agx_cli_line(const char *text, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf printable = AGX_BUF_INIT(AGX_CLI_TABLE_MAX);

    if (agx_show_text(&printable, agx_str_from(text)) < 0)
        return agx_error_no_memory(err);
    printf("%.*s\n", AGX_STR_ARG(agx_buf_peek(&printable)));
    return 0;
}

/* Appends advice to the error's text. */
static int advise(struct agx_error **err, int r, const char *advice)
{
    char text[TEXT_SIZE];

    if (!err || !*err)
        return r;
    agx_error_format(*err, text, sizeof(text));
    *err = agx_error_free(*err);
    return agx_error_set(err, (enum agx_code) - r, "%s; %s", text, advice);
}

struct advice {
    const char *reason;
    const char *text; /* NULL: no advice */
};

static const struct advice by_reason[] = {
    { "SANDBOX_NOT_FOUND", "`agentix sandbox list` shows the existing ones" },
    { "EXEC_NOT_FOUND", "`agentix exec list` shows the running ones" },
    { "SANDBOX_NOT_READY",
      "`agentix sandbox get` shows its state, `agentix sandbox resume` starts a "
      "stopped one" },
    { "SANDBOX_INVALID_STATE", "`agentix sandbox get` shows its state" },
    { "SANDBOX_ID_ALREADY_EXISTS", "choose another id: an id can be used only once" },
    { "EXEC_ID_ALREADY_EXISTS", "choose another id: an id can be used only once" },
    { "IMAGE_NOT_FOUND", "`agentix image list` shows the existing ones" },
    { "IMAGE_IN_USE", "`agentix sandbox delete` deletes the sandboxes that use it" },
    { "IMAGE_PULL_FAILED", NULL },
};

static const char *advice_for(const struct agx_ctl *ctl, int code)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(by_reason); i++) {
        if (strcmp(by_reason[i].reason, ctl->reason) == 0)
            return by_reason[i].text;
    }
    switch (code) {
    case AGX_UNIMPLEMENTED:
        return "the daemon has another version: see `agentix version`, and stop it with `agentix "
               "daemon stop`";
    case AGX_DEADLINE_EXCEEDED:
        return "the daemon is busy or stuck: see `agentix daemon logs`";
    case AGX_UNKNOWN:
        return "is another program at the socket that AGENTIX_SOCKET names?";
    case AGX_UNAVAILABLE:
        return "see `agentix daemon status` and `agentix daemon logs`";
    default:
        return NULL;
    }
}

static void keep_reason(struct agx_ctl *ctl, struct agx_str details)
{
    struct agx_status_view v = { 0 };

    ctl->reason[0] = '\0';
    if (details.len == 0 || agx_status_view_decode(&v, details, NULL) < 0)
        return;
    if (v.reason)
        (void)snprintf(ctl->reason, sizeof(ctl->reason), "%s", v.reason);
    agx_status_view_done(&v);
}

int agx_ctl_explain(struct agx_ctl *ctl, int r, struct agx_str details, struct agx_error **err)
{
    const char *advice;

    keep_reason(ctl, details);
    /* We never cancel a call that we wait for: the server was stopping. */
    if (r == -AGX_CANCELLED)
        r = agx_error_wrap(err, -AGX_UNAVAILABLE, "the daemon ended the call");
    advice = r < 0 ? advice_for(ctl, -r) : NULL;
    return advice ? advise(err, r, advice) : r;
}

static int connect_to(struct agx_ctl *ctl, struct agx_error **err)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    int r = agx_grpc_client_open(ctl->path, &config, &ctl->client, err);

    ctl->up_ms = agx_clock_ms();
    if (r == -AGX_PERMISSION_DENIED)
        r = advise(err, r,
                   "the daemon belongs to another user: run as that user, or name yours with "
                   "AGENTIX_SOCKET");
    return r;
}

static int find_path(struct agx_ctl *ctl, const struct agx_cli_env *env, struct agx_error **err)
{
    int r;

    *ctl = (struct agx_ctl){ .env = env };
    r = agx_xdg_socket(&env->xdg, &ctl->path, err);
    return r < 0 ? advise(err, r, "AGENTIX_SOCKET can name the daemon's socket") : 0;
}

int agx_ctl_connect(struct agx_ctl *ctl, const struct agx_cli_env *env, struct agx_error **err)
{
    int r = find_path(ctl, env, err);

    if (r == 0)
        r = connect_to(ctl, err);
    return r == -AGX_UNAVAILABLE ? advise(err, r, "`agentix daemon start` starts a daemon") : r;
}

/* Retries until a daemon listens or the time is up; then returns the last error. */
static int connect_by(struct agx_ctl *ctl, uint64_t due_ms, struct agx_error **err)
{
    int r;

    while ((r = connect_to(ctl, err)) == -AGX_UNAVAILABLE && agx_clock_ms() < due_ms) {
        *err = agx_error_free(*err);
        (void)usleep(RETRY_MS * 1000);
    }
    return r;
}

/*
 * A process that holds the lock without listening has just been started, or is about to end: then
 * the lock is free soon, and another attempt starts a daemon.
 */
static int launch_and_connect(struct agx_ctl *ctl, char *const *options, size_t count,
                              bool *ret_started, struct agx_error **err)
{
    uint64_t due = agx_clock_ms() + AGX_CLI_LOST_MS;
    int r;

    for (;;) {
        r = agx_launch(options, count, err);
        if (r < 0)
            return r;
        *ret_started = r == AGX_LAUNCH_STARTED;
        r = connect_by(ctl, *ret_started ? due : AGX_MIN(due, agx_clock_ms() + RELAUNCH_MS), err);
        if (r != -AGX_UNAVAILABLE || agx_clock_ms() >= due)
            return r;
        *err = agx_error_free(*err);
    }
}

int agx_ctl_launch(struct agx_ctl *ctl, char *const *options, size_t count, struct agx_error **err)
{
    bool started = false;
    int pid = 0, r = launch_and_connect(ctl, options, count, &started, err);

    if (r == 0 && started && agx_ctl_pid(ctl, &pid, NULL) == 0)
        fprintf(stderr, "agentix: started the daemon (pid %d); `agentix daemon stop` stops it\n",
                pid);
    if (r == -AGX_NOT_FOUND)
        return advise(err, r, "AGENTIX_SOCKET can name a daemon that runs elsewhere");
    return r < 0 ? advise(err, r, "see `agentix daemon logs`") : 0;
}

static int connect_or_launch(struct agx_ctl *ctl, struct agx_error **err)
{
    int r = connect_to(ctl, err);

    if (r != -AGX_UNAVAILABLE)
        return r;
    if (!ctl->env->autostart)
        return advise(err, r, "AGENTIX_AUTOSTART is 0: start a daemon with `agentix daemon start`");
    *err = agx_error_free(*err);
    return agx_ctl_launch(ctl, NULL, 0, err);
}

int agx_ctl_open(struct agx_ctl *ctl, const struct agx_cli_env *env, struct agx_error **err)
{
    int r = find_path(ctl, env, err);

    ctl->may_launch = true;
    return r < 0 ? r : connect_or_launch(ctl, err);
}

void agx_ctl_close(struct agx_ctl *ctl)
{
    ctl->client = agx_grpc_client_close(ctl->client);
    free(ctl->path);
    ctl->path = NULL;
}

static struct agx_grpc_request make_request(const char *method, const struct agx_buf *request)
{
    return (struct agx_grpc_request){
        .path = method,
        .message = request ? agx_buf_peek(request) : (struct agx_str){ NULL, 0 },
    };
}

/* The daemon is stopping: connects to its successor. */
static int find_next(struct agx_ctl *ctl, struct agx_error **err)
{
    ctl->client = agx_grpc_client_close(ctl->client);
    (void)usleep(RETRY_MS * 1000);
    return connect_or_launch(ctl, err);
}

int agx_ctl_call(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                 struct agx_buf *reply, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf details = AGX_BUF_INIT(4 * AGX_GRPC_TRAILERS_MAX);
    struct agx_grpc_request q = make_request(method, request);
    uint64_t due = agx_clock_ms() + AGX_CLI_LOST_MS;
    int r;

    q.timeout_ms = AGX_CLI_CALL_MS;
    r = agx_grpc_client_call(ctl->client, &q, reply, &details, err);
    while (r == -AGX_UNAVAILABLE && err && ctl->may_launch &&
           agx_grpc_client_refused(ctl->client) && agx_clock_ms() < due) {
        *err = agx_error_free(*err);
        r = find_next(ctl, err);
        if (r < 0)
            return r;
        r = agx_grpc_client_call(ctl->client, &q, reply, &details, err);
    }
    return agx_ctl_explain(ctl, r, agx_buf_peek(&details), err);
}

int agx_ctl_start(struct agx_ctl *ctl, const char *method, const struct agx_buf *request,
                  struct agx_grpc_reply **ret_reply, struct agx_error **err)
{
    struct agx_grpc_request q = make_request(method, request);

    return agx_grpc_client_start(ctl->client, &q, ret_reply, err);
}

int agx_ctl_again(struct agx_ctl *ctl, struct agx_error **err)
{
    struct agx_error *why = NULL;
    uint64_t now = agx_clock_ms();
    int r;

    if (ctl->lost_ms == 0 || now - ctl->up_ms >= LASTING_MS) {
        ctl->lost_ms = now;
        fputs("agentix: lost the connection to the daemon; waiting for it to return\n", stderr);
    } else if (now - ctl->lost_ms >= AGX_CLI_LOST_MS) {
        return -AGX_UNAVAILABLE;
    } else {
        (void)usleep(RETRY_MS * 1000);
    }
    ctl->client = agx_grpc_client_close(ctl->client);
    r = connect_by(ctl, ctl->lost_ms + AGX_CLI_LOST_MS, &why);
    agx_error_free(why);
    if (r < 0)
        return -AGX_UNAVAILABLE;
    *err = agx_error_free(*err);
    return 0;
}

int agx_ctl_pid(const struct agx_ctl *ctl, int *ret_pid, struct agx_error **err)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(agx_grpc_client_fd(ctl->client), SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return agx_error_errno(err, errno, "find the process that listens at '%s'", ctl->path);
    *ret_pid = peer.pid;
    return 0;
}

int agx_ctl_run(const struct agx_cli *cli,
                int (*run)(struct agx_ctl *ctl, void *user, struct agx_error **err), void *user)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    int status = AGX_EXIT_OK;

    if (agx_ctl_open(&ctl, cli->env, &err) < 0 || run(&ctl, user, &err) < 0)
        status = agx_cli_fail(err);
    agx_ctl_close(&ctl);
    return status;
}

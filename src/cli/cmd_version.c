/* cmd_version.c: `agentix version`: the versions of this program and of the running daemon. */
#include "base/limits.h"
#include "cli/ctl.h"
#include "cli/show.h"
#include "wire/method.h"
#include "wire/view.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const char help[] =
    "usage: agentix version\n"
    "\n"
    "Prints the version of this program, and that of the daemon if one runs.\n";

static int cmd_version_ask(struct agx_ctl *ctl, const struct agx_cli_env *env, struct agx_buf *out)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_error *err = NULL;
    struct agx_ping_view v = { 0 };
    int r = agx_ctl_connect(ctl, env, &err);

    if (r == 0)
        r = agx_ctl_call(ctl, AGX_METHOD_PING, NULL, &reply, &err);
    if (r == 0)
        r = agx_ping_view_decode(&v, agx_buf_peek(&reply), &err);
    if (r == 0) {
        r = agx_show_text(out, agx_str_from(agx_text(v.version)));
        agx_ping_view_done(&v);
    }
    agx_error_free(err); /* a missing daemon is not an error here */
    return r;
}

static int cmd_version(int argc, char **argv, const struct agx_cli_env *env)
{
    _cleanup_buf_ struct agx_buf version = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_ctl ctl = { 0 };

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return AGX_EXIT_OK;
    }
    if (argc > 1)
        return agx_cli_usage("version", "unexpected argument '%s'", argv[1]);
    puts("agentix: " AGX_VERSION);
    if (cmd_version_ask(&ctl, env, &version) == 0)
        printf("agentixd: %.*s\n", AGX_STR_ARG(agx_buf_peek(&version)));
    else
        puts("agentixd: unavailable");
    agx_ctl_close(&ctl);
    return AGX_EXIT_OK;
}

const struct agx_command agx_cmd_version = {
    .name = "version",
    .summary = "the versions of this program and of the daemon",
    .help = help,
    .run = cmd_version,
};

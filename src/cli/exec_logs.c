/* exec_logs.c: `agentix exec logs`. */
#include "cli/args.h"
#include "cli/exec_commands.h"
#include "cli/output.h"

#include "base/banned.h"

/* Prints all of it; reconnects if the connection is lost. */
static int print(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    struct agx_output *o = user;
    int r;

    for (;;) {
        r = agx_output_start(o, ctl, err);
        while (r >= 0 && !o->over)
            r = agx_output_take(o, ctl, -1, err);
        agx_output_stop(o);
        if (r != -AGX_UNAVAILABLE)
            return r;
        r = agx_ctl_again(ctl, err);
        if (r < 0)
            return r;
    }
}

int agx_exec_logs(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_output o = { .stream = AGX_OUTPUT_STDOUT, .fd = STDOUT_FILENO };
    bool error_output = false;
    const struct agx_arg table[] = {
        { "stderr", 0, AGX_ARG_FLAG, &error_output, NULL },
        { "follow", 'f', AGX_ARG_FLAG, &o.follow, NULL },
        { "offset", 0, AGX_ARG_NUMBER, &o.offset, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    o.exec_id = a.words[0];
    if (error_output)
        o.stream = AGX_OUTPUT_STDERR;
    return agx_ctl_run(cli, print, &o);
}

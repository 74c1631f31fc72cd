/* daemon_status.c: `agentix daemon status`. */
#include "base/limits.h"
#include "base/size.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/daemon_commands.h"
#include "cli/show.h"
#include "wire/method.h"
#include "wire/stats.h"

#include <stdio.h>

#include "base/banned.h"

static int print_line(const char *name, const char *text, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf shown = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);

    if (agx_show_text(&shown, agx_str_from(text)) < 0)
        return agx_cli_no_memory(err);
    printf("%s=%.*s\n", name, AGX_STR_ARG(agx_buf_peek(&shown)));
    return 0;
}

/* "sandboxes=3 (2 Ready, 1 Stopped)"; deleted ones are none any more. */
static void print_sandboxes(const struct agx_stats *s)
{
    unsigned long long all = 0;
    const char *before = " (";

    for (int i = AGX_STATE_PENDING; i < AGX_STATE_DELETED; i++)
        all += s->sandboxes[i];
    printf("sandboxes=%llu", all);
    for (int i = AGX_STATE_PENDING; i < AGX_STATE_DELETED; i++) {
        if (s->sandboxes[i] == 0)
            continue;
        printf("%s%llu %s", before, (unsigned long long)s->sandboxes[i],
               agx_show_state((enum agx_state)i));
        before = ", ";
    }
    puts(all > 0 ? ")" : "");
}

static int print_stats(const struct agx_ctl *ctl, const struct agx_stats *s, struct agx_error **err)
{
    char span[AGX_SHOW_SIZE];
    int pid = 0, r = agx_ctl_pid(ctl, &pid, err);

    if (r < 0)
        return r;
    printf("state=running\npid=%d\n", s->pid ? (int)s->pid : pid);
    r = print_line("version", agx_text(s->version), err);
    if (r == 0)
        r = print_line("socket", ctl->path, err);
    if (r == 0)
        r = print_line("backend", agx_text(s->backend), err);
    if (r < 0)
        return r;
    printf("uptime=%s\n", agx_show_span((int64_t)AGX_MIN(s->uptime_ns, (uint64_t)INT64_MAX), span));
    printf("memory=%.1fMiB\n", (double)s->rss_bytes / (1 << 20));
    print_sandboxes(s);
    printf("active_execs=%llu\n", (unsigned long long)s->active_execs);
    return 0;
}

static int ask(struct agx_ctl *ctl, bool json, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_stats s = { 0 };
    int r = agx_ctl_call(ctl, AGX_METHOD_GET_STATS, NULL, &reply, err);

    if (r == 0 && json)
        return agx_cli_json("agentix.v1.GetStatsResponse", agx_buf_peek(&reply), false, err);
    if (r == 0)
        r = agx_stats_decode(&s, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    r = print_stats(ctl, &s, err);
    agx_stats_done(&s);
    return r;
}

static int not_running(const struct agx_ctl *ctl, struct agx_error *err)
{
    struct agx_error *problem = NULL;
    int status = AGX_EXIT_NOT_RUNNING;

    agx_error_free(err);
    puts("state=stopped");
    if (print_line("socket", ctl->path, &problem) < 0)
        status = agx_cli_fail(problem);
    return status;
}

int agx_daemon_status(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    bool json = false;
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &json, NULL } };
    struct agx_args a;
    int r, status = agx_args_read(&a, cli, argc, argv, table, AGX_ARRAY_LEN(table));

    if (status == AGX_EXIT_GOING)
        status = agx_args_expect(&a, cli, 0, 0);
    if (status != AGX_EXIT_GOING)
        return status;
    r = agx_ctl_connect(&ctl, cli->env, &err);
    if (r == -AGX_UNAVAILABLE)
        status = not_running(&ctl, err);
    else if (r < 0 || ask(&ctl, json, &err) < 0)
        status = agx_cli_fail(err);
    else
        status = AGX_EXIT_OK;
    agx_ctl_close(&ctl);
    return status;
}

/* daemon_status.c: `agentix daemon status`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/daemon_commands.h"
#include "cli/show.h"
#include "wire/method.h"
#include "wire/stats.h"

#include <stdio.h>

#include "base/banned.h"

/* "sandboxes=3 (2 Ready, 1 Stopped)", without deleted ones. */
static int show_sandboxes(struct agx_buf *out, const struct agx_stats *s)
{
    unsigned long long all = 0;
    const char *before = " (";
    int r;

    for (int i = AGX_STATE_PENDING; i < AGX_STATE_DELETED; i++)
        all += s->sandboxes[i];
    r = agx_buf_printf(out, "sandboxes=%llu", all);
    for (int i = AGX_STATE_PENDING; r == 0 && i < AGX_STATE_DELETED; i++) {
        if (s->sandboxes[i] == 0)
            continue;
        r = agx_buf_printf(out, "%s%llu %s", before, (unsigned long long)s->sandboxes[i],
                           agx_show_state((enum agx_state)i));
        before = ", ";
    }
    return r < 0 ? r : agx_buf_printf(out, "%s\n", all > 0 ? ")" : "");
}

static int show_stats(struct agx_buf *out, const struct agx_ctl *ctl, const struct agx_stats *s)
{
    char span[AGX_SHOW_SIZE];
    int r = agx_buf_printf(out, "state=running\npid=%u\n", s->pid);

    if (r == 0)
        r = agx_show_line(out, "version", agx_str_from(s->version));
    if (r == 0)
        r = agx_show_line(out, "socket", agx_str_from(ctl->path));
    if (r == 0)
        r = agx_show_line(out, "backend", agx_str_from(s->backend));
    if (r == 0)
        r = agx_buf_printf(out, "uptime=%s\nmemory=%.1fMiB\n",
                           agx_show_span((int64_t)AGX_MIN(s->uptime_ns, (uint64_t)INT64_MAX), span),
                           (double)s->rss_bytes / (1 << 20));
    if (r == 0)
        r = show_sandboxes(out, s);
    return r < 0 ? r
                 : agx_buf_printf(out, "active_execs=%llu\n", (unsigned long long)s->active_execs);
}

static int daemon_status_ask(struct agx_ctl *ctl, bool json, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_CLI_TABLE_MAX);
    struct agx_stats s = { 0 };
    int r = agx_ctl_call(ctl, AGX_METHOD_GET_STATS, NULL, &reply, err);

    if (r == 0 && json)
        return agx_cli_json("agentix.v1.GetStatsResponse", agx_buf_peek(&reply), false, err);
    if (r == 0)
        r = agx_stats_decode(&s, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    if (show_stats(&text, ctl, &s) < 0)
        r = agx_error_no_memory(err);
    agx_stats_done(&s);
    (void)fwrite(text.data, 1, text.len, stdout);
    return r;
}

static int not_running(const struct agx_ctl *ctl, struct agx_error *err)
{
    printf("state=stopped\nsocket=%s\n", ctl->path);
    agx_error_free(err);
    return AGX_EXIT_NOT_RUNNING;
}

int agx_daemon_status(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    bool json = false;
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 0 };
    struct agx_args a;
    int r, status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    r = agx_ctl_connect(&ctl, cli->env, &err);
    if (r == -AGX_UNAVAILABLE)
        status = not_running(&ctl, err);
    else if (r < 0 || daemon_status_ask(&ctl, json, &err) < 0)
        status = agx_cli_fail(err);
    else
        status = AGX_EXIT_OK;
    agx_ctl_close(&ctl);
    return status;
}

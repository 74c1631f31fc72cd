/* exec_read.c: `agentix exec get`, `list` and `cancel`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/exec_commands.h"
#include "cli/get.h"
#include "cli/show.h"
#include "cli/table.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"
#include "wire/view.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { CELL_MAX = AGX_GRPC_MESSAGE_MAX };

static int show_exec(struct agx_buf *out, const struct agx_exec *e)
{
    _cleanup_buf_ struct agx_buf command = AGX_BUF_INIT(CELL_MAX);
    int r = agx_show_line(out, "exec_id", agx_str_from(e->id));

    if (r == 0)
        r = agx_show_line(out, "sandbox_id", agx_str_from(e->sandbox_id));
    if (r == 0)
        r = agx_show_line(out, "state", agx_str_from(agx_show_exec_state(e->state)));
    if (r == 0)
        r = agx_show_words(&command, &e->command);
    if (r == 0)
        r = agx_show_line(out, "command", agx_buf_peek(&command));
    if (r == 0)
        r = agx_show_line(out, "cwd", agx_str_from(e->cwd));
    if (r == 0 && e->state != AGX_EXEC_RUNNING && e->state != AGX_EXEC_NONE)
        r = agx_buf_printf(out, "exit_code=%d\n", (int)e->exit_code);
    if (r == 0)
        r = agx_show_line(out, "error", agx_str_from(e->error_message));
    return r;
}

static int exec_read_show(struct agx_buf *out, struct agx_str reply, struct agx_error **err)
{
    struct agx_exec_view v = { 0 };
    int r = agx_exec_view_decode(&v, reply, NULL, err);

    if (r == 0 && show_exec(out, &v.exec) < 0)
        r = agx_error_no_memory(err);
    agx_exec_view_done(&v);
    return r;
}

int agx_exec_get(const struct agx_cli *cli, int argc, char **argv)
{
    static const struct agx_get get = { AGX_METHOD_GET_EXEC, "agbox.v1.GetExecResponse",
                                        exec_read_show };

    return agx_get(&get, cli, argc, argv);
}

static int add_row(struct agx_table *t, const struct agx_exec *e)
{
    _cleanup_buf_ struct agx_buf command = AGX_BUF_INIT(CELL_MAX);

    if (agx_show_words(&command, &e->command) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return agx_table_add(t, (struct agx_str[]){ agx_str_from(e->id), agx_str_from(e->sandbox_id),
                                                agx_str_from(agx_show_exec_state(e->state)),
                                                agx_buf_peek(&command) });
}

static int print_table(const struct agx_exec_views *views, struct agx_error **err)
{
    static const char *const titles[] = { "EXEC ID", "SANDBOX ID", "STATE", "COMMAND" };
    struct agx_table t;
    int r = agx_table_init(&t, titles, AGX_ARRAY_LEN(titles));

    for (size_t i = 0; r == 0 && i < views->len; i++)
        r = add_row(&t, &views->items[i].exec);
    return agx_table_end(&t, r, err);
}

struct listing {
    const char *sandbox; /* NULL: all */
    bool json;
};

static int exec_read_list(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_exec_views views = { 0 };
    const struct listing *l = user;
    int r;

    if (agx_active_request_encode(&request, l->sandbox) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_LIST_ACTIVE_EXECS, &request, &reply, err);
    if (r == 0 && l->json)
        return agx_cli_json("agbox.v1.ListActiveExecsResponse", agx_buf_peek(&reply), false, err);
    if (r == 0)
        r = agx_exec_views_decode(&views, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    r = print_table(&views, err);
    agx_exec_views_done(&views);
    return r;
}

int agx_exec_list(const struct agx_cli *cli, int argc, char **argv)
{
    struct listing l = { 0 };
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &l.json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    l.sandbox = a.words_len > 0 ? a.words[0] : NULL;
    return agx_ctl_run(cli, exec_read_list, &l);
}

static int exec_read_cancel(struct agx_ctl *ctl, void *id, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    int r;

    if (agx_id_encode(&request, id) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_CANCEL_EXEC, &request, &reply, err);
    if (r < 0 && strcmp(ctl->reason, "EXEC_ALREADY_TERMINAL") == 0) {
        *err = agx_error_free(*err);
        fputs("The command has already ended.\n", stderr);
        return 0;
    }
    return r;
}

int agx_exec_cancel(const struct agx_cli *cli, int argc, char **argv)
{
    static const struct agx_args_want want = { .min = 1, .max = 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    return status == AGX_EXIT_GOING ? agx_ctl_run(cli, exec_read_cancel, (void *)a.words[0])
                                    : status;
}

/* sandbox_read.c: `agentix sandbox list` and `get`. */
#include "base/clock.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/get.h"
#include "cli/sandbox_commands.h"
#include "cli/show.h"
#include "cli/show_usage.h"
#include "cli/table.h"
#include "codec/json_text.h"
#include "wire/control_request.h"
#include "wire/method.h"
#include "wire/usage_wire.h"
#include "wire/view.h"

#include <stdio.h>

#include "base/banned.h"

enum { CELL_MAX = 1 << 20 };

/* "Ready 2h": the state and its age. */
static int show_status(struct agx_buf *out, const struct agx_sandbox_view *v, int64_t now)
{
    char span[AGX_SHOW_SIZE];

    if (v->changed_at_ns <= 0)
        return agx_buf_printf(out, "%s", agx_show_state(v->state));
    return agx_buf_printf(out, "%s %s", agx_show_state(v->state),
                          agx_show_span(now - v->changed_at_ns, span));
}

static int show_error(struct agx_buf *out, const struct agx_sandbox_view *v)
{
    const char *code = agx_text(v->error_code), *message = agx_text(v->error_message);

    return agx_buf_printf(out, "%s%s%s", code, *code && *message ? ": " : "", message);
}

static int add_row(struct agx_table *t, const struct agx_sandbox_view *v, int64_t now)
{
    _cleanup_buf_ struct agx_buf status = AGX_BUF_INIT(AGX_SHOW_SIZE * 2);
    _cleanup_buf_ struct agx_buf labels = AGX_BUF_INIT(CELL_MAX);
    _cleanup_buf_ struct agx_buf error = AGX_BUF_INIT(CELL_MAX);
    char span[AGX_SHOW_SIZE], created[AGX_SHOW_SIZE + sizeof(" ago")];

    (void)snprintf(created, sizeof(created), "%s ago", agx_show_span(now - v->created_at_ns, span));
    if (show_status(&status, v, now) < 0 || agx_show_pairs(&labels, &v->spec.labels) < 0 ||
        show_error(&error, v) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return agx_table_add(t, (struct agx_str[]){ agx_str_from(v->id), agx_str_from(created),
                                                agx_buf_peek(&status), agx_buf_peek(&labels),
                                                agx_buf_peek(&error) });
}

static int print_table(const struct agx_sandbox_views *views, struct agx_error **err)
{
    static const char *const titles[] = { "SANDBOX ID", "CREATED", "STATUS", "LABELS", "ERROR" };
    int64_t now = agx_clock_wall_ns();
    struct agx_table t;
    int r = agx_table_init(&t, titles, AGX_ARRAY_LEN(titles));

    for (size_t i = 0; r == 0 && i < views->len; i++)
        r = add_row(&t, &views->items[i], now);
    return agx_table_end(&t, r, err);
}

struct listing {
    struct agx_list_request q;
    bool json;
};

/* Appends one page to `all` and sets the request's token to its own; NULL: the last page. */
static int take_page(struct agx_ctl *ctl, struct agx_list_request *q, struct agx_buf *all,
                     struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_sandbox_views page = { 0 };
    size_t from = all->len;
    int r;

    if (agx_page_request_encode(&request, q) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_LIST_PAGE, &request, all, err);
    if (r == 0)
        r = agx_sandbox_views_decode(&page, agx_str_skip(agx_buf_peek(all), from), err);
    if (r < 0)
        return r;
    free(q->page_token);
    q->page_token = AGX_TAKE_PTR(page.next_page_token);
    agx_sandbox_views_done(&page);
    return 0;
}

/* Reads all pages: concatenated messages are one message with joined lists. */
static int sandbox_read_list(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf all = AGX_BUF_INIT(AGX_CLI_REPLY_MAX);
    struct agx_sandbox_views views = { 0 };
    struct listing *l = user;
    int r;

    do
        r = take_page(ctl, &l->q, &all, err);
    while (r == 0 && l->q.page_token);
    if (r == 0 && l->json)
        return agx_cli_json("agbox.v1.ListSandboxesResponse", agx_buf_peek(&all), false, err);
    if (r == 0)
        r = agx_sandbox_views_decode(&views, agx_buf_peek(&all), err);
    if (r < 0)
        return r;
    r = print_table(&views, err);
    agx_sandbox_views_done(&views);
    return r;
}

int agx_sandbox_list(const struct agx_cli *cli, int argc, char **argv)
{
    struct listing l = { 0 };
    const struct agx_arg table[] = {
        { "label", 0, AGX_ARG_PAIR, &l.q.selector, NULL },
        { "include-deleted", 0, AGX_ARG_FLAG, &l.q.include_deleted, NULL },
        { "json", 0, AGX_ARG_FLAG, &l.json, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 0 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status == AGX_EXIT_GOING)
        status = agx_ctl_run(cli, sandbox_read_list, &l);
    agx_list_request_done(&l.q);
    return status;
}

static int show_labels(struct agx_buf *out, const struct agx_pairs *labels)
{
    _cleanup_buf_ struct agx_buf json = AGX_BUF_INIT(CELL_MAX);
    int r = agx_buf_push(&json, '{');

    if (labels->len == 0)
        return 0;
    for (size_t i = 0; r == 0 && i < labels->len; i++) {
        r = i > 0 ? agx_buf_push(&json, ',') : 0;
        if (r == 0)
            r = agx_json_text_quote(&json, agx_str_from(labels->items[i].key));
        if (r == 0)
            r = agx_buf_push(&json, ':');
        if (r == 0)
            r = agx_json_text_quote(&json, agx_str_from(labels->items[i].value));
    }
    if (r == 0)
        r = agx_buf_push(&json, '}');
    return r < 0 ? r : agx_show_line(out, "labels", agx_buf_peek(&json));
}

static int show_sandbox(struct agx_buf *out, const struct agx_sandbox_view *v)
{
    char time[AGX_SHOW_SIZE];
    int r = agx_show_line(out, "sandbox_id", agx_str_from(v->id));

    if (r == 0)
        r = agx_show_line(out, "state", agx_str_from(agx_show_state(v->state)));
    if (r == 0)
        r = agx_show_line(out, "image", agx_str_from(v->spec.image));
    if (r == 0 && v->created_at_ns > 0)
        r = agx_show_line(out, "created_at", agx_str_from(agx_show_time(v->created_at_ns, time)));
    if (r == 0)
        r = show_labels(out, &v->spec.labels);
    if (r == 0)
        r = agx_show_line(out, "error_code", agx_str_from(v->error_code));
    if (r == 0)
        r = agx_show_line(out, "error_message", agx_str_from(v->error_message));
    for (size_t i = 0; r == 0 && i < v->warnings.len; i++)
        r = agx_show_line(out, "warning", agx_str_from(v->warnings.items[i]));
    return r;
}

/* Usage of the sandbox and of each companion, prefixed with its name. */
static int show_uses(struct agx_buf *out, const struct agx_usage_view *v)
{
    int r = agx_show_usage(out, NULL, &v->use);

    for (size_t i = 0; r == 0 && i < v->companions_len; i++)
        r = agx_show_usage(out, v->companions[i].name, &v->companions[i].use);
    return r < 0 ? r : agx_show_line(out, "use_error", agx_str_from(v->error));
}

static int sandbox_read_show(struct agx_buf *out, struct agx_str reply, struct agx_error **err)
{
    struct agx_sandbox_view v = { 0 };
    struct agx_usage_view use = { 0 };
    int r = agx_sandbox_view_decode(&v, reply, NULL, err);

    if (r == 0)
        r = agx_usage_view_decode(&use, reply, err);
    if (r == 0 && (show_sandbox(out, &v) < 0 || show_uses(out, &use) < 0))
        r = agx_error_no_memory(err);
    agx_usage_view_done(&use);
    agx_sandbox_view_done(&v);
    return r;
}

int agx_sandbox_get(const struct agx_cli *cli, int argc, char **argv)
{
    static const struct agx_get get = { AGX_METHOD_GET_WITH_USE, "agentix.v1.GetSandboxResponse",
                                        sandbox_read_show };

    return agx_get(&get, cli, argc, argv);
}

/*
 * sandbox_events.c: `agentix sandbox events`: of one sandbox (SubscribeSandboxEvents) or of all
 * (WatchEvents), then with the progress of image pulls. If the daemon goes away, it waits for it
 * and continues at the same position.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/sandbox_commands.h"
#include "cli/show.h"
#include "wire/control_request.h"
#include "wire/method.h"
#include "wire/view.h"

#include <stdio.h>

#include "base/banned.h"

struct feed {
    const char *id;            /* NULL: all sandboxes */
    struct agx_pairs selector; /* all sandboxes */
    uint64_t after;            /* sequence or position of the last event seen */
    bool after_given;
    bool follow, json;
    uint64_t last; /* without `follow`: the sandbox's newest event */
};

enum { LINE_MAX_BYTES = 1 << 20 };

/* "TIME  SANDBOX  SEQUENCE  TYPE", then details that depend on the type. */
static int show_event(struct agx_buf *out, const struct agx_event_view *v)
{
    const struct agx_event *e = &v->event;
    enum agx_exec_state exec = agx_event_exec_state(e->type);
    char time[AGX_SHOW_SIZE];
    int r = agx_buf_printf(out, "%s  %s  %llu  %s", agx_show_time(e->occurred_at_ns, time),
                           v->sandbox_id, (unsigned long long)e->sequence, agx_event_name(e->type));

    if (r == 0 && e->subject)
        r = agx_buf_printf(out, "  %s", e->subject);
    if (r == 0 && exec != AGX_EXEC_NONE && exec != AGX_EXEC_RUNNING)
        r = agx_buf_printf(out, "  exit code %d", (int)e->exit_code);
    if (r == 0 && e->reason)
        r = agx_buf_printf(out, "  %s", e->reason);
    if (r == 0 && e->error_code)
        r = agx_buf_printf(out, "  %s", e->error_code);
    if (r == 0 && e->error_message)
        r = agx_buf_printf(out, ": %s", e->error_message);
    return r;
}

/* Formatted like an event. A pull is not an event: it has no number, and the time is ours. */
static int show_pull(struct agx_buf *out, const struct agx_pull_view *v)
{
    char time[AGX_SHOW_SIZE];
    int r =
        agx_buf_printf(out, "%s  %s  -  ", agx_show_time(agx_clock_wall_ns(), time), v->sandbox_id);

    return r < 0 ? r : agx_show_pull(out, &v->pull);
}

static int print_line(const struct agx_buf *line, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf printable = AGX_BUF_INIT((size_t)LINE_MAX_BYTES * 8);

    if (agx_show_text(&printable, agx_buf_peek(line)) < 0)
        return agx_error_no_memory(err);
    (void)fwrite(printable.data, 1, printable.len, stdout);
    (void)putchar('\n');
    return 0;
}

/* An event of one sandbox. */
static int take_event(struct feed *f, struct agx_str message, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(LINE_MAX_BYTES);
    struct agx_event_view v;
    int r = agx_event_view_decode(&v, message, err);

    if (r < 0)
        return r;
    f->after = v.event.sequence;
    r = f->json ? 0 : show_event(&line, &v);
    agx_event_view_done(&v);
    if (r < 0)
        return agx_error_no_memory(err);
    return f->json ? agx_cli_json("agbox.v1.SandboxEvent", message, true, err)
                   : print_line(&line, err);
}

/* For all sandboxes: an event, a pull's progress, or only a position. */
static int take_watched(struct feed *f, struct agx_str message, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(LINE_MAX_BYTES);
    struct agx_event_view event;
    struct agx_pull_view pull = { 0 };
    int r = 0, has_event = agx_watch_view_decode(&event, &f->after, message, err);
    int has_pull = has_event == 0 ? agx_pull_view_decode(&pull, message, err) : 0;

    if (has_event < 0 || has_pull < 0)
        return has_event < 0 ? has_event : has_pull;
    if (has_event)
        r = show_event(&line, &event);
    else if (has_pull)
        r = show_pull(&line, &pull);
    if (has_event)
        agx_event_view_done(&event);
    agx_pull_view_done(&pull);
    if (r < 0)
        return agx_error_no_memory(err);
    if (!has_event && !has_pull)
        return 0;
    return f->json ? agx_cli_json("agentix.v1.WatchEventsResponse", message, true, err)
                   : print_line(&line, err);
}

/* 1 after the last requested event. */
static int take_one(struct feed *f, struct agx_str message, struct agx_error **err)
{
    int r = f->id ? take_event(f, message, err) : take_watched(f, message, err);

    f->after_given = true;
    if (fflush(stdout) != 0)
        return 1; /* our output was closed */
    return r < 0 ? r : f->id && !f->follow && f->after >= f->last;
}

static int sandbox_events_start(struct agx_ctl *ctl, const struct feed *f,
                                struct agx_grpc_reply **ret_reply, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_subscribe_request one = { .sandbox_id = (char *)f->id,
                                               .from_sequence = f->after };
    const struct agx_watch_request all = { .after_position = f->after,
                                           .from_now = !f->after_given,
                                           .selector = f->selector };
    int r = f->id ? agx_subscribe_request_encode(&request, &one)
                  : agx_watch_request_encode(&request, &all);

    if (r < 0)
        return agx_error_no_memory(err);
    return agx_ctl_start(ctl, f->id ? AGX_METHOD_SUBSCRIBE : AGX_METHOD_WATCH_EVENTS, &request,
                         ret_reply, err);
}

/* Reads until the last event or a lost connection. A stream that ends is complete. */
static int read_events(struct agx_ctl *ctl, struct feed *f, struct agx_error **err)
{
    struct agx_grpc_reply *reply = NULL;
    struct agx_str message;
    int r = sandbox_events_start(ctl, f, &reply, err), over = 0;

    while (r >= 0 && !over) {
        r = agx_grpc_reply_next(reply, -1, &message, err);
        if (r <= 0)
            break;
        over = take_one(f, message, err);
        r = over < 0 ? over : r;
    }
    if (r < 0 && over == 0 && reply)
        r = agx_ctl_explain(ctl, r, agx_grpc_reply_peek_details(reply), err);
    (void)agx_grpc_reply_close(reply);
    return r;
}

static int find_last(struct agx_ctl *ctl, struct feed *f, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_sandbox_view v = { 0 };
    int r;

    if (agx_id_encode(&request, f->id) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_GET_SANDBOX, &request, &reply, err);
    if (r == 0)
        r = agx_sandbox_view_decode(&v, agx_buf_peek(&reply), NULL, err);
    if (r < 0)
        return r;
    f->last = v.last_sequence;
    agx_sandbox_view_done(&v);
    return 0;
}

static int show_all(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    struct feed *f = user;
    int r = f->id && !f->follow ? find_last(ctl, f, err) : 0;

    if (r < 0 || (f->id && !f->follow && f->after >= f->last))
        return r;
    while ((r = read_events(ctl, f, err)) == -AGX_UNAVAILABLE) {
        r = agx_ctl_again(ctl, err);
        if (r < 0)
            return r;
    }
    return r;
}

static int sandbox_events_parse(struct feed *f, const struct agx_cli *cli, int argc, char **argv)
{
    const char *after = NULL;
    const struct agx_arg table[] = {
        { "follow", 'f', AGX_ARG_FLAG, &f->follow, NULL },
        { "after", 0, AGX_ARG_TEXT, &after, NULL },
        { "label", 0, AGX_ARG_PAIR, &f->selector, NULL },
        { "json", 0, AGX_ARG_FLAG, &f->json, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    f->id = a.words_len > 0 ? a.words[0] : NULL;
    f->after_given = after != NULL;
    if (after && !agx_parse_u64(agx_str_from(after), UINT64_MAX, &f->after))
        return agx_cli_mistake(cli, "--after: expected a number, got '%s'", after);
    if (f->id && f->selector.len > 0)
        return agx_cli_mistake(cli, "expected either an id or labels");
    return AGX_EXIT_GOING;
}

int agx_sandbox_events(const struct agx_cli *cli, int argc, char **argv)
{
    struct feed f = { 0 };
    int status = sandbox_events_parse(&f, cli, argc, argv);

    if (status == AGX_EXIT_GOING)
        status = agx_ctl_run(cli, show_all, &f);
    agx_pairs_done(&f.selector);
    return status;
}

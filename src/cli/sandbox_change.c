/* sandbox_change.c: `agentix sandbox stop`, `resume`, `delete` and `wait`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/sandbox_commands.h"
#include "cli/show.h"
#include "cli/wait.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

#define BIT(name) AGX_WAIT_BIT(AGX_STATE_##name)

/* A request that is accepted at once and executed later. */
struct change {
    const char *method;
    uint32_t states; /* one of these ends the wait */
    enum agx_state wanted;
    const char *what, *done; /* "Waiting for sandbox X WHAT...", "Sandbox DONE in 3.2s." */
};

static const struct change stop = {
    AGX_METHOD_STOP_SANDBOX,
    BIT(STOPPED) | BIT(FAILED) | BIT(DELETING) | BIT(DELETED),
    AGX_STATE_STOPPED,
    "to stop",
    "stopped",
};
static const struct change resume = {
    AGX_METHOD_RESUME_SANDBOX,
    BIT(READY) | BIT(FAILED) | BIT(STOPPED) | BIT(DELETING) | BIT(DELETED),
    AGX_STATE_READY,
    "to be ready",
    "ready",
};
static const struct change delete = {
    AGX_METHOD_DELETE_SANDBOX,
    BIT(DELETED) | BIT(FAILED),
    AGX_STATE_DELETED,
    "to be deleted",
    "deleted",
};

/* The parsed command line. */
struct task {
    const struct change *change;
    const char *id;
    struct agx_pairs selector; /* delete without an id */
    uint32_t states;           /* wait */
    bool no_wait;
    int64_t timeout_ns;
};

static int went_wrong(const struct agx_sandbox_view *v, enum agx_state wanted,
                      struct agx_error **err)
{
    if (v->state == AGX_STATE_FAILED)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "sandbox '%s' failed: %s (%s)", v->id,
                             agx_text(v->error_message), agx_text(v->error_code));
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "sandbox '%s' is %s, not %s", v->id,
                         agx_show_state(v->state), agx_show_state(wanted));
}

/* A purged sandbox was deleted before. */
static int wait_for(struct agx_ctl *ctl, const struct change *c, const struct agx_wait *w,
                    struct agx_progress *p, struct agx_error **err)
{
    struct agx_sandbox_view v = { 0 };
    int r = agx_wait_sandbox(ctl, w, p, &v, err);

    if (r == -AGX_NOT_FOUND && c->wanted == AGX_STATE_DELETED) {
        *err = agx_error_free(*err);
        return 0;
    }
    if (r < 0)
        return r;
    if (v.state != c->wanted)
        r = went_wrong(&v, c->wanted, err);
    agx_sandbox_view_done(&v);
    return r;
}

static int carry_out(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct task *t = user;
    const struct change *c = t->change;
    const struct agx_wait w = { .id = t->id, .states = c->states, .timeout_ns = t->timeout_ns };
    char seconds[AGX_SHOW_SIZE];
    struct agx_progress p;
    int r;

    if (agx_id_encode(&request, t->id) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, c->method, &request, &reply, err);
    if (r < 0 || t->no_wait)
        return r;
    agx_progress_begin(&p, "Waiting for sandbox %s %s...", t->id, c->what);
    r = wait_for(ctl, c, &w, &p, err);
    if (r == 0)
        fprintf(stderr, "Sandbox %s in %s.\n", c->done,
                agx_show_seconds(agx_progress_ns(&p), seconds));
    return r;
}

static int sandbox_change_run(const struct change *c, const struct agx_cli *cli, int argc,
                              char **argv)
{
    struct task t = { .change = c };
    const struct agx_arg table[] = {
        { "no-wait", 0, AGX_ARG_FLAG, &t.no_wait, NULL },
        { "timeout", 0, AGX_ARG_DURATION, &t.timeout_ns, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    t.id = a.words[0];
    return agx_ctl_run(cli, carry_out, &t);
}

int agx_sandbox_stop(const struct agx_cli *cli, int argc, char **argv)
{
    return sandbox_change_run(&stop, cli, argc, argv);
}

int agx_sandbox_resume(const struct agx_cli *cli, int argc, char **argv)
{
    return sandbox_change_run(&resume, cli, argc, argv);
}

static int wait_for_all(struct agx_ctl *ctl, const struct agx_words *ids, const struct task *t,
                        struct agx_error **err)
{
    char seconds[AGX_SHOW_SIZE];
    struct agx_progress p;
    int r = 0;

    agx_progress_begin(&p, "Waiting for %zu sandboxes to be deleted...", ids->len);
    for (size_t i = 0; r == 0 && i < ids->len; i++) {
        const struct agx_wait w = { .id = ids->items[i],
                                    .states = delete.states,
                                    .timeout_ns = t->timeout_ns };

        r = wait_for(ctl, &delete, &w, &p, err);
    }
    if (r == 0)
        fprintf(stderr, "Deleted %zu %s in %s.\n", ids->len,
                ids->len == 1 ? "sandbox" : "sandboxes",
                agx_show_seconds(agx_progress_ns(&p), seconds));
    return r;
}

static int delete_by_label(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_words ids = { 0 };
    const struct task *t = user;
    int r;

    if (agx_delete_request_encode(&request, &t->selector) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_DELETE_SANDBOXES, &request, &reply, err);
    if (r == 0)
        r = agx_deleted_view_decode(&ids, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    if (ids.len == 0)
        fputs("No sandboxes matched the label selector.\n", stderr);
    else if (t->no_wait)
        fprintf(stderr, "Deleting %zu %s.\n", ids.len, ids.len == 1 ? "sandbox" : "sandboxes");
    else
        r = wait_for_all(ctl, &ids, t, err);
    agx_words_done(&ids);
    return r;
}

int agx_sandbox_delete(const struct agx_cli *cli, int argc, char **argv)
{
    struct task t = { .change = &delete };
    const struct agx_arg table[] = {
        { "label", 0, AGX_ARG_PAIR, &t.selector, NULL },
        { "no-wait", 0, AGX_ARG_FLAG, &t.no_wait, NULL },
        { "timeout", 0, AGX_ARG_DURATION, &t.timeout_ns, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status == AGX_EXIT_GOING && (a.words_len > 0) == (t.selector.len > 0))
        status = agx_cli_mistake(cli, "expected either an id or labels");
    if (status == AGX_EXIT_GOING) {
        t.id = a.words_len > 0 ? a.words[0] : NULL;
        status = agx_ctl_run(cli, t.id ? carry_out : delete_by_label, &t);
    }
    agx_pairs_done(&t.selector);
    return status;
}

static int add_state(void *into, const char *value, struct agx_error **err)
{
    enum agx_state state = agx_show_find_state(value);

    if (state == AGX_STATE_NONE)
        return agx_error_set(
            err, AGX_INVALID_ARGUMENT,
            "expected pending, ready, failed, stopped, deleting or deleted, got '%s'", value);
    *(uint32_t *)into |= AGX_WAIT_BIT(state);
    return 0;
}

/* The wanted states, and the states from which none of them can be reached. */
static uint32_t with_ends(uint32_t states)
{
    if (states == 0)
        return 0;
    if (!(states & (BIT(DELETING) | BIT(DELETED))))
        states |= BIT(FAILED) | BIT(DELETING);
    return states | BIT(DELETED);
}

static int wait_and_tell(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    const struct task *t = user;
    const struct agx_wait w = { .id = t->id,
                                .states = with_ends(t->states),
                                .timeout_ns = t->timeout_ns };
    struct agx_sandbox_view v = { 0 };
    struct agx_progress p;
    int r;

    agx_progress_begin(&p, "Waiting for sandbox %s...", t->id);
    r = agx_wait_sandbox(ctl, &w, &p, &v, err);
    if (r < 0)
        return r;
    puts(agx_show_state(v.state));
    if (t->states ? !(t->states & AGX_WAIT_BIT(v.state)) : v.state == AGX_STATE_FAILED)
        r = v.state == AGX_STATE_FAILED
                ? went_wrong(&v, AGX_STATE_FAILED, err)
                : agx_error_set(err, AGX_FAILED_PRECONDITION, "sandbox '%s' is gone", t->id);
    agx_sandbox_view_done(&v);
    return r;
}

int agx_sandbox_wait(const struct agx_cli *cli, int argc, char **argv)
{
    struct task t = { 0 };
    const struct agx_arg table[] = {
        { "state", 0, AGX_ARG_CALL, &t.states, add_state },
        { "timeout", 0, AGX_ARG_DURATION, &t.timeout_ns, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    t.id = a.words[0];
    return agx_ctl_run(cli, wait_and_tell, &t);
}

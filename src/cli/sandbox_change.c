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

/* A request that is accepted at once and carried out later. */
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

struct options {
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

/* A sandbox that is forgotten was deleted before. */
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

static int carry_out(struct agx_ctl *ctl, const struct change *c, const char *id,
                     const struct options *o, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_wait w = { .id = id, .states = c->states, .timeout_ns = o->timeout_ns };
    char seconds[AGX_SHOW_SIZE];
    struct agx_progress p;
    int r;

    if (agx_id_encode(&request, id) < 0)
        return agx_cli_no_memory(err);
    r = agx_ctl_call(ctl, c->method, &request, &reply, err);
    if (r < 0 || o->no_wait)
        return r;
    agx_progress_begin(&p, "Waiting for sandbox %s %s...", id, c->what);
    r = wait_for(ctl, c, &w, &p, err);
    if (r == 0)
        fprintf(stderr, "Sandbox %s in %s.\n", c->done,
                agx_show_seconds(agx_progress_ns(&p), seconds));
    return r;
}

static int run(const struct change *c, const struct agx_cli *cli, int argc, char **argv)
{
    struct options o = { 0 };
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    const struct agx_arg table[] = {
        { "no-wait", 0, AGX_ARG_FLAG, &o.no_wait, NULL },
        { "timeout", 0, AGX_ARG_DURATION, &o.timeout_ns, NULL },
    };
    struct agx_args a;
    int status = agx_args_read(&a, cli, argc, argv, table, AGX_ARRAY_LEN(table));

    if (status == AGX_EXIT_GOING)
        status = agx_args_expect(&a, cli, 1, 1);
    if (status != AGX_EXIT_GOING)
        return status;
    status = AGX_EXIT_OK;
    if (agx_ctl_open(&ctl, cli->env, &err) < 0 || carry_out(&ctl, c, a.words[0], &o, &err) < 0)
        status = agx_cli_fail(err);
    agx_ctl_close(&ctl);
    return status;
}

int agx_sandbox_stop(const struct agx_cli *cli, int argc, char **argv)
{
    return run(&stop, cli, argc, argv);
}

int agx_sandbox_resume(const struct agx_cli *cli, int argc, char **argv)
{
    return run(&resume, cli, argc, argv);
}

static int wait_for_all(struct agx_ctl *ctl, const struct agx_words *ids, const struct options *o,
                        struct agx_error **err)
{
    char seconds[AGX_SHOW_SIZE];
    struct agx_progress p;
    int r = 0;

    agx_progress_begin(&p, "Waiting for %zu sandboxes to be deleted...", ids->len);
    for (size_t i = 0; r == 0 && i < ids->len; i++) {
        const struct agx_wait w = { .id = ids->items[i],
                                    .states = delete.states,
                                    .timeout_ns = o->timeout_ns };

        r = wait_for(ctl, &delete, &w, &p, err);
    }
    if (r == 0)
        fprintf(stderr, "Deleted %zu %s in %s.\n", ids->len,
                ids->len == 1 ? "sandbox" : "sandboxes",
                agx_show_seconds(agx_progress_ns(&p), seconds));
    return r;
}

static int delete_by_label(struct agx_ctl *ctl, const struct agx_pairs *selector,
                           const struct options *o, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_words ids = { 0 };
    int r;

    if (agx_delete_request_encode(&request, selector) < 0)
        return agx_cli_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_DELETE_SANDBOXES, &request, &reply, err);
    if (r == 0)
        r = agx_deleted_view_decode(&ids, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    if (ids.len == 0)
        fputs("No sandboxes matched the label selector.\n", stderr);
    else if (o->no_wait)
        fprintf(stderr, "Deleting %zu %s.\n", ids.len, ids.len == 1 ? "sandbox" : "sandboxes");
    else
        r = wait_for_all(ctl, &ids, o, err);
    agx_words_done(&ids);
    return r;
}

static int delete_them(const struct agx_cli *cli, const char *id, const struct agx_pairs *selector,
                       const struct options *o)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    int status = AGX_EXIT_OK, r = agx_ctl_open(&ctl, cli->env, &err);

    if (r == 0)
        r = id ? carry_out(&ctl, &delete, id, o, &err) : delete_by_label(&ctl, selector, o, &err);
    if (r < 0)
        status = agx_cli_fail(err);
    agx_ctl_close(&ctl);
    return status;
}

int agx_sandbox_delete(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_pairs selector = { 0 };
    struct options o = { 0 };
    const struct agx_arg table[] = {
        { "label", 0, AGX_ARG_PAIR, &selector, NULL },
        { "no-wait", 0, AGX_ARG_FLAG, &o.no_wait, NULL },
        { "timeout", 0, AGX_ARG_DURATION, &o.timeout_ns, NULL },
    };
    struct agx_args a;
    int status = agx_args_read(&a, cli, argc, argv, table, AGX_ARRAY_LEN(table));

    if (status == AGX_EXIT_GOING)
        status = agx_args_expect(&a, cli, 0, 1);
    if (status == AGX_EXIT_GOING && (a.words_len > 0) == (selector.len > 0))
        status = agx_cli_mistake(cli, "it takes either an id or labels");
    if (status == AGX_EXIT_GOING)
        status = delete_them(cli, a.words_len > 0 ? a.words[0] : NULL, &selector, &o);
    agx_pairs_done(&selector);
    return status;
}

static int add_state(void *into, const char *value, struct agx_error **err)
{
    enum agx_state state = agx_show_find_state(value);

    if (state == AGX_STATE_NONE)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'%s' is not pending, ready, failed, stopped, deleting or deleted",
                             value);
    *(uint32_t *)into |= AGX_WAIT_BIT(state);
    return 0;
}

/* The states, and those from which it can come to be in none of them. */
static uint32_t with_ends(uint32_t states)
{
    if (states == 0)
        return 0;
    if (!(states & (BIT(DELETING) | BIT(DELETED))))
        states |= BIT(FAILED) | BIT(DELETING);
    return states | BIT(DELETED);
}

static int wait_and_tell(struct agx_ctl *ctl, const char *id, uint32_t states, int64_t timeout_ns,
                         struct agx_error **err)
{
    const struct agx_wait w = { .id = id, .states = with_ends(states), .timeout_ns = timeout_ns };
    struct agx_sandbox_view v = { 0 };
    struct agx_progress p;
    int r;

    agx_progress_begin(&p, "Waiting for sandbox %s...", id);
    r = agx_wait_sandbox(ctl, &w, &p, &v, err);
    if (r < 0)
        return r;
    puts(agx_show_state(v.state));
    if (states ? !(states & AGX_WAIT_BIT(v.state)) : v.state == AGX_STATE_FAILED)
        r = v.state == AGX_STATE_FAILED
                ? went_wrong(&v, AGX_STATE_FAILED, err)
                : agx_error_set(err, AGX_FAILED_PRECONDITION, "sandbox '%s' is gone", id);
    agx_sandbox_view_done(&v);
    return r;
}

int agx_sandbox_wait(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    int64_t timeout_ns = 0;
    uint32_t states = 0;
    const struct agx_arg table[] = {
        { "state", 0, AGX_ARG_CALL, &states, add_state },
        { "timeout", 0, AGX_ARG_DURATION, &timeout_ns, NULL },
    };
    struct agx_args a;
    int status = agx_args_read(&a, cli, argc, argv, table, AGX_ARRAY_LEN(table));

    if (status == AGX_EXIT_GOING)
        status = agx_args_expect(&a, cli, 1, 1);
    if (status != AGX_EXIT_GOING)
        return status;
    status = AGX_EXIT_OK;
    if (agx_ctl_open(&ctl, cli->env, &err) < 0 ||
        wait_and_tell(&ctl, a.words[0], states, timeout_ns, &err) < 0)
        status = agx_cli_fail(err);
    agx_ctl_close(&ctl);
    return status;
}

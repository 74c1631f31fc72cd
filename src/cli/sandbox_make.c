/* sandbox_make.c: `agentix sandbox create`. */
#include "base/limits.h"
#include "cli/create_options.h"
#include "cli/sandbox_commands.h"
#include "cli/show.h"
#include "cli/wait.h"
#include "wire/method.h"

#include <stdio.h>

#include "base/banned.h"

/* All states except the transient ones before READY. */
#define SETTLED                                                                                    \
    (AGX_WAIT_BIT(AGX_STATE_READY) | AGX_WAIT_BIT(AGX_STATE_FAILED) |                              \
     AGX_WAIT_BIT(AGX_STATE_STOPPED) | AGX_WAIT_BIT(AGX_STATE_DELETING) |                          \
     AGX_WAIT_BIT(AGX_STATE_DELETED))

static int not_ready(const struct agx_sandbox_view *v, struct agx_error **err)
{
    if (v->state != AGX_STATE_FAILED)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "sandbox '%s' is %s: another client "
                             "changed it",
                             v->id, agx_show_state(v->state));
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "sandbox '%s' failed: %s (%s); `agentix sandbox delete` removes it", v->id,
                         agx_text(v->error_message), agx_text(v->error_code));
}

static void tell_ready(const char *id, const struct agx_progress *p)
{
    char seconds[AGX_SHOW_SIZE];

    fprintf(stderr, "Sandbox ready in %s.\n", agx_show_seconds(agx_progress_ns(p), seconds));
    if (p->live)
        fprintf(stderr,
                "Run a command in it: agentix exec run %s -- COMMAND\n"
                "Delete it:           agentix sandbox delete %s\n",
                id, id);
}

static int wait_ready(struct agx_ctl *ctl, const char *id, int64_t timeout_ns,
                      struct agx_error **err)
{
    const struct agx_wait w = {
        .id = id, .states = SETTLED, .timeout_ns = timeout_ns, .pulls = true
    };
    struct agx_sandbox_view v = { 0 };
    struct agx_progress p;
    int r;

    agx_progress_begin(&p, "Waiting for sandbox %s to be ready...", id);
    r = agx_wait_sandbox(ctl, &w, &p, &v, err);
    if (r < 0)
        return r;
    if (v.state == AGX_STATE_READY)
        tell_ready(id, &p);
    else
        r = not_ready(&v, err);
    agx_sandbox_view_done(&v);
    return r;
}

static int tell_warnings(const struct agx_words *warnings, struct agx_error **err)
{
    for (size_t i = 0; i < warnings->len; i++) {
        _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4 * AGX_CLI_REPLY_MAX);

        if (agx_show_text(&text, agx_str_from(warnings->items[i])) < 0)
            return agx_error_no_memory(err);
        fprintf(stderr, "Warning: %.*s\n", AGX_STR_ARG(agx_buf_peek(&text)));
    }
    return 0;
}

/* Prints the id first, so that it is known even if the wait is interrupted. */
static int sandbox_make_tell(struct agx_ctl *ctl, const struct agx_create_options *o,
                             struct agx_str reply, struct agx_error **err)
{
    struct agx_sandbox_view v = { 0 };
    int r;

    if (o->json)
        return agx_cli_json("agbox.v1.CreateSandboxResponse", reply, false, err);
    r = agx_sandbox_view_decode(&v, reply, NULL, err);
    if (r < 0)
        return r;
    r = agx_ident_check("the daemon's sandbox_id", agx_str_from(v.id), err);
    if (r == 0)
        puts(v.id);
    (void)fflush(stdout);
    if (r == 0)
        r = tell_warnings(&v.warnings, err);
    if (r == 0 && !o->no_wait)
        r = wait_ready(ctl, v.id, o->timeout_ns, err);
    agx_sandbox_view_done(&v);
    return r;
}

static int sandbox_make_create(struct agx_ctl *ctl, const struct agx_create_options *o,
                               struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    int r;

    if (agx_create_request_encode(&request, &o->request) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, AGX_METHOD_CREATE_SANDBOX, &request, &reply, err);
    return r < 0 ? r : sandbox_make_tell(ctl, o, agx_buf_peek(&reply), err);
}

int agx_sandbox_create(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_create_options o;
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    int status = agx_create_options_read(&o, cli, argc, argv);

    if (status == AGX_EXIT_GOING) {
        status = AGX_EXIT_OK;
        if (agx_ctl_open(&ctl, cli->env, &err) < 0 || sandbox_make_create(&ctl, &o, &err) < 0)
            status = agx_cli_fail(err);
        agx_ctl_close(&ctl);
    }
    agx_create_options_done(&o);
    return status;
}

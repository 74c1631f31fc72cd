/* exec_run.c: `agentix exec run`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/attach.h"
#include "cli/exec_commands.h"
#include "core/ident.h"
#include "wire/method.h"

#include <stdio.h>

#include "base/banned.h"

struct options {
    const char *exec_id, *cwd;
    bool detach;
    struct agx_exec_request request; /* its strings are owned */
};

static int exec_run_parse(struct options *o, struct agx_args *a, const struct agx_cli *cli,
                          int argc, char **argv)
{
    struct agx_exec *e = &o->request.exec;
    const struct agx_arg table[] = {
        { "cwd", 0, AGX_ARG_TEXT, &o->cwd, NULL },
        { "env-overrides", 0, AGX_ARG_PAIR, &e->env_overrides, NULL },
        { "deadline", 0, AGX_ARG_DURATION, &e->deadline_ns, NULL },
        { "stdin", 'i', AGX_ARG_FLAG, &o->request.has_stdin, NULL },
        { "exec-id", 0, AGX_ARG_TEXT, &o->exec_id, NULL },
        { "detach", 'd', AGX_ARG_FLAG, &o->detach, NULL },
    };
    int status = agx_args_read(a, cli, argc, argv, table, AGX_ARRAY_LEN(table));

    if (status != AGX_EXIT_GOING)
        return status;
    if (a->words_len != 1)
        return agx_cli_mistake(cli, a->words_len == 0 ? "a sandbox is required"
                                                      : "put the command after '--'");
    if (a->rest_len == 0)
        return agx_cli_mistake(cli,
                               a->dashes ? "a command is required" : "put the command after '--'");
    if (o->detach && o->request.has_stdin)
        return agx_cli_mistake(cli, "--detach and --stdin exclude each other");
    return AGX_EXIT_GOING;
}

/* Copies the words of the command line into the request. */
static int exec_run_fill(struct options *o, const struct agx_args *a, struct agx_error **err)
{
    struct agx_exec *e = &o->request.exec;
    int r = agx_text_set(&e->sandbox_id, a->words[0], err);

    if (r == 0)
        r = agx_text_set(&e->id, o->exec_id, err);
    if (r == 0)
        r = agx_text_set(&e->cwd, o->cwd, err);
    for (size_t i = 0; r == 0 && i < a->rest_len; i++)
        r = agx_words_add(&e->command, agx_str_from(a->rest[i]), err);
    return r;
}

static int exec_run_create(struct agx_attach *s, const struct options *o, struct agx_buf *reply,
                           struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);

    if (agx_exec_request_encode(&request, &o->request) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the command is too long");
    return agx_attach_call(s, AGX_METHOD_CREATE_EXEC, &request, reply, err);
}

static int exec_run_run(struct agx_attach *s, const struct options *o, int *ret_status,
                        struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_exec_created_view v = { 0 };
    int r = exec_run_create(s, o, &reply, err);

    if (r == 0)
        r = agx_exec_created_view_decode(&v, agx_buf_peek(&reply), err);
    if (r < 0)
        return r;
    r = agx_ident_check("the daemon's exec_id", agx_str_from(v.exec_id), err);
    if (r == 0 && o->detach)
        puts(v.exec_id);
    else if (r == 0)
        r = agx_attach_run(s, v.exec_id, o->request.has_stdin, ret_status, err);
    agx_exec_created_view_done(&v);
    return r;
}

static int connect_and_run(const struct agx_cli *cli, const struct options *o)
{
    struct agx_attach s = { .signal_fd = -1 };
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    int status = AGX_EXIT_OK, r = agx_ctl_open(&ctl, cli->env, &err);

    if (r == 0)
        r = agx_attach_init(&s, &ctl, &err);
    if (r == 0)
        r = exec_run_run(&s, o, &status, &err);
    if (r < 0)
        status = agx_cli_fail(err);
    if (r == -AGX_CANCELLED && s.signal != 0)
        status = AGX_EXIT_SIGNALLED + s.signal;
    agx_attach_done(&s);
    agx_ctl_close(&ctl);
    return status;
}

int agx_exec_run(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct options o = { 0 };
    struct agx_args a;
    int status = exec_run_parse(&o, &a, cli, argc, argv);

    if (status == AGX_EXIT_GOING)
        status = exec_run_fill(&o, &a, &err) < 0 ? agx_cli_fail(err) : connect_and_run(cli, &o);
    agx_exec_request_done(&o.request);
    return status;
}

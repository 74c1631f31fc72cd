/* get.c: sends a request with an id and prints its answer on stdout. */
#include "cli/get.h"

#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "wire/sandbox_request.h"

#include <stdio.h>

#include "base/banned.h"

struct question {
    const struct agx_get *get;
    const char *id;
    bool json;
};

static int get_ask(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_CLI_TABLE_MAX);
    const struct question *q = user;
    int r;

    if (agx_id_encode(&request, q->id) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, q->get->method, &request, &reply, err);
    if (r == 0 && q->json)
        return agx_cli_json(q->get->reply, agx_buf_peek(&reply), false, err);
    if (r == 0)
        r = q->get->show(&text, agx_buf_peek(&reply), err);
    if (r == 0)
        (void)fwrite(text.data, 1, text.len, stdout);
    return r;
}

int agx_get(const struct agx_get *g, const struct agx_cli *cli, int argc, char **argv)
{
    struct question q = { .get = g };
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &q.json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    q.id = a.words[0];
    return agx_ctl_run(cli, get_ask, &q);
}

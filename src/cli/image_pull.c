/* image_pull.c: `agentix image pull`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/image_commands.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "wire/image_wire.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"

#include <stdio.h>

#include "base/banned.h"

struct pull {
    const char *image;
    bool json;
};

static void image_pull_note(struct agx_progress *p, const struct agx_pull *pull)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(sizeof(p->note) - 1);
    int r = agx_show_bar(&line, pull->bytes_done, pull->bytes_total);

    if (r == 0 && line.len > 0)
        r = agx_buf_push(&line, ' ');
    if (r == 0)
        r = agx_show_pull(&line, pull);
    if (r == 0)
        agx_progress_note(p, agx_buf_peek(&line));
}

/* Handles one message: progress, or the image, which is stored in `answer`. */
static int image_pull_take(struct agx_progress *p, struct agx_str message, struct agx_buf *answer,
                           struct agx_error **err)
{
    struct agx_pull_view v;
    int r = agx_image_pull_decode(&v, message, err);

    if (r < 0)
        return r;
    if (r > 0) {
        image_pull_note(p, &v.pull);
        agx_pull_view_done(&v);
        return 0;
    }
    agx_buf_clear(answer);
    return agx_buf_append(answer, message) < 0 ? agx_error_no_memory(err) : 0;
}

static int image_pull_receive(struct agx_ctl *ctl, struct agx_grpc_reply *reply,
                              struct agx_progress *p, struct agx_buf *answer,
                              struct agx_error **err)
{
    struct agx_str message;
    int r, taken = 0;

    while ((r = agx_grpc_reply_next(reply, agx_progress_wait_ms(p), &message, err)) > 0) {
        if (r != AGX_GRPC_NOTHING_YET)
            taken = image_pull_take(p, message, answer, err);
        if (taken < 0)
            return taken;
        agx_progress_tick(p);
    }
    return agx_ctl_explain(ctl, r, agx_grpc_reply_peek_details(reply), err);
}

/* Prints the image's id, on a terminal also time and size. */
static int image_pull_tell(const struct pull *pull, struct agx_str answer,
                           const struct agx_progress *p, struct agx_error **err)
{
    char seconds[AGX_SHOW_SIZE], size[AGX_SHOW_SIZE];
    struct agx_image_views v;
    int r;

    if (pull->json)
        return agx_cli_json("agentix.v1.PullImageResponse", answer, false, err);
    r = agx_image_views_decode(&v, answer, err);
    if (r == 0 && v.len != 1)
        r = agx_error_set(err, AGX_INTERNAL, "the daemon ended the pull without an image");
    if (r == 0) {
        fprintf(stderr, "Image ready in %s, %s.\n", agx_show_seconds(agx_progress_ns(p), seconds),
                agx_show_bytes(v.items[0].size_bytes, size));
        r = agx_cli_line(v.items[0].id, err);
    }
    agx_image_views_done(&v);
    return r;
}

static int pull(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf answer = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_grpc_reply *reply = NULL;
    const struct pull *q = user;
    struct agx_progress p;
    int r;

    if (agx_id_encode(&request, q->image) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_start(ctl, AGX_METHOD_PULL_IMAGE, &request, &reply, err);
    if (r < 0)
        return r;
    agx_progress_begin(&p, "Pulling %s...", q->image);
    r = image_pull_receive(ctl, reply, &p, &answer, err);
    agx_progress_end(&p);
    (void)agx_grpc_reply_close(reply);
    return r < 0 ? r : image_pull_tell(q, agx_buf_peek(&answer), &p, err);
}

int agx_image_pull(const struct agx_cli *cli, int argc, char **argv)
{
    struct pull q = { 0 };
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &q.json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    q.image = a.words[0];
    return agx_ctl_run(cli, pull, &q);
}

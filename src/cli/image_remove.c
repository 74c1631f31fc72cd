/* image_remove.c: `agentix image rm` and `prune`. */
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/image_commands.h"
#include "cli/show.h"
#include "wire/image_wire.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"

#include <stdio.h>

#include "base/banned.h"

struct removal {
    const char *method, *reply; /* `reply`: the name of its answer, for JSON */
    const char *image;          /* NULL: all unused ones without a name */
    bool json;
};

/* Prints "Removed NAME" lines in the server's order. */
static int show_gone(struct agx_buf *out, const char *what, const struct agx_words *words)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < words->len; i++) {
        r = agx_buf_printf(out, "%s ", what);
        if (r == 0)
            r = agx_show_text(out, agx_str_from(words->items[i]));
        if (r == 0)
            r = agx_buf_push(out, '\n');
    }
    return r;
}

static int show_removed(struct agx_buf *out, const struct agx_images_removed_view *v)
{
    char size[AGX_SHOW_SIZE];
    int r = show_gone(out, "Untagged", &v->names);

    if (r == 0)
        r = show_gone(out, "Deleted", &v->ids);
    return r < 0 ? r : agx_buf_printf(out, "Freed %s.\n", agx_show_bytes(v->bytes, size));
}

static int image_remove_tell(struct agx_str reply, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_CLI_TABLE_MAX);
    struct agx_images_removed_view v;
    int r = agx_images_removed_decode(&v, reply, err);

    if (r < 0)
        return r;
    if (show_removed(&text, &v) < 0)
        r = agx_error_no_memory(err);
    agx_images_removed_done(&v);
    if (r == 0)
        (void)fwrite(text.data, 1, text.len, stdout);
    return r;
}

static int image_remove_run(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_CLI_REPLY_MAX);
    const struct removal *m = user;
    int r;

    if (m->image && agx_id_encode(&request, m->image) < 0)
        return agx_error_no_memory(err);
    r = agx_ctl_call(ctl, m->method, &request, &reply, err);
    if (r < 0)
        return r;
    return m->json ? agx_cli_json(m->reply, agx_buf_peek(&reply), false, err)
                   : image_remove_tell(agx_buf_peek(&reply), err);
}

int agx_image_rm(const struct agx_cli *cli, int argc, char **argv)
{
    struct removal m = { AGX_METHOD_REMOVE_IMAGE, "agentix.v1.RemoveImageResponse", NULL, false };
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &m.json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    m.image = a.words[0];
    return agx_ctl_run(cli, image_remove_run, &m);
}

int agx_image_prune(const struct agx_cli *cli, int argc, char **argv)
{
    struct removal m = { AGX_METHOD_PRUNE_IMAGES, "agentix.v1.PruneImagesResponse", NULL, false };
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &m.json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 0 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    return status == AGX_EXIT_GOING ? agx_ctl_run(cli, image_remove_run, &m) : status;
}

/* image_read.c: `agentix image list` and `inspect`. */
#include "base/clock.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/get.h"
#include "cli/image_commands.h"
#include "cli/show.h"
#include "cli/table.h"
#include "wire/image_wire.h"
#include "wire/method.h"

#include <stdio.h>

#include "base/banned.h"

enum { CELL_MAX = 1 << 20 };

static int add_row(struct agx_table *t, const struct agx_image_view *v, const char *name,
                   int64_t now)
{
    char span[AGX_SHOW_SIZE], added[AGX_SHOW_SIZE + sizeof(" ago")], size[AGX_SHOW_SIZE];
    char sandboxes[AGX_SHOW_SIZE];

    (void)snprintf(added, sizeof(added), "%s ago", agx_show_span(now - v->added_at_ns, span));
    (void)snprintf(sandboxes, sizeof(sandboxes), "%u", v->sandboxes);
    return agx_table_add(t, (struct agx_str[]){ agx_str_from(name), agx_show_image_id(v->id),
                                                agx_str_from(added),
                                                agx_str_from(agx_show_bytes(v->size_bytes, size)),
                                                agx_str_from(sandboxes) });
}

/* Adds a row for each name, or one row without a name. */
static int add_rows(struct agx_table *t, const struct agx_image_view *v, int64_t now)
{
    int r = v->names.len == 0 ? add_row(t, v, "-", now) : 0;

    for (size_t i = 0; r == 0 && i < v->names.len; i++)
        r = add_row(t, v, v->names.items[i], now);
    return r;
}

static int print_table(const struct agx_image_views *views, struct agx_error **err)
{
    static const char *const titles[] = { "NAME", "IMAGE ID", "ADDED", "SIZE", "SANDBOXES" };
    int64_t now = agx_clock_wall_ns();
    struct agx_table t;
    int r = agx_table_init(&t, titles, AGX_ARRAY_LEN(titles));

    for (size_t i = 0; r == 0 && i < views->len; i++)
        r = add_rows(&t, &views->items[i], now);
    return agx_table_end(&t, r, err);
}

static int image_read_list(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_CLI_REPLY_MAX);
    struct agx_image_views views = { 0 };
    const bool *json = user;
    int r = agx_ctl_call(ctl, AGX_METHOD_LIST_IMAGES, NULL, &reply, err);

    if (r == 0 && *json)
        return agx_cli_json("agentix.v1.ListImagesResponse", agx_buf_peek(&reply), false, err);
    if (r == 0)
        r = agx_image_views_decode(&views, agx_buf_peek(&reply), err);
    if (r == 0)
        r = print_table(&views, err);
    agx_image_views_done(&views);
    return r;
}

int agx_image_list(const struct agx_cli *cli, int argc, char **argv)
{
    bool json = false;
    const struct agx_arg table[] = { { "json", 0, AGX_ARG_FLAG, &json, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 0 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    return status == AGX_EXIT_GOING ? agx_ctl_run(cli, image_read_list, &json) : status;
}

/* A line for each word. */
static int show_each(struct agx_buf *out, const char *name, const struct agx_words *words)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < words->len; i++)
        r = agx_show_line(out, name, agx_str_from(words->items[i]));
    return r;
}

static int show_pairs(struct agx_buf *out, const char *name, const struct agx_pairs *pairs)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(CELL_MAX);
    int r = 0;

    for (size_t i = 0; r == 0 && i < pairs->len; i++) {
        agx_buf_clear(&text);
        r = agx_buf_printf(&text, "%s=%s", pairs->items[i].key, pairs->items[i].value);
        if (r == 0)
            r = agx_show_line(out, name, agx_buf_peek(&text));
    }
    return r;
}

/* All words on one line. */
static int show_words(struct agx_buf *out, const char *name, const struct agx_words *words)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(CELL_MAX);
    int r = agx_show_words(&text, words);

    return r < 0 ? r : agx_show_line(out, name, agx_buf_peek(&text));
}

static int show_image(struct agx_buf *out, const struct agx_image_view *v)
{
    char time[AGX_SHOW_SIZE];
    int r = agx_show_line(out, "id", agx_str_from(v->id));

    if (r == 0)
        r = show_each(out, "name", &v->names);
    if (r == 0)
        r = agx_show_line(out, "digest", agx_str_from(v->digest));
    if (r == 0)
        r = agx_show_line(out, "added_at", agx_str_from(agx_show_time(v->added_at_ns, time)));
    return r < 0 ? r
                 : agx_buf_printf(out, "size_bytes=%llu\nsandboxes=%u\n",
                                  (unsigned long long)v->size_bytes, v->sandboxes);
}

static int show_details(struct agx_buf *out, const struct agx_image_details *d)
{
    int r;

    if ((r = agx_show_line(out, "created", agx_str_from(d->created))) < 0 ||
        (r = agx_show_line(out, "architecture", agx_str_from(d->architecture))) < 0 ||
        (r = agx_show_line(out, "user", agx_str_from(d->user))) < 0 ||
        (r = agx_show_line(out, "working_dir", agx_str_from(d->working_dir))) < 0 ||
        (r = show_words(out, "entrypoint", &d->entrypoint)) < 0 ||
        (r = show_words(out, "command", &d->command)) < 0 ||
        (r = agx_show_line(out, "stop_signal", agx_str_from(d->stop_signal))) < 0 ||
        (r = show_words(out, "healthcheck", &d->healthcheck.test)) < 0 ||
        (r = show_each(out, "env", &d->env)) < 0 ||
        (r = show_each(out, "exposed_port", &d->exposed_ports)) < 0 ||
        (r = show_pairs(out, "label", &d->labels)) < 0)
        return r;
    return show_each(out, "layer", &d->layers);
}

static int image_read_show(struct agx_buf *out, struct agx_str reply, struct agx_error **err)
{
    struct agx_image_views v = { 0 };
    struct agx_image_details d = { 0 };
    int r = agx_image_views_decode(&v, reply, err);

    if (r == 0 && v.len != 1)
        r = agx_error_set(err, AGX_INTERNAL, "the daemon's answer has no image");
    if (r == 0)
        r = agx_image_details_decode(&d, reply, err);
    if (r == 0 && (show_image(out, &v.items[0]) < 0 || show_details(out, &d) < 0))
        r = agx_error_no_memory(err);
    agx_image_details_done(&d);
    agx_image_views_done(&v);
    return r;
}

int agx_image_inspect(const struct agx_cli *cli, int argc, char **argv)
{
    static const struct agx_get get = { AGX_METHOD_INSPECT_IMAGE, "agentix.v1.InspectImageResponse",
                                        image_read_show };

    return agx_get(&get, cli, argc, argv);
}

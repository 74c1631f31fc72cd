/*
 * up_copy.c: makes the copies into a new primary, one after the other, before it is started.
 *
 *     STAT --> UPLOAD --> STAT of the next ... --> START
 *
 * The last STAT looks at nothing; it uploads the files of builtin tools (up_tool_files.c).
 *
 * What the image has at a target decides where the content goes, so the engine is asked first.
 */
#include "backend/docker/op_up.h"

#include "codec/base64.h"

#include "base/banned.h"

static const struct agx_copy *up_copy_of(const struct agx_docker_up *up)
{
    return &up->task.sandbox.spec.copies[up->copy];
}

int agx_docker_up_read_stat(const struct agx_docker_answer *answer, int64_t *ret_mode,
                            char **ret_link, struct agx_error **err)
{
    const char *header = agx_docker_answer_header(answer, "X-Docker-Container-Path-Stat");
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);
    _cleanup_json_ json_t *stat = NULL;
    int r = agx_base64_decode(&text, agx_str_from(agx_text(header)), err);

    if (r == 0)
        r = agx_json_parse(agx_buf_peek(&text), AGX_HTTP_HEAD_MAX, AGX_DEPTH_MAX, &stat, err);
    if (r == 0)
        r = agx_json_get_int(stat, "mode", 0, UINT32_MAX, ret_mode, err);
    if (r < 0)
        return agx_error_wrap(err, r, "the engine's description of a path");
    return agx_text_set(ret_link, json_string_value(json_object_get(stat, "linkTarget")), err);
}

static void on_stat(struct agx_op *op, size_t hops, const struct agx_docker_answer *answer,
                    struct agx_error *error);

static int ask_stat(struct agx_docker_up *up, const char *path, size_t hops, struct agx_error **err)
{
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "HEAD", .what = "look at the target of a copy" },
            .path = agx_docker_path("/containers/%s/archive?path=%s", up->parts[0].id, path),
            .answered = on_stat,
            .tag = hops },
        err);
}

/* A link counts as its target. */
static void take_stat(struct agx_docker_up *up, size_t hops, const struct agx_docker_answer *answer,
                      struct agx_error **err)
{
    _cleanup_free_ char *link = NULL;
    int64_t mode = 0;

    if (agx_docker_up_read_stat(answer, &mode, &link, err) < 0)
        return;
    up->copy_target = mode & AGX_GO_MODE_DIR ? AGX_COPIES_DIRECTORY : AGX_COPIES_OTHER;
    if (mode & AGX_GO_MODE_SYMLINK && link && hops < AGX_DOCKER_COPY_LINKS)
        (void)!ask_stat(up, link, hops + 1, err);
}

static void on_stat(struct agx_op *op, size_t hops, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    if (error && error->code == AGX_NOT_FOUND) {
        agx_error_freep(&error);
        up->copy_target = AGX_COPIES_MISSING;
    } else if (!error) {
        take_stat(up, hops, answer, &error);
    }
    agx_op_fail(op, &error);
}

int agx_docker_up_enter_stat(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    if (up->copy == up->task.sandbox.spec.copies_len) {
        if (up->host_view.files.len > 0)
            r = agx_docker_up_give_files(up, err);
        return agx_op_wait(op, r, UP_START, err);
    }
    r = ask_stat(up, up_copy_of(up)->target, 0, err);
    return agx_op_wait(op, r, UP_UPLOAD, err);
}

/* ---- upload ---- */

static ssize_t read_copy(struct agx_op *op, void *buf, size_t size)
{
    return agx_copies_read(agx_docker_up_of(op)->copies, buf, size);
}

static void on_more(void *user)
{
    struct agx_docker_up *up = user;

    agx_docker_ask_more(&up->task.op);
}

/* What the source says counts more than what the engine made of half a stream. */
static void on_uploaded(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                        struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    struct agx_error *why = agx_copies_take_error(up->copies);

    (void)tag;
    (void)answer;
    if (why)
        agx_error_free(error);
    else
        why = error;
    if (why)
        (void)agx_error_wrap(&why, -(int)why->code, "copy '%s' to '%s'", up_copy_of(up)->source,
                             up_copy_of(up)->target);
    up->copies = agx_copies_close(up->copies);
    up->copy++;
    agx_op_fail(op, &why);
}

int agx_docker_up_enter_upload(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const struct agx_copies_request q = { .copy = up_copy_of(up),
                                          .there = up->copy_target,
                                          .pipe_bytes = AGX_DOCKER_COPY_PIPE,
                                          .more = on_more,
                                          .asker = { agx_docker_by(op)->host.sources,
                                                     (uid_t)up->task.sandbox.owner_uid } };
    int r = agx_copies_open(agx_docker_by(op)->base.loop, agx_docker_by(op)->copies_pool, &q, up,
                            &up->copies, err);

    if (r == 0)
        r = agx_docker_ask(
            op,
            &(struct agx_docker_query){
                .request = { .method = "PUT",
                             .what = "unpack",
                             .deadline_ms = AGX_DOCKER_COPY_MS,
                             .quiet_ms = AGX_DOCKER_COPY_QUIET_MS },
                .path = agx_docker_path("/containers/%s/archive?path=%s&noOverwriteDirNonDir=true",
                                        up->parts[0].id,
                                        agx_copies_unpack_at(up_copy_of(up), up->copy_target)),
                .read = read_copy,
                .answered = on_uploaded },
            err);
    return agx_op_wait(op, r, UP_STAT, err);
}

/*
 * up_tool_files.c: uploads the files of builtin tools, for the user that commands run as, after the
 * spec's copies.
 *
 * The owner comes from the image's passwd. The engine returns it from the container that was made
 * and not started, as a tar of one file: untrusted bytes.
 */
#include "backend/docker/op_up.h"

#include "backend/docker/create_body.h"

#include "base/banned.h"

/* The part of a tar header that is read here. */
enum { HEAD_BYTES = 512, SIZE_AT = 124, SIZE_DIGITS = 11, TYPE_AT = 156 };

/* The first file of a tar; empty when it is not a regular file, or is cut. */
static struct agx_str first_file(struct agx_str tar)
{
    const struct agx_str none = { 0 };
    size_t size = 0;

    if (tar.len < HEAD_BYTES || (tar.ptr[TYPE_AT] != '0' && tar.ptr[TYPE_AT] != '\0'))
        return none;
    for (size_t i = 0; i < SIZE_DIGITS; i++) {
        const char c = tar.ptr[SIZE_AT + i];

        if (c < '0' || c > '7')
            return none;
        size = size * 8 + (size_t)(c - '0');
    }
    tar = agx_str_skip(tar, HEAD_BYTES);
    return size <= tar.len ? (struct agx_str){ tar.ptr, size } : none;
}

static ssize_t read_tar(struct agx_op *op, void *buf, size_t size)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const struct agx_str left = agx_str_skip(agx_buf_peek(&up->tar), up->tar_at);
    const size_t n = AGX_MIN(left.len, size);

    if (n > 0)
        memcpy(buf, left.ptr, n);
    up->tar_at += n;
    return (ssize_t)n;
}

static void on_uploaded(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                        struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    (void)tag;
    (void)answer;
    agx_tool_files_wipe(&up->tar);
    agx_tool_files_done(&up->host_view.files);
    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "copy files of builtin tools");
    agx_op_fail(op, &error);
}

static int upload(struct agx_docker_up *up, struct agx_error **err)
{
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "PUT",
                         .what = "unpack",
                         .deadline_ms = AGX_DOCKER_COPY_MS,
                         .quiet_ms = AGX_DOCKER_COPY_QUIET_MS },
            .path = agx_docker_path("/containers/%s/archive?path=/&noOverwriteDirNonDir=true",
                                    up->parts[0].id),
            .read = read_tar,
            .answered = on_uploaded },
        err);
}

static int pack(struct agx_docker_up *up, struct agx_str passwd, struct agx_error **err)
{
    const struct agx_docker_image *image = &up->parts[0].image;
    const char *user = agx_docker_exec_user(&agx_docker_by(&up->task.op)->maker, image);
    const char *home_env = agx_tool_files_home_env(&up->task.sandbox.spec, &image->env);
    struct agx_tool_owner owner;
    int r = agx_tool_files_find_owner(user, passwd, home_env, &owner, err);

    return r < 0 ? r
                 : agx_tool_files_tar(&up->host_view.files, &owner, &up->host_view.binds, &up->tar,
                                      err);
}

static int ask_passwd(struct agx_docker_up *up, const char *path, size_t hops,
                      struct agx_error **err);

/* A link counts as its target. 1: that was requested. */
static int up_tool_files_follow(struct agx_docker_up *up, size_t hops,
                                const struct agx_docker_answer *answer, struct agx_error **err)
{
    _cleanup_free_ char *link = NULL;
    int64_t mode = 0;
    int r = agx_docker_up_read_stat(answer, &mode, &link, err);

    if (r < 0 || !(mode & AGX_GO_MODE_SYMLINK) || !link || hops >= AGX_DOCKER_COPY_LINKS)
        return r;
    r = ask_passwd(up, link, hops + 1, err);
    return r < 0 ? r : 1;
}

/* An image without such a file has users by number. */
static void on_passwd(struct agx_op *op, size_t hops, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    struct agx_str passwd = { 0 };
    int r = error ? 0 : up_tool_files_follow(up, hops, answer, &error);

    if (error && error->code == AGX_NOT_FOUND)
        agx_error_freep(&error);
    else if (r == 0 && !error)
        passwd = first_file(answer->fetched->body);
    up->tar_at = 0;
    if (r == 0 && !error && pack(up, passwd, &error) == 0)
        (void)!upload(up, &error);
    agx_op_fail(op, &error);
}

static int ask_passwd(struct agx_docker_up *up, const char *path, size_t hops,
                      struct agx_error **err)
{
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "GET", .what = "read the users of the image" },
            .path = agx_docker_path("/containers/%s/archive?path=%s", up->parts[0].id, path),
            .answered = on_passwd,
            .tag = hops },
        err);
}

int agx_docker_up_give_files(struct agx_docker_up *up, struct agx_error **err)
{
    return ask_passwd(up, "/etc/passwd", 0, err);
}

/* image_import.c: `agentix image import`: a file, standard input or a directory. */
#include "base/fd.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/dirtar.h"
#include "cli/image_commands.h"
#include "cli/show.h"
#include "cli/upload.h"
#include "wire/image_wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

struct import {
    const char *source; /* as given; "-": standard input */
    const char *name;
    bool json;
    int fd; /* of the source */
    struct stat st;
    struct agx_upload upload;
};

static int open_source(struct import *im, struct agx_error **err)
{
    bool standard = strcmp(im->source, "-") == 0;

    im->fd = standard ? dup(STDIN_FILENO) : open(im->source, O_RDONLY | O_CLOEXEC);
    if (im->fd < 0 || fstat(im->fd, &im->st) < 0)
        return agx_error_errno(err, errno, "open '%s'", im->source);
    if (standard && isatty(im->fd))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "standard input is a terminal: pipe an archive into it");
    if (standard && S_ISDIR(im->st.st_mode))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "standard input is a directory: name it instead");
    if (S_ISREG(im->st.st_mode))
        im->upload.total = (uint64_t)im->st.st_size;
    return 0;
}

static int image_import_put(void *user, struct agx_str bytes, struct agx_error **err)
{
    return agx_upload_put(user, bytes, err);
}

/* Sends the content of a file or pipe. */
static int send_bytes(struct import *im, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf piece = AGX_BUF_INIT(AGX_CLI_IMPORT_CHUNK);
    ssize_t n;
    int r = 0;

    if (agx_buf_reserve(&piece, AGX_CLI_IMPORT_CHUNK) < 0)
        return agx_error_no_memory(err);
    while (r == 0) {
        r = agx_upload_wait(&im->upload, im->fd, err);
        if (r < 0)
            return r;
        n = read(im->fd, piece.data, AGX_CLI_IMPORT_CHUNK);
        if (n == 0)
            return 0;
        if (n > 0)
            r = agx_upload_put(&im->upload, agx_str_bytes(piece.data, (size_t)n), err);
        else if (errno != EINTR && errno != EAGAIN)
            r = agx_error_errno(err, errno, "read '%s'", im->source);
    }
    return r;
}

static int transfer(struct import *im, struct agx_buf *answer, struct agx_error **err)
{
    int r = agx_upload_begin(&im->upload, err);

    if (r == 0)
        r = S_ISDIR(im->st.st_mode)
                ? agx_dirtar_write(im->source, image_import_put, &im->upload, err)
                : send_bytes(im, err);
    return r < 0 ? r : agx_upload_end(&im->upload, answer, err);
}

static int image_import_tell(const struct import *im, struct agx_str answer,
                             const struct agx_progress *p, struct agx_error **err)
{
    char seconds[AGX_SHOW_SIZE], size[AGX_SHOW_SIZE];
    struct agx_image_views v;
    uint64_t bytes = 0;
    int r;

    if (im->json)
        return agx_cli_json("agentix.v1.ImportImageResponse", answer, false, err);
    r = agx_image_views_decode(&v, answer, err);
    for (size_t i = 0; r == 0 && i < v.len; i++) {
        bytes += v.items[i].size_bytes;
        r = agx_cli_line(v.items[i].id, err);
    }
    if (r == 0)
        fprintf(stderr, "%s ready in %s, %s.\n", v.len == 1 ? "Image" : "Images",
                agx_show_seconds(agx_progress_ns(p), seconds), agx_show_bytes(bytes, size));
    agx_image_views_done(&v);
    return r;
}

static int import(struct agx_ctl *ctl, void *user, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf answer = AGX_BUF_INIT(AGX_CLI_REPLY_MAX);
    struct import *im = user;
    struct agx_progress p;
    int r;

    im->upload.ctl = ctl;
    im->upload.name = im->name;
    im->upload.progress = &p;
    agx_progress_begin(&p, "Importing %s...", im->source);
    r = transfer(im, &answer, err);
    agx_progress_end(&p);
    agx_upload_done(&im->upload);
    return r < 0 ? r : image_import_tell(im, agx_buf_peek(&answer), &p, err);
}

int agx_image_import(const struct agx_cli *cli, int argc, char **argv)
{
    struct import im = { .fd = -1, .upload.signal_fd = -1 };
    const struct agx_arg table[] = {
        { "name", 0, AGX_ARG_TEXT, &im.name, NULL },
        { "json", 0, AGX_ARG_FLAG, &im.json, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_error *err = NULL;
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    im.source = a.words[0];
    if (open_source(&im, &err) < 0)
        status = agx_cli_fail(err);
    else
        status = agx_ctl_run(cli, import, &im);
    agx_closep(&im.fd);
    return im.upload.signal != 0 ? AGX_EXIT_SIGNALLED + im.upload.signal : status;
}

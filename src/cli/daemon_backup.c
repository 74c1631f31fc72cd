/*
 * daemon_backup.c: `agentix daemon backup`: copies the daemon's store into a file, which appears
 * only when all of it is on disk.
 */
#include "base/fd.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/daemon_commands.h"
#include "cli/interrupt.h"
#include "wire/method.h"
#include "wire/view.h"

#include <assert.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

struct target {
    const char *path;
    bool force;
    char *part; /* a temporary name in the same directory, until complete */
    int fd;
    uint64_t bytes;
    int signal_fd;
    int signal; /* the received signal; 0: none */
};

/* mkostemp(3) makes it 0600. */
static int open_part(struct target *t, struct agx_error **err)
{
    if (!t->force && access(t->path, F_OK) == 0)
        return agx_error_set(err, AGX_ALREADY_EXISTS, "'%s' already exists; --force replaces it",
                             t->path);
    if (asprintf(&t->part, "%s.XXXXXX", t->path) < 0) {
        t->part = NULL;
        return agx_error_no_memory(err);
    }
    t->fd = mkostemp(t->part, O_CLOEXEC);
    if (t->fd >= 0)
        return 0;
    free(t->part);
    t->part = NULL;
    return agx_error_errno(err, errno, "make a file beside '%s'", t->path);
}

/* As agx_grpc_reply_next(), until a signal comes. */
static int daemon_backup_next(struct agx_ctl *ctl, struct target *t, struct agx_grpc_reply *reply,
                              struct agx_str *message, struct agx_error **err)
{
    int r;

    while ((r = agx_grpc_reply_next(reply, 0, message, err)) == AGX_GRPC_NOTHING_YET) {
        struct pollfd fds[] = {
            { .fd = t->signal_fd, .events = POLLIN },
            { .fd = agx_grpc_client_fd(ctl->client),
              .events = agx_grpc_client_events(ctl->client) },
        };

        (void)poll(fds, AGX_ARRAY_LEN(fds), -1);
        t->signal = agx_interrupt_take(t->signal_fd);
        if (t->signal != 0)
            return agx_error_set(err, AGX_CANCELLED, "interrupted: '%s' was not written", t->path);
    }
    return r;
}

static int daemon_backup_receive(struct agx_ctl *ctl, struct target *t, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf piece = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_grpc_reply *reply = NULL;
    struct agx_str message;
    int r = agx_ctl_start(ctl, AGX_METHOD_BACKUP, NULL, &reply, err), w = 0;

    if (r < 0)
        return r;
    while (w == 0 && (r = daemon_backup_next(ctl, t, reply, &message, err)) > 0) {
        agx_buf_clear(&piece);
        w = agx_backup_view_decode(message, &piece, err);
        if (w == 0)
            w = agx_fd_write_all(t->fd, agx_buf_peek(&piece), err);
        t->bytes += piece.len;
    }
    if (w == 0 && t->signal == 0)
        r = agx_ctl_explain(ctl, r, agx_grpc_reply_peek_details(reply), err);
    (void)agx_grpc_reply_close(reply);
    return w < 0 ? w : r;
}

/* Syncing the directory makes the name durable. */
static void sync_directory(const char *path)
{
    _cleanup_free_ char *copy = strdup(path);
    _cleanup_close_ int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0)
        (void)fsync(fd);
}

/* link(2), unlike rename(2), never replaces a file. */
static int put_in_place(struct target *t, struct agx_error **err)
{
    int r;

    assert(t->part);
    if (fsync(t->fd) < 0)
        return agx_error_errno(err, errno, "write '%s' to the disk", t->part);
    r = t->force ? rename(t->part, t->path) : link(t->part, t->path);
    if (r < 0 && errno == EEXIST)
        return agx_error_set(err, AGX_ALREADY_EXISTS, "'%s' already exists; --force replaces it",
                             t->path);
    if (r < 0)
        return agx_error_errno(err, errno, "make '%s'", t->path);
    sync_directory(t->path);
    return 0;
}

static int backup(struct agx_ctl *ctl, struct target *t, struct agx_error **err)
{
    int r = agx_interrupt_open(&t->signal_fd, err);

    if (r == 0)
        r = open_part(t, err);
    if (r == 0)
        r = daemon_backup_receive(ctl, t, err);
    if (r == 0)
        r = put_in_place(t, err);
    if (t->part)
        (void)unlink(t->part); /* after a rename it no longer exists */
    agx_closep(&t->fd);
    agx_closep(&t->signal_fd);
    free(t->part);
    if (r == 0)
        fprintf(stderr, "Wrote %llu bytes to %s.\n", (unsigned long long)t->bytes, t->path);
    return r;
}

int agx_daemon_backup(const struct agx_cli *cli, int argc, char **argv)
{
    struct target t = { .fd = -1, .signal_fd = -1 };
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    const struct agx_arg table[] = { { "force", 0, AGX_ARG_FLAG, &t.force, NULL } };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 1, 1 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    t.path = a.words[0];
    status = AGX_EXIT_OK;
    if (agx_ctl_connect(&ctl, cli->env, &err) < 0 || backup(&ctl, &t, &err) < 0)
        status = agx_cli_fail(err);
    agx_ctl_close(&ctl);
    return t.signal != 0 ? AGX_EXIT_SIGNALLED + t.signal : status;
}

/*
 * daemon_logs.c: `agentix daemon logs`: prints the end of the log file, and follows it. The daemon
 * renames a full file and begins a new one, so we follow the name.
 */
#include "base/fd.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/daemon_commands.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { PIECE = 64 << 10, LINES = 100 };

/* Where the last `lines` lines begin; lines written meanwhile are printed in addition. */
static int find_start(int fd, uint64_t lines, off_t *ret_at, struct agx_error **err)
{
    char buf[PIECE];
    struct stat st;
    off_t end;

    if (fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "stat the log");
    /* Counts newlines backwards: the last line's own, and one more. */
    for (end = st.st_size, lines++; end > 0;) {
        size_t size = (size_t)AGX_MIN(end, (off_t)sizeof(buf));
        ssize_t n = pread(fd, buf, size, end - (off_t)size);

        if (n <= 0)
            return agx_error_errno(err, n < 0 ? errno : EIO, "read the log");
        for (size_t i = size; i > 0; i--) {
            if (buf[i - 1] != '\n')
                continue;
            if (--lines == 0) {
                *ret_at = end - (off_t)size + (off_t)i;
                return 0;
            }
        }
        end -= (off_t)size;
    }
    *ret_at = 0;
    return 0;
}

/* Prints from the descriptor's position to the end. */
static int print_rest(int fd, struct agx_error **err)
{
    char buf[PIECE];
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = read(fd, buf, sizeof(buf))) != 0) {
        if (n < 0 && errno != EINTR)
            return agx_error_errno(err, errno, "read the log");
        if (n > 0)
            r = agx_fd_write_all(STDOUT_FILENO, agx_str_bytes(buf, (size_t)n), err);
    }
    return r;
}

static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

/* Prints new lines; *fd may become another file's. */
static int catch_up(int *fd, const char *path, struct agx_error **err)
{
    int r = print_rest(*fd, err);

    if (r == 0 && !is_same_file(*fd, path)) {
        int next = open(path, O_RDONLY | O_CLOEXEC);

        if (next < 0)
            return 0; /* it does not exist yet */
        r = print_rest(*fd, err);
        (void)close(*fd);
        *fd = next;
        if (r == 0)
            r = print_rest(*fd, err);
    }
    return r;
}

static int daemon_logs_follow(int *fd, const char *path, const char *dir, struct agx_error **err)
{
    _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC);
    char events[4096];
    int r;

    if (watch < 0 || inotify_add_watch(watch, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        return agx_error_errno(err, errno, "watch '%s'", dir);
    do {
        r = catch_up(fd, path, err);
        /* Any file of the directory may have changed: an empty read costs nothing. */
    } while (r == 0 && (read(watch, events, sizeof(events)) > 0 || errno == EINTR));
    return r;
}

static int print_log(const struct agx_cli_env *env, uint64_t lines, bool go_on,
                     struct agx_error **err)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_free_ char *dir = NULL;
    _cleanup_close_ int fd = -1;
    off_t at = 0;
    int r = agx_xdg_path(&env->xdg, AGX_XDG_DATA, "agentix", &dir, err);

    if (r == 0)
        r = agx_xdg_path(&env->xdg, AGX_XDG_DATA, "agentix/agentixd.log", &path, err);
    if (r < 0)
        return r;
    assert(path && dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "'%s' does not exist: no daemon ran in the background here; a daemon "
                             "in the foreground or under systemd logs there (journalctl -u "
                             "agentixd)",
                             path);
    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s'", path);
    r = find_start(fd, lines, &at, err);
    if (r == 0 && lseek(fd, at, SEEK_SET) < 0)
        r = agx_error_errno(err, errno, "read '%s'", path);
    if (r == 0)
        r = go_on ? daemon_logs_follow(&fd, path, dir, err) : print_rest(fd, err);
    return r;
}

int agx_daemon_logs(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    uint64_t lines = LINES;
    bool go_on = false;
    const struct agx_arg table[] = {
        { "follow", 'f', AGX_ARG_FLAG, &go_on, NULL },
        { "lines", 'n', AGX_ARG_NUMBER, &lines, NULL },
    };
    const struct agx_args_want want = { table, AGX_ARRAY_LEN(table), 0, 0 };
    struct agx_args a;
    int status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    return print_log(cli->env, lines, go_on, &err) < 0 ? agx_cli_fail(err) : AGX_EXIT_OK;
}

#include "daemon/logfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"
#include "loop/uverr.h"

struct agx_logfile {
    uv_timer_t timer;
    int fd;
    char *path;
    uint64_t max_bytes;
    unsigned keep;
};

static int open_file(const char *path, struct agx_error **err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

    return fd >= 0 ? fd : agx_error_errno(err, errno, "open the log '%s'", path);
}

/* "NAME.n"; the file itself is number 0. False when that is too long for a path. */
static bool name_of(const struct agx_logfile *f, unsigned n, char out[PATH_MAX])
{
    int len = n == 0 ? snprintf(out, PATH_MAX, "%s", f->path)
                     : snprintf(out, PATH_MAX, "%s.%u", f->path, n);

    return len > 0 && len < PATH_MAX;
}

/* Renames each file to the next number and drops the last. A failed rename is ignored. */
static void shift(const struct agx_logfile *f)
{
    char from[PATH_MAX], to[PATH_MAX];

    if (f->keep == 0) {
        (void)unlink(f->path);
        return;
    }
    for (unsigned n = f->keep; n > 0; n--) {
        if (name_of(f, n - 1, from) && name_of(f, n, to))
            (void)rename(from, to);
    }
}

int agx_logfile_reopen(struct agx_logfile *f, struct agx_error **err)
{
    int fd = open_file(f->path, err);

    if (fd < 0)
        return fd;
    if (dup3(fd, f->fd, O_CLOEXEC) < 0) {
        int r = agx_error_errno(err, errno, "take the log '%s'", f->path);

        (void)close(fd);
        return r;
    }
    (void)close(fd);
    return 0;
}

static void on_timer(uv_timer_t *t)
{
    struct agx_logfile *f = container_of(t, struct agx_logfile, timer);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct stat st;

    if (fstat(f->fd, &st) < 0 || (uint64_t)st.st_size < f->max_bytes)
        return;
    shift(f);
    if (agx_logfile_reopen(f, &err) < 0)
        AGX_LOG(AGX_LOG_WARN, "log.rotate_failed", AGX_F_ERR(err), AGX_F_BOOL("ignored", true));
}

static void on_closed(uv_handle_t *h)
{
    struct agx_logfile *f = container_of((uv_timer_t *)h, struct agx_logfile, timer);

    free(f->path);
    free(f);
}

int agx_logfile_open(struct agx_loop *l, const struct agx_logfile_config *c,
                     const struct agx_log_config *log, struct agx_logfile **ret_file,
                     struct agx_error **err)
{
    struct agx_log_config sink = *log;
    struct agx_logfile *f;
    int r, fd = open_file(c->path, err);

    if (fd < 0)
        return fd;
    f = agx_new(struct agx_logfile);
    f->fd = sink.fd = fd;
    f->max_bytes = c->max_bytes;
    f->keep = c->keep;
    f->path = agx_str_dup(agx_str_from(c->path));
    r = f->path ? uv_timer_init(agx_loop_uv(l), &f->timer) : UV_ENOMEM;
    if (r < 0) {
        (void)close(fd);
        free(f->path);
        free(f);
        return agx_uverr_set(err, r, "watch the log '%s'", c->path);
    }
    (void)uv_timer_start(&f->timer, on_timer, c->check_ms, c->check_ms);
    uv_unref((uv_handle_t *)&f->timer);
    agx_log_setup(&sink);
    *ret_file = f;
    return 0;
}

struct agx_logfile *agx_logfile_close(struct agx_logfile *f)
{
    if (f)
        uv_close((uv_handle_t *)&f->timer, on_closed);
    return NULL;
}

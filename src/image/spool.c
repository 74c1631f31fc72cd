/*
 * spool.c: takes bytes on the loop and writes them by a job.
 *
 * Two buffers: `pending` collects new bytes, `writing` belongs to the job while it runs; they are
 * swapped when it ends. A spool that is closed while its job runs is freed at the job's end.
 */
#include "image/images_internal.h"

#include "base/mem.h"

#include <fcntl.h>

#include "base/banned.h"

struct agx_spool {
    struct agx_job job;
    struct agx_images *s;
    int fd;
    uint64_t max_bytes, taken;
    struct agx_buf pending;
    agx_spool_ready_fn ready;
    void *user;
    bool busy;   /* the job runs, or settle_now() will */
    bool paused; /* the writer was told to wait */
    bool closed;
    bool anew; /* the next job empties the file first */
    struct agx_error *error;
    agx_done_fn settled;
    void *settled_user;
    /* Used by the job. */
    struct agx_buf writing;
    uint64_t at;
    bool truncate;
};

static void spool_free(struct agx_spool *sp)
{
    agx_closep(&sp->fd);
    agx_buf_done(&sp->pending);
    agx_buf_done(&sp->writing);
    agx_error_free(sp->error);
    images_release(sp->s);
    free(sp);
}

/* ---- the job ---- */

static int spool_run(struct agx_job *j, struct agx_error **err)
{
    struct agx_spool *sp = container_of(j, struct agx_spool, job);
    struct agx_str rest = agx_buf_peek(&sp->writing);

    if (sp->truncate) {
        sp->at = 0;
        if (ftruncate(sp->fd, 0) < 0)
            return agx_error_errno(err, errno, "empty a spool file");
    }
    while (rest.len > 0) {
        ssize_t n = pwrite(sp->fd, rest.ptr, rest.len, (off_t)sp->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return agx_error_errno(err, errno, "write a spool file in '%s/tmp'", sp->s->dir);
        sp->at += (uint64_t)n;
        rest = agx_str_skip(rest, (size_t)n);
    }
    return 0;
}

static void spool_done(struct agx_job *j, struct agx_error *error);

static const struct agx_job_kind spool_kind = { "spool", spool_run, spool_done, NULL };

/* Writes what is pending, unless the job is running. */
static void spool_go(struct agx_spool *sp)
{
    struct agx_buf swap = sp->writing;

    if (sp->busy || sp->error || (sp->pending.len == 0 && !sp->anew))
        return;
    agx_buf_clear(&swap);
    sp->writing = sp->pending;
    sp->pending = swap;
    sp->truncate = sp->anew;
    sp->anew = false;
    sp->job = (struct agx_job){ .kind = &spool_kind };
    if (images_job(&sp->job, sp->s->spool_pool, &sp->error) == 0)
        sp->busy = true;
}

/* Calls `ready` when there is something to report. The spool may be gone afterwards. */
static void spool_tell(struct agx_spool *sp)
{
    agx_done_fn settled = sp->settled;

    if (settled && !sp->busy) {
        sp->settled = NULL;
        settled(sp->settled_user, sp->error ? agx_error_dup(sp->error) : NULL);
        return;
    }
    if (sp->paused && (sp->error || sp->pending.len < AGX_SPOOL_HIGH)) {
        sp->paused = false;
        if (sp->ready)
            sp->ready(sp->user);
    }
}

static void spool_done(struct agx_job *j, struct agx_error *error)
{
    struct agx_spool *sp = container_of(j, struct agx_spool, job);

    sp->busy = false;
    if (sp->closed) {
        agx_error_free(error);
        spool_free(sp);
        return;
    }
    agx_error_propagate(&sp->error, &error);
    spool_go(sp);
    spool_tell(sp);
}

/* ---- the loop's side ---- */

/* A file without a name. */
static int open_nameless(struct agx_images *s, struct agx_error **err)
{
    char name[AGX_UUID_TEXT_SIZE];
    int fd, r = agx_uuid_new(name, err);

    if (r < 0)
        return r;
    fd = openat(s->tmpfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || unlinkat(s->tmpfd, name, 0) < 0) {
        r = agx_error_errno(err, errno, "make a file in '%s/tmp'", s->dir);
        agx_closep(&fd);
        return r;
    }
    return fd;
}

int agx_spool_open(struct agx_images *s, uint64_t max_bytes, agx_spool_ready_fn ready, void *user,
                   struct agx_spool **ret_spool, struct agx_error **err)
{
    int fd = s->stopping ? agx_error_set(err, AGX_UNAVAILABLE, "the store of images is closing")
                         : open_nameless(s, err);
    struct agx_spool *sp;

    if (fd < 0)
        return fd;
    sp = agx_new(struct agx_spool);
    sp->s = s;
    sp->fd = fd;
    sp->max_bytes = max_bytes;
    sp->ready = ready;
    sp->user = user;
    sp->pending.max = sp->writing.max = AGX_SPOOL_HELD_MAX;
    s->users++;
    *ret_spool = sp;
    return 0;
}

int agx_spool_write(struct agx_spool *sp, struct agx_str bytes, struct agx_error **err)
{
    if (sp->error) {
        struct agx_error *copy = agx_error_dup(sp->error);
        int code = -(int)copy->code;

        agx_error_propagate(err, &copy);
        return code;
    }
    if (bytes.len > sp->max_bytes - sp->taken)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "more than %llu bytes came, the limit",
                             (unsigned long long)sp->max_bytes);
    if (agx_buf_append(&sp->pending, bytes) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "too many bytes wait for the disk");
    sp->taken += bytes.len;
    spool_go(sp);
    if (sp->pending.len < AGX_SPOOL_HIGH)
        return 0;
    sp->paused = true;
    return 1;
}

uint64_t agx_spool_size(const struct agx_spool *sp)
{
    return sp->taken;
}

void agx_spool_rewind(struct agx_spool *sp)
{
    agx_buf_clear(&sp->pending);
    sp->taken = 0;
    sp->anew = true;
    spool_go(sp);
}

struct agx_spool *agx_spool_close(struct agx_spool *sp)
{
    if (!sp)
        return NULL;
    sp->closed = true;
    sp->settled = NULL;
    if (!sp->busy)
        spool_free(sp);
    return NULL;
}

static void settle_now(void *user)
{
    struct agx_spool *sp = user;

    sp->busy = false;
    if (sp->closed)
        spool_free(sp);
    else
        spool_tell(sp);
}

void spool_settle(struct agx_spool *sp, agx_done_fn fn, void *user)
{
    sp->settled = fn;
    sp->settled_user = user;
    spool_go(sp);
    if (sp->busy)
        return;
    sp->busy = true;
    images_later(sp->s, settle_now, sp);
}

int spool_fd(const struct agx_spool *sp)
{
    return sp->fd;
}

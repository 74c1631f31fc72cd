/*
 * copies.c: a thread that writes a tar, a reader on the loop, and the pipe between them.
 *
 * The pipe is a ring buffer. The thread waits on `room` while it is full. The reader never waits:
 * when there is nothing yet it says so and is `waiting`, and the thread sends to `wake` with its
 * next bytes. The end and every failure come by the job's `done`, on the loop.
 *
 * Invariants:
 *  (1) fields below `lock` are accessed with it held. The others belong to the loop thread, except
 *      `copy`, `asker`, `there` and `stop`, which the job's thread reads.
 *  (2) the thread sends to `wake` only while not `closed`; the loop closes the handle after that.
 *  (3) memory is freed when both the job and the handle have ended. A thread that hangs in its
 *      source holds only that memory.
 */
#include "backend/files/copies.h"

#include "backend/files/copytar.h"
#include "loop/uverr.h"

#include <pthread.h>

#include "base/banned.h"

struct agx_copies {
    struct agx_job job;
    uv_async_t wake;
    unsigned n_holds; /* the job until its `done`, the handle until it is closed */
    struct agx_copy copy;
    enum agx_copies_target there;
    struct agx_sources_asker asker;
    void (*more)(void *user);
    void *user;
    bool ended;
    int code;                /* negative: how it ended */
    struct agx_error *error; /* why it failed, until it is taken */
    atomic_bool stop;

    pthread_mutex_t lock;
    pthread_cond_t room;
    size_t size, head, len;
    bool waiting, closed;
    uint8_t ring[];
};

const char *agx_copies_unpack_at(const struct agx_copy *copy, enum agx_copies_target there)
{
    return there == AGX_COPIES_DIRECTORY ? copy->target : "/";
}

/* ---- the thread's side ---- */

static int copies_put(void *user, struct agx_str bytes, struct agx_error **err)
{
    struct agx_copies *c = user;

    pthread_mutex_lock(&c->lock);
    while (bytes.len > 0 && !atomic_load(&c->stop)) {
        size_t end = (c->head + c->len) % c->size;
        size_t n = AGX_MIN(AGX_MIN(c->size - c->len, c->size - end), bytes.len);

        if (n == 0) {
            pthread_cond_wait(&c->room, &c->lock);
            continue;
        }
        memcpy(c->ring + end, bytes.ptr, n);
        c->len += n;
        bytes = agx_str_skip(bytes, n);
        if (c->waiting && !c->closed)
            (void)uv_async_send(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
    if (bytes.len > 0)
        return agx_error_set(err, AGX_CANCELLED, "the copy was cancelled");
    return 0;
}

/* The source's name in the tar. */
static int name_in_tar(const struct agx_copies *c, bool is_dir, const char **ret_name,
                       struct agx_error **err)
{
    if (is_dir && c->there == AGX_COPIES_OTHER)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "copy target is not a directory: %s",
                             c->copy.target);
    if (c->there != AGX_COPIES_DIRECTORY)
        *ret_name = c->copy.target + 1;
    else
        *ret_name = is_dir ? "" : strrchr(c->copy.source, '/') + 1;
    return 0;
}

static int copies_run(struct agx_job *j, struct agx_error **err)
{
    struct agx_copies *c = container_of(j, struct agx_copies, job);
    _cleanup_(agx_copytree_closep) struct agx_copytree *t = NULL;
    const char *name = NULL;
    int r = agx_copytree_open(&c->copy, &c->asker, &c->stop, &t, err);

    if (r == 0)
        r = name_in_tar(c, S_ISDIR(agx_copytree_stat(t)->st_mode), &name, err);
    if (r == 0)
        r = agx_copytar_write(t, name, copies_put, c, err);
    return r < 0 ? agx_error_wrap(err, r, "copy '%s'", c->copy.source) : 0;
}

/* ---- the loop's side ---- */

static void copy_done(struct agx_copy *copy)
{
    free(copy->source);
    free(copy->target);
    agx_words_done(&copy->exclude_patterns);
}

static void unhold(struct agx_copies *c)
{
    if (--c->n_holds > 0)
        return;
    copy_done(&c->copy);
    agx_sources_unref(c->asker.sources);
    agx_error_free(c->error);
    pthread_cond_destroy(&c->room);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Wakes a reader that found nothing. */
static void copies_tell(struct agx_copies *c)
{
    bool waiting;

    pthread_mutex_lock(&c->lock);
    waiting = c->waiting && (c->len > 0 || c->ended);
    if (waiting)
        c->waiting = false;
    pthread_mutex_unlock(&c->lock);
    if (waiting && !c->closed)
        c->more(c->user);
}

static void on_wake(uv_async_t *wake)
{
    copies_tell(container_of(wake, struct agx_copies, wake));
}

static void on_wake_closed(uv_handle_t *h)
{
    unhold(container_of((uv_async_t *)h, struct agx_copies, wake));
}

static void on_done(struct agx_job *j, struct agx_error *error)
{
    struct agx_copies *c = container_of(j, struct agx_copies, job);

    c->ended = true;
    c->code = error ? -(int)error->code : 0;
    if (c->code == -AGX_UNAVAILABLE)
        c->code = -AGX_ABORTED; /* the reader would take UNAVAILABLE for "none yet" */
    c->error = error;
    copies_tell(c); /* may close it: the hold keeps it alive */
    unhold(c);
}

static void ask_to_stop(struct agx_job *j)
{
    struct agx_copies *c = container_of(j, struct agx_copies, job);

    atomic_store(&c->stop, true);
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->room);
    pthread_mutex_unlock(&c->lock);
}

static const struct agx_job_kind copy_kind = { "copy", copies_run, on_done, ask_to_stop };

static int take_copy(struct agx_copy *to, const struct agx_copy *from, struct agx_error **err)
{
    int r = agx_text_set(&to->source, from->source, err);

    if (r == 0)
        r = agx_text_set(&to->target, from->target, err);
    if (r == 0)
        r = agx_words_copy(&to->exclude_patterns, &from->exclude_patterns, err);
    return r;
}

int agx_copies_open(struct agx_loop *l, struct agx_pool *pool, const struct agx_copies_request *q,
                    void *user, struct agx_copies **ret_copies, struct agx_error **err)
{
    struct agx_copies *c = calloc(1, sizeof(*c) + q->pipe_bytes);
    int r;

    agx_loop_assert(l);
    if (!c)
        return agx_error_errno(err, ENOMEM, "copy '%s'", q->copy->source);
    c->job.kind = &copy_kind;
    c->there = q->there;
    c->asker = (struct agx_sources_asker){ agx_sources_ref(q->asker.sources), q->asker.uid };
    c->more = q->more;
    c->user = user;
    c->size = q->pipe_bytes;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->room, NULL);
    c->n_holds = 1;
    r = take_copy(&c->copy, q->copy, err);
    if (r == 0 && (r = uv_async_init(agx_loop_uv(l), &c->wake, on_wake)) < 0)
        r = agx_uverr_set(err, r, "copy '%s'", q->copy->source);
    if (r < 0) {
        unhold(c);
        return r;
    }
    uv_unref((uv_handle_t *)&c->wake); /* the job keeps the loop running */
    r = agx_job_start(&c->job, pool, err);
    if (r < 0) {
        uv_close((uv_handle_t *)&c->wake, on_wake_closed);
        return r;
    }
    c->n_holds++;
    *ret_copies = c;
    return 0;
}

ssize_t agx_copies_read(struct agx_copies *c, void *buf, size_t size)
{
    size_t n;

    if (c->ended && c->code < 0)
        return c->code;
    pthread_mutex_lock(&c->lock);
    n = AGX_MIN(AGX_MIN(c->len, c->size - c->head), size);
    memcpy(buf, c->ring + c->head, n);
    c->head = (c->head + n) % c->size;
    c->len -= n;
    c->waiting = n == 0 && !c->ended;
    if (n > 0)
        pthread_cond_signal(&c->room);
    pthread_mutex_unlock(&c->lock);
    if (n == 0 && !c->ended)
        return -AGX_UNAVAILABLE;
    return (ssize_t)n;
}

struct agx_error *agx_copies_take_error(struct agx_copies *c)
{
    return AGX_TAKE_PTR(c->error);
}

struct agx_copies *agx_copies_close(struct agx_copies *c)
{
    if (!c)
        return NULL;
    pthread_mutex_lock(&c->lock);
    c->closed = true;
    pthread_mutex_unlock(&c->lock);
    if (!c->ended)
        agx_job_cancel(&c->job);
    uv_close((uv_handle_t *)&c->wake, on_wake_closed);
    return NULL;
}

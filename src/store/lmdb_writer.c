/*
 * lmdb_writer.c: the commit thread and its two queues.
 *
 *     loop thread --push--> waiting --group--> [transaction, fsync] --> finished --take--> loop
 *
 * Invariants:
 *  (1) the fields below `lock` are accessed under it; a batch belongs to the thread that took it
 *      from a queue.
 *  (2) batches leave in the order of their arrival.
 */
#include "store/lmdb_writer.h"

#include "base/limits.h"

#include <assert.h>
#include <signal.h>

#include "base/banned.h"

struct agx_lmdb_writer {
    struct agx_lmdb_env *env;
    bool grouping;
    void (*notify)(void *user);
    void *user;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t work; /* `waiting` has grown, or `quit` */
    struct agx_store_queue waiting, finished;
    bool quit;
    struct agx_store_stats stats;
};

/* Under the lock: takes the next group. */
static void take_group(struct agx_lmdb_writer *w, struct agx_store_queue *group)
{
    struct agx_store_batch *b = agx_store_queue_pop(&w->waiting);
    size_t bytes = b->bytes.len;

    agx_store_queue_push(group, b);
    while (w->grouping && (b = agx_store_queue_peek(&w->waiting)) &&
           b->bytes.len <= AGX_STORE_GROUP_MAX - AGX_MIN(bytes, AGX_STORE_GROUP_MAX)) {
        bytes += b->bytes.len;
        agx_store_queue_push(group, agx_store_queue_pop(&w->waiting));
    }
}

/* Counts the results of the batches; `r` is the result of their transaction. */
static void count_group(const struct agx_store_queue *group, int r, struct agx_store_stats *add)
{
    uint64_t stored = 0;

    AGX_LIST_FOR_EACH (const struct agx_store_batch, b, &group->batches, node) {
        if (r == 0 && !b->error) {
            stored++;
            add->bytes += b->bytes.len;
        }
    }
    add->batches += stored;
    add->commits += stored > 0;
    add->group_max = AGX_MAX(add->group_max, stored);
    if (r < 0)
        add->failed += group->len;
    else
        add->refused += group->len - stored;
}

static void store_group(struct agx_lmdb_writer *w, struct agx_store_queue *group,
                        struct agx_store_stats *add)
{
    struct agx_error *error = NULL;
    struct agx_store_queue each = { 0 }, one = { 0 };
    struct agx_store_batch *b;
    int r = agx_lmdb_env_commit(w->env, group, 0, &error);

    if (r == 0 || group->len == 1) {
        count_group(group, r, add);
        if (r < 0) {
            b = agx_store_queue_peek(group);
            agx_error_free(b->error);
            b->error = error;
        }
        return;
    }
    agx_error_free(error);
    agx_store_queue_move(&each, group);
    while ((b = agx_store_queue_pop(&each))) {
        agx_store_queue_push(&one, b);
        store_group(w, &one, add); /* recurses once: the group has one batch */
        agx_store_queue_move(group, &one);
    }
}

/* Under the lock. */
static void add_stats(struct agx_store_stats *to, const struct agx_store_stats *from)
{
    to->commits += from->commits;
    to->batches += from->batches;
    to->refused += from->refused;
    to->failed += from->failed;
    to->bytes += from->bytes;
    to->group_max = AGX_MAX(to->group_max, from->group_max);
}

static void *thread_main(void *arg)
{
    struct agx_lmdb_writer *w = arg;

    (void)pthread_setname_np(pthread_self(), "store-writer");
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct agx_store_stats add = { 0 };
        struct agx_store_queue group = { 0 };

        while (w->waiting.len == 0 && !w->quit)
            pthread_cond_wait(&w->work, &w->lock);
        if (w->waiting.len == 0)
            break;
        take_group(w, &group);
        pthread_mutex_unlock(&w->lock);
        store_group(w, &group, &add);
        pthread_mutex_lock(&w->lock);
        add_stats(&w->stats, &add);
        agx_store_queue_move(&w->finished, &group);
        w->notify(w->user);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int agx_lmdb_writer_start(struct agx_lmdb_env *e, bool grouping, void (*notify)(void *user),
                          void *user, struct agx_lmdb_writer **ret_writer, struct agx_error **err)
{
    struct agx_lmdb_writer *w = calloc(1, sizeof(*w));
    sigset_t all, before;
    int r;

    if (!w)
        return agx_error_errno(err, ENOMEM, "start the store's writer");
    *w = (struct agx_lmdb_writer){ .env = e, .grouping = grouping, .notify = notify, .user = user };
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the loop's thread handles signals */
    r = pthread_create(&w->thread, NULL, thread_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0) {
        pthread_cond_destroy(&w->work);
        pthread_mutex_destroy(&w->lock);
        free(w);
        return agx_error_errno(err, r, "start the store's writer");
    }
    *ret_writer = w;
    return 0;
}

void agx_lmdb_writer_push(struct agx_lmdb_writer *w, struct agx_store_queue *from)
{
    pthread_mutex_lock(&w->lock);
    agx_store_queue_move(&w->waiting, from);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void agx_lmdb_writer_take(struct agx_lmdb_writer *w, struct agx_store_queue *to)
{
    pthread_mutex_lock(&w->lock);
    agx_store_queue_move(to, &w->finished);
    pthread_mutex_unlock(&w->lock);
}

void agx_lmdb_writer_stats(struct agx_lmdb_writer *w, struct agx_store_stats *ret)
{
    pthread_mutex_lock(&w->lock);
    *ret = w->stats;
    pthread_mutex_unlock(&w->lock);
}

struct agx_lmdb_writer *agx_lmdb_writer_stop(struct agx_lmdb_writer *w)
{
    if (!w)
        return NULL;
    pthread_mutex_lock(&w->lock);
    assert(w->waiting.len == 0 && w->finished.len == 0);
    w->quit = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

/*
 * loop.c: the event loop, its thread, and the way in from other threads.
 *
 * Invariants:
 *  (1) `queue` is touched under `lock`; all else by the owner's thread only.
 *  (2) uv_async_send() coalesces, so one wake-up takes the whole queue. What is posted meanwhile
 *      wakes the loop again: a function that posts itself cannot starve the loop.
 *  (3) `wake` is unreferenced, so an idle loop ends.
 */
#include "loop/loop.h"

#include "base/list.h"
#include "loop/uverr.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "base/banned.h"

struct post {
    struct agx_list_node node;
    void (*fn)(void *user);
    void *user;
};

struct agx_loop {
    uv_loop_t uv;
    uv_async_t wake;
    pthread_t owner;
    pthread_mutex_t lock;
    struct agx_list queue; /* of struct post */
};

/* Runs the currently queued functions. Returns their number. */
static size_t loop_drain(struct agx_loop *l)
{
    struct agx_list queue = { 0 };
    struct post *p;
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    agx_list_move(&queue, &l->queue);
    pthread_mutex_unlock(&l->lock);
    while ((p = AGX_LIST_TAKE(&queue, struct post, node))) {
        p->fn(p->user);
        free(p);
        n++;
    }
    return n;
}

static void on_wake(uv_async_t *wake)
{
    loop_drain(container_of(wake, struct agx_loop, wake));
}

int agx_loop_open(struct agx_loop **ret_loop, struct agx_error **err)
{
    struct agx_loop *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return agx_error_errno(err, ENOMEM, "open event loop");
    r = uv_loop_init(&l->uv);
    if (r < 0) {
        free(l);
        return agx_uverr_set(err, r, "open event loop");
    }
    r = uv_async_init(&l->uv, &l->wake, on_wake);
    if (r < 0) {
        (void)uv_loop_close(&l->uv);
        free(l);
        return agx_uverr_set(err, r, "open event loop");
    }
    uv_unref((uv_handle_t *)&l->wake);
    l->owner = pthread_self();
    pthread_mutex_init(&l->lock, NULL);
    *ret_loop = l;
    return 0;
}

uv_loop_t *agx_loop_uv(struct agx_loop *l)
{
    return &l->uv;
}

bool agx_loop_is_mine(const struct agx_loop *l)
{
    return pthread_equal(l->owner, pthread_self());
}

void agx_loop_run(struct agx_loop *l)
{
    agx_loop_assert(l);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
}

void agx_loop_stop(struct agx_loop *l)
{
    agx_loop_assert(l);
    uv_stop(&l->uv);
}

int agx_loop_post(struct agx_loop *l, void (*fn)(void *user), void *user)
{
    struct post *p = malloc(sizeof(*p));

    if (!p)
        return -AGX_RESOURCE_EXHAUSTED;
    *p = (struct post){ .fn = fn, .user = user };
    pthread_mutex_lock(&l->lock);
    agx_list_push_back(&l->queue, &p->node);
    (void)uv_async_send(&l->wake); /* under the lock: `wake` is open as long as we hold it */
    pthread_mutex_unlock(&l->lock);
    return 0;
}

/* The handles still open besides `wake`, counted by kind. */
struct inventory {
    const struct agx_loop *loop;
    unsigned closing;
    unsigned open[UV_HANDLE_TYPE_MAX];
    unsigned n_open;
};

static void count_handle(uv_handle_t *h, void *arg)
{
    struct inventory *c = arg;

    if (h == (const uv_handle_t *)&c->loop->wake)
        return;
    if (uv_is_closing(h)) {
        c->closing++;
        return;
    }
    c->open[uv_handle_get_type(h)]++;
    c->n_open++;
}

static int report_leak(const struct inventory *c, struct agx_error **err)
{
    char kinds[256] = "";
    size_t used = 0;

    for (int t = 0; t < UV_HANDLE_TYPE_MAX && used < sizeof(kinds); t++) {
        if (c->open[t] == 0)
            continue;
        used += (size_t)snprintf(kinds + used, sizeof(kinds) - used, "%s%u %s", used ? ", " : "",
                                 c->open[t], uv_handle_type_name((uv_handle_type)t));
    }
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "close event loop: handles left open: %s",
                         kinds);
}

int agx_loop_close(struct agx_loop *l, struct agx_error **err)
{
    struct inventory c;
    int r;

    if (!l)
        return 0;
    agx_loop_assert(l);
    do {
        while (loop_drain(l) > 0)
            ;
        c = (struct inventory){ .loop = l };
        uv_walk(&l->uv, count_handle, &c);
        if (c.n_open > 0)
            return report_leak(&c, err);
        if (c.closing > 0)
            (void)uv_run(&l->uv, UV_RUN_ONCE);
    } while (c.closing > 0);
    if (uv_loop_alive(&l->uv))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "close event loop: requests still in flight");
    uv_close((uv_handle_t *)&l->wake, NULL);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    r = uv_loop_close(&l->uv);
    assert(r == 0);
    (void)r;
    pthread_mutex_destroy(&l->lock);
    free(l);
    return 0;
}

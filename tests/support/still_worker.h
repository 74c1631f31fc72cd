/*
 * still_worker.h: runtime/worker.h without processes and sockets. A program that includes this gets
 * these functions instead of those in the library. The server's frames to its worker stay in the
 * lanes; the test sends the worker's frames and decides when the worker dies.
 */
#ifndef AGX_TESTS_STILL_WORKER_H
#define AGX_TESTS_STILL_WORKER_H

#include "base/mem.h"
#include "codec/frame.h"
#include "codec/worker_frame.h"
#include "loop/loop.h"
#include "runtime/worker.h"
#include "tests/support/fuzz.h"

struct agx_worker {
    const struct agx_worker_ops *ops;
    void *user;
    struct agx_buf lanes[AGX_LANE_COUNT];
    int stdout_fd, stderr_fd;
    bool busy; /* pretends that its lanes are full */
    uv_timer_t handle;
    void (*stopped)(void *user);
    void *stopped_user;
};

struct agx_worker *agx_worker_open(struct agx_loop *l, struct agx_conn_group *g,
                                   const struct agx_worker_config *config,
                                   const struct agx_worker_ops *ops, void *user)
{
    struct agx_worker *w = agx_new(struct agx_worker);

    (void)g;
    w->ops = ops;
    w->user = user;
    w->stdout_fd = config->stdout_fd;
    w->stderr_fd = config->stderr_fd;
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        w->lanes[i] = (struct agx_buf)AGX_BUF_INIT(config->max_frame);
    (void)uv_timer_init(agx_loop_uv(l), &w->handle);
    return w;
}

struct agx_buf *agx_worker_out(struct agx_worker *w, enum agx_remote_lane lane)
{
    return &w->lanes[lane];
}

size_t agx_worker_queued(const struct agx_worker *w)
{
    return w->busy ? SIZE_MAX : w->lanes[AGX_LANE_LOOP].len + w->lanes[AGX_LANE_THREAD].len;
}

bool agx_worker_is_ready(const struct agx_worker *w)
{
    return !w->busy;
}

int agx_worker_pid(const struct agx_worker *w)
{
    (void)w;
    return -1;
}

static void still_worker_closed(uv_handle_t *h)
{
    struct agx_worker *w = container_of((uv_timer_t *)h, struct agx_worker, handle);

    w->stopped(w->stopped_user);
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_done(&w->lanes[i]);
    free(w);
}

void agx_worker_stop(struct agx_worker *w, uint64_t grace_ms, void (*stopped)(void *user),
                     void *user)
{
    (void)grace_ms;
    w->stopped = stopped;
    w->stopped_user = user;
    uv_close((uv_handle_t *)&w->handle, still_worker_closed);
}

/* Asserts that its lanes have whole frames that a worker understands. */
static inline void still_worker_check(const struct agx_worker *w)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++) {
        struct agx_str in = agx_buf_peek(&w->lanes[i]), frame;
        struct agx_frame_decoder d;
        struct agx_worker_frame f;

        agx_frame_decoder_init(&d, w->lanes[i].max);
        while (agx_frame_decoder_next(&d, &in, &frame, NULL) > 0) {
            FUZZ_CHECK(agx_worker_frame_parse(frame, &f, NULL) == 0 && !f.bad);
            FUZZ_CHECK(f.type != AGX_WF_UNKNOWN);
        }
        FUZZ_CHECK(agx_frame_decoder_end(&d, NULL) == 0);
        agx_frame_decoder_done(&d);
    }
}

/* The worker has read everything in its lanes. */
static inline void still_worker_drain(struct agx_worker *w)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_clear(&w->lanes[i]);
    w->busy = false;
    w->ops->drained(w->user);
}

/* The worker dies, and its lanes are emptied. */
static inline void still_worker_die(struct agx_worker *w)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_clear(&w->lanes[i]);
    w->busy = false;
    w->ops->gone(w->user, AGX_STR("WorkerExited"), "it was killed", -9);
}

/* The worker sends this frame; a worker that breaks the protocol is killed. */
static inline void still_worker_say(struct agx_worker *w, struct agx_str frame)
{
    if (w->ops->frame(w->user, frame, NULL) < 0)
        still_worker_die(w);
}

#endif

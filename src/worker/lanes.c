/*
 * lanes.c: sockets, queues and the thread that polls them.
 *
 * A sender writes straight to the socket while nothing is queued; the rest, and all that comes
 * after it, is queued and written by the polling thread. Under `lock` there is never a system call
 * that blocks.
 */
#include "worker/lanes.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "codec/frame.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/banned.h"

enum { READ_SIZE = 64 << 10, DRAIN_TICK_MS = 5 };

struct lane {
    int fd;
    struct agx_frame_decoder in; /* only the polling thread */
    struct agx_buf out;          /* queued; under the lock, as all below */
    size_t out_at;
    bool broken;
};

struct agx_lanes {
    struct lane lane[AGX_LANE_COUNT];
    pthread_mutex_t lock;
    pthread_cond_t drained; /* a queue became short, or its lane broke */
    int wake_fd;            /* tells the polling thread that something was queued */
    char read_buf[READ_SIZE];
};

struct agx_lanes *agx_lanes_open(const int fds[AGX_LANE_COUNT])
{
    struct agx_lanes *l = agx_new(struct agx_lanes);

    for (unsigned i = 0; i < AGX_LANE_COUNT; i++) {
        l->lane[i].fd = fds[i];
        /* Bounded by who may wait: past AGX_WORKER_QUEUE_HIGH only the reader's own answers. */
        l->lane[i].out.max = SIZE_MAX / 2;
        agx_frame_decoder_init(&l->lane[i].in, AGX_FRAME_MAX);
    }
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0 || pthread_mutex_init(&l->lock, NULL) != 0 ||
        pthread_cond_init(&l->drained, NULL) != 0)
        abort();
    return l;
}

struct agx_lanes *agx_lanes_close(struct agx_lanes *l)
{
    if (!l)
        return NULL;
    for (unsigned i = 0; i < AGX_LANE_COUNT; i++) {
        (void)close(l->lane[i].fd);
        agx_frame_decoder_done(&l->lane[i].in);
        agx_buf_done(&l->lane[i].out);
    }
    (void)close(l->wake_fd);
    (void)pthread_cond_destroy(&l->drained);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

static size_t queued(const struct lane *lane)
{
    return lane->out.len - lane->out_at;
}

/* Under the lock. */
static void break_lane(struct agx_lanes *l, struct lane *lane)
{
    lane->broken = true;
    lane->out_at = 0;
    agx_buf_done(&lane->out);
    (void)pthread_cond_broadcast(&l->drained);
}

/* Under the lock: how much of `bytes` the socket takes now. */
static size_t write_some(struct agx_lanes *l, struct lane *lane, struct agx_str bytes)
{
    ssize_t n;

    do {
        n = send(lane->fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t)n;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
        break_lane(l, lane);
    return 0;
}

void agx_lanes_send(struct agx_lanes *l, enum agx_remote_lane which, struct agx_str frame,
                    bool wait)
{
    struct lane *lane = &l->lane[which];
    bool was_empty;

    (void)pthread_mutex_lock(&l->lock);
    while (wait && !lane->broken && queued(lane) > AGX_WORKER_QUEUE_HIGH)
        (void)pthread_cond_wait(&l->drained, &l->lock);
    was_empty = queued(lane) == 0;
    if (was_empty && !lane->broken)
        frame = agx_str_skip(frame, write_some(l, lane, frame));
    if (!lane->broken && frame.len > 0) {
        if (agx_buf_append(&lane->out, frame) < 0)
            abort(); /* half a frame may be out: nothing that could follow would be understood */
        if (was_empty)
            (void)eventfd_write(l->wake_fd, 1);
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static void lanes_flush(struct agx_lanes *l, struct lane *lane)
{
    (void)pthread_mutex_lock(&l->lock);
    if (!lane->broken && queued(lane) > 0) {
        size_t n = write_some(l, lane, agx_str_skip(agx_buf_peek(&lane->out), lane->out_at));

        if (!lane->broken)
            lane->out_at += n;
        if (queued(lane) == 0) {
            lane->out_at = 0;
            if (lane->out.cap > 2 * AGX_WORKER_QUEUE_HIGH)
                agx_buf_done(&lane->out);
            else
                agx_buf_clear(&lane->out);
        } else if (lane->out_at * 2 > lane->out.len) {
            agx_buf_consume(&lane->out, lane->out_at);
            lane->out_at = 0;
        }
        if (queued(lane) <= AGX_WORKER_QUEUE_HIGH)
            (void)pthread_cond_broadcast(&l->drained);
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static bool has_queued(struct agx_lanes *l, const struct lane *lane)
{
    bool yes;

    (void)pthread_mutex_lock(&l->lock);
    yes = queued(lane) > 0;
    (void)pthread_mutex_unlock(&l->lock);
    return yes;
}

/* Waits for what the lanes and the senders want, and writes what is queued. */
static int poll_once(struct agx_lanes *l, bool read, int timeout_ms,
                     struct pollfd p[AGX_LANE_COUNT + 1])
{
    eventfd_t ignored;

    for (unsigned i = 0; i < AGX_LANE_COUNT; i++) {
        p[i] = (struct pollfd){ .fd = l->lane[i].fd, .events = read ? POLLIN : 0 };
        if (has_queued(l, &l->lane[i]))
            p[i].events |= POLLOUT;
        else if (!read)
            p[i].fd = -1;
    }
    p[AGX_LANE_COUNT] = (struct pollfd){ .fd = l->wake_fd, .events = POLLIN };
    if (poll(p, AGX_LANE_COUNT + 1, timeout_ms) < 0)
        return errno == EINTR ? 0 : -errno;
    if (p[AGX_LANE_COUNT].revents)
        (void)eventfd_read(l->wake_fd, &ignored);
    for (unsigned i = 0; i < AGX_LANE_COUNT; i++)
        lanes_flush(l, &l->lane[i]);
    return 1;
}

/* Reads once from a lane and hands its frames on. 0: go on; 1: the handler wants no more. */
static int read_lane(struct agx_lanes *l, enum agx_remote_lane which,
                     const struct agx_lanes_handler *h, bool *ret_eof, struct agx_error **err)
{
    struct lane *lane = &l->lane[which];
    struct agx_str in, frame;
    ssize_t n = recv(lane->fd, l->read_buf, sizeof(l->read_buf), MSG_DONTWAIT);
    int r;

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return agx_error_errno(err, errno, "read from the server");
    if (n <= 0) {
        *ret_eof = true;
        return n < 0 ? 0 : agx_frame_decoder_end(&lane->in, err);
    }
    in = agx_str_bytes(l->read_buf, (size_t)n);
    while ((r = agx_frame_decoder_next(&lane->in, &in, &frame, err)) > 0) {
        r = h->frame(h->user, which, frame, err);
        if (r != 0)
            return r;
    }
    return r;
}

int agx_lanes_run(struct agx_lanes *l, const struct agx_lanes_handler *h, struct agx_error **err)
{
    struct pollfd p[AGX_LANE_COUNT + 1];
    bool eof = false;

    for (;;) {
        int r = poll_once(l, true, -1, p);

        if (r < 0)
            return agx_error_errno(err, -r, "wait for the server");
        for (unsigned i = 0; r > 0 && i < AGX_LANE_COUNT; i++) {
            int k = 0;

            if (p[i].revents & ~POLLOUT)
                k = read_lane(l, (enum agx_remote_lane)i, h, &eof, err);
            if (k != 0 || eof)
                return k;
        }
    }
}

bool agx_lanes_drain(struct agx_lanes *l, bool (*done)(void *user), void *user, uint64_t ms)
{
    uint64_t until = agx_clock_ms() + ms;
    struct pollfd p[AGX_LANE_COUNT + 1];

    for (;;) {
        bool all_done = done(user);

        for (unsigned i = 0; i < AGX_LANE_COUNT; i++)
            all_done = all_done && !has_queued(l, &l->lane[i]);
        if (all_done)
            return true;
        if (agx_clock_ms() >= until)
            return false;
        (void)poll_once(l, false, DRAIN_TICK_MS, p);
    }
}

void agx_lanes_break(struct agx_lanes *l)
{
    (void)pthread_mutex_lock(&l->lock);
    for (unsigned i = 0; i < AGX_LANE_COUNT; i++)
        break_lane(l, &l->lane[i]);
    (void)pthread_mutex_unlock(&l->lock);
}

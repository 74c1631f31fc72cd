/*
 * log_pump.c: the log pump's thread. It owns the writing side of the logs and reads from the pipes;
 * the owner keeps the pipes, because they may be written to after the command's end.
 */
#include "init/log_pump.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "base/banned.h"

enum {
    STACK = 128 << 10, /* a piece, and one of caplog's */
    PIECE = 32 << 10,
    AHEAD = 3 * PIECE, /* a piece, and the pipe that is drained at the end */
};

struct lane {
    struct agx_log_pump_stream *stream;
    struct agx_caplog log;
    bool open;   /* may have more */
    bool logged; /* the log could be opened; else its bytes are dropped */
};

static void notify(struct agx_log_pump *m)
{
    if (!atomic_exchange(&m->news, true))
        (void)!write(m->notify_fd, &m->tag, sizeof(m->tag));
}

static void log_pump_begin(struct lane *lane, struct agx_log_pump_stream *s)
{
    lane->stream = s;
    lane->open = s->fd >= 0;
    lane->logged = s->data_fd >= 0 && agx_caplog_init(&lane->log, s->data_fd, s->index_fd,
                                                      s->head_max, s->tail_max) == 0;
}

/* Copies up to `max` bytes. False: there are none now; the stream may have ended. */
static bool log_pump_move(struct lane *lane, size_t max)
{
    char piece[PIECE];
    ssize_t n = read(lane->stream->fd, piece, AGX_MIN(max, sizeof(piece)));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) { /* EIO is the end of a terminal */
        lane->open = false;
        return false;
    }
    if (lane->logged) {
        agx_caplog_append(&lane->log, agx_str_bytes(piece, (size_t)n));
        atomic_store(&lane->stream->total, lane->log.index.total);
    }
    return true;
}

/* The log's reader is so far behind that a ring would lose bytes. */
static bool must_wait(const struct lane *lane)
{
    const struct agx_log_pump_stream *s = lane->stream;

    return s->paced && lane->logged &&
           lane->log.index.total - atomic_load(&s->seen) + AHEAD > s->tail_max;
}

/* Copies what is in the pipe now, but not what a process that left the command adds meanwhile. */
static void log_pump_drain(struct lane *lane)
{
    int left = 0;

    if (!lane->open || ioctl(lane->stream->fd, FIONREAD, &left) < 0)
        return;
    while (left > 0 && lane->open) {
        uint64_t before = lane->log.index.total;

        if (!log_pump_move(lane, (size_t)left))
            break;
        left -= lane->logged ? (int)(lane->log.index.total - before) : PIECE;
    }
}

static void end_lane(struct lane *lane)
{
    struct agx_log_pump_stream *s = lane->stream;

    log_pump_drain(lane);
    if (lane->logged)
        agx_caplog_finish(&lane->log);
    if (s->paced)
        return;
    agx_closep(&s->data_fd);
    agx_closep(&s->index_fd);
}

static void log_pump_end(struct agx_log_pump *m, struct lane *lanes)
{
    const int notify_fd = m->notify_fd;
    const uint16_t tag = m->tag;

    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++)
        end_lane(&lanes[i]);
    atomic_store(&m->done, true); /* `m` may belong to another command from here on */
    (void)!write(notify_fd, &tag, sizeof(tag));
}

/* Waits for bytes or for a wake-up by the owner. */
static void wait_for_bytes(struct agx_log_pump *m, struct lane *lanes)
{
    struct pollfd p[AGX_LOG_PUMP_STREAMS + 1] = { 0 };
    uint64_t wakes;

    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++) {
        p[i].fd = lanes[i].open && !must_wait(&lanes[i]) ? lanes[i].stream->fd : -1;
        p[i].events = POLLIN;
    }
    p[AGX_LOG_PUMP_STREAMS].fd = m->wake_fd;
    p[AGX_LOG_PUMP_STREAMS].events = POLLIN;
    (void)poll(p, AGX_ARRAY_LEN(p), -1);
    if (p[AGX_LOG_PUMP_STREAMS].revents)
        (void)!read(m->wake_fd, &wakes, sizeof(wakes));
    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++) {
        if (p[i].revents && log_pump_move(&lanes[i], PIECE) && lanes[i].stream->paced)
            notify(m);
    }
}

static void *log_pump_run(void *arg)
{
    struct agx_log_pump *m = arg;
    struct lane lanes[AGX_LOG_PUMP_STREAMS];

    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++)
        log_pump_begin(&lanes[i], &m->streams[i]);
    while (!atomic_load(&m->finish))
        wait_for_bytes(m, lanes);
    log_pump_end(m, lanes);
    return NULL;
}

bool agx_log_pump_start(struct agx_log_pump *m)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    atomic_store(&m->finish, false);
    atomic_store(&m->done, false);
    atomic_store(&m->news, false);
    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++) {
        atomic_store(&m->streams[i].seen, 0);
        atomic_store(&m->streams[i].total, 0);
    }
    r = pthread_attr_init(&attr);
    if (r == 0) {
        (void)pthread_attr_setstacksize(&attr, STACK);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attr, log_pump_run, m);
        (void)pthread_attr_destroy(&attr);
    }
    errno = r;
    return r == 0;
}

static void log_pump_wake(struct agx_log_pump *m)
{
    const uint64_t one = 1;

    (void)!write(m->wake_fd, &one, sizeof(one));
}

void agx_log_pump_finish(struct agx_log_pump *m)
{
    if (!atomic_exchange(&m->finish, true))
        log_pump_wake(m);
}

void agx_log_pump_saw(struct agx_log_pump *m, unsigned stream, uint64_t offset)
{
    atomic_store(&m->streams[stream].seen, offset);
    log_pump_wake(m);
}

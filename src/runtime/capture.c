/* capture.c: lines from a pipe. Loop thread only. */
#include "runtime/capture.h"

#include "base/banned.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/uverr.h"

#include <fcntl.h>

enum {
    READ_BYTES = 16384,
    READS_AT_ONCE = 64, /* enough to read all that a full pipe holds */
    READS_A_TURN = 4,   /* a flood of output leaves time for calls */
};

struct agx_capture {
    uv_poll_t poll;
    int read_fd, write_fd;
    agx_line_fn on_line;
    void *user;
    struct agx_buf held; /* the beginning of a line */
};

static void capture_give(struct agx_capture *c)
{
    c->on_line(c->user, agx_buf_peek(&c->held));
    agx_buf_clear(&c->held);
}

static void capture_take(struct agx_capture *c, struct agx_str in)
{
    while (in.len > 0) {
        size_t n = agx_str_find(in, '\n');
        bool whole = n < in.len;
        size_t room = AGX_LOG_TEXT_MAX - c->held.len;
        size_t now = AGX_MIN(n, room);

        if (agx_buf_append(&c->held, (struct agx_str){ in.ptr, now }) < 0)
            abort(); /* cannot happen: its maximum is the longest line */
        if (now < n) {
            capture_give(c);
            in = agx_str_skip(in, now);
            continue;
        }
        in = agx_str_skip(in, whole ? n + 1 : n);
        if (whole)
            capture_give(c);
    }
}

/* Reads once; false when there is nothing more now. */
static bool read_some(struct agx_capture *c)
{
    char bytes[READ_BYTES];
    ssize_t n;

    do
        n = read(c->read_fd, bytes, sizeof(bytes));
    while (n < 0 && errno == EINTR);
    if (n > 0)
        capture_take(c, agx_str_bytes(bytes, (size_t)n));
    return n > 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct agx_capture *c = container_of(poll, struct agx_capture, poll);

    (void)status;
    (void)events;
    for (int i = 0; i < READS_A_TURN && read_some(c); i++)
        ;
}

int agx_capture_open(struct agx_loop *l, agx_line_fn on_line, void *user,
                     struct agx_capture **ret_capture, struct agx_error **err)
{
    struct agx_capture *c;
    int fds[2], r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe for the worker's output");
    /* Only our end: the flag belongs to the open file, and the writer's must block. */
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
        r = agx_error_errno(err, errno, "prepare the pipe for the worker's output");
        goto fail;
    }
    c = agx_new(struct agx_capture);
    *c = (struct agx_capture){ .read_fd = fds[0],
                               .write_fd = fds[1],
                               .on_line = on_line,
                               .user = user,
                               .held = AGX_BUF_INIT(AGX_LOG_TEXT_MAX) };
    r = uv_poll_init(agx_loop_uv(l), &c->poll, c->read_fd);
    if (r < 0) {
        free(c);
        r = agx_uverr_set(err, r, "watch the worker's output");
        goto fail;
    }
    (void)uv_poll_start(&c->poll, UV_READABLE, on_readable);
    *ret_capture = c;
    return 0;
fail:
    agx_closep(&fds[0]);
    agx_closep(&fds[1]);
    return r;
}

int agx_capture_fd(const struct agx_capture *c)
{
    return c->write_fd;
}

static void on_poll_closed(uv_handle_t *h)
{
    struct agx_capture *c = container_of((uv_poll_t *)h, struct agx_capture, poll);

    agx_closep(&c->read_fd);
    agx_closep(&c->write_fd);
    agx_buf_done(&c->held);
    free(c);
}

/* Bounded: another process may write as fast as we read. */
void agx_capture_read(struct agx_capture *c)
{
    for (int i = 0; i < READS_AT_ONCE && read_some(c); i++)
        ;
}

struct agx_capture *agx_capture_close(struct agx_capture *c)
{
    if (!c)
        return NULL;
    agx_capture_read(c);
    if (c->held.len > 0)
        capture_give(c);
    uv_close((uv_handle_t *)&c->poll, on_poll_closed);
    return NULL;
}

/*
 * conn.c: a stream socket on the loop.
 *
 *     OPEN --close()--> FLUSHING --all sent--> LINGERING --peer's end or linger_ms--> CLOSED
 *      |                    |                      |                                    ^
 *      +--------------------+----abort(), error----+------------------------------------+
 *
 * Invariants:
 *  (1) the user's callbacks are called only in OPEN, and closed() exactly once, from the last close
 *      callback: after it nothing of the connection exists;
 *  (2) a connection with data to send is marked at its group or polled for UV_WRITABLE;
 *  (3) out_at <= out.len, and both are 0 when all is sent;
 *  (4) the group's read buffer is in use only during one data(); unconsumed bytes are then copied.
 *
 * Its group decides when in a turn of the loop a connection runs: conn_group.c.
 */
#include "loop/conn_internal.h"

#include "loop/loop.h"
#include "loop/uverr.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/banned.h"

enum { KEEP_ROOM = 64 << 10 }; /* an empty buffer larger than this is freed */

static void set_state(struct agx_conn *c, enum conn_state next);
static void on_poll(uv_poll_t *poll, int status, int events);

static void conn_fail(struct agx_conn *c, int sys_errno, const char *what)
{
    struct agx_error *e = NULL;

    (void)agx_error_errno(&e, sys_errno, "%s", what);
    agx_error_propagate(&c->error, &e);
    set_state(c, CONN_CLOSED);
}

/* After we closed, input is read and dropped: we wait for the peer's end. */
static bool may_read(const struct agx_conn *c)
{
    if (c->state == CONN_CLOSED || c->eof)
        return false;
    return c->state != CONN_OPEN || (!c->paused && !c->full);
}

/* Polls for the events that the state needs. */
static void update_poll(struct agx_conn *c)
{
    int want = 0, r;

    if (c->state == CONN_CLOSED)
        return;
    if (may_read(c))
        want |= UV_READABLE;
    if (c->out.len > c->out_at && !agx_list_has(&c->dirty))
        want |= UV_WRITABLE;
    if (want == c->events)
        return;
    c->events = want;
    r = want ? uv_poll_start(&c->poll, want, on_poll) : uv_poll_stop(&c->poll);
    if (r < 0)
        conn_fail(c, -r, "watch a connection");
}

static void out_emptied(struct agx_conn *c)
{
    c->out.len = 0;
    c->out_at = 0;
    if (c->out.cap > KEEP_ROOM)
        agx_buf_done(&c->out);
    if (c->state == CONN_FLUSHING)
        set_state(c, CONN_LINGERING);
    if (c->was_slow && c->state == CONN_OPEN) {
        c->was_slow = false;
        if (c->ops->drained)
            c->ops->drained(c->user);
    }
}

/* Sends as much as possible now. */
static void conn_flush(struct agx_conn *c)
{
    if (agx_conn_queued(c) > c->group->config.out_high)
        c->was_slow = true; /* even if the kernel takes it all at once: the user may wait */
    if (c->mute)
        c->out_at = c->out.len;
    while (c->out_at < c->out.len && c->state != CONN_CLOSED) {
        size_t left = c->out.len - c->out_at;
        ssize_t n = send(c->fd, c->out.data + c->out_at, left, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0 && errno == EPIPE && c->state == CONN_OPEN && may_read(c)) {
            c->mute = true;
            c->out_at = c->out.len;
            break;
        }
        if (n < 0) {
            conn_fail(c, errno, "send to a connection");
            return;
        }
        c->out_at += (size_t)n;
        if (c->state == CONN_FLUSHING) /* a peer that still reads gets more time */
            c->due_ms = uv_now(agx_loop_uv(c->group->loop)) + c->group->config.linger_ms;
        if ((size_t)n < left)
            break;
    }
    if (c->out_at == c->out.len && c->state != CONN_CLOSED)
        out_emptied(c);
    update_poll(c);
}

/* Delivers the bytes; returns how many at their end were not consumed. */
static size_t conn_deliver(struct agx_conn *c, uint8_t *data, size_t len)
{
    size_t used = c->ops->data(c->user, data, len);

    return c->state == CONN_OPEN ? len - used : 0;
}

/* Calls data() for held bytes: they were not consumed, or more has arrived after them. */
static void deliver_held(struct agx_conn *c)
{
    size_t left = conn_deliver(c, c->held.data, c->held.len);

    agx_buf_consume(&c->held, c->held.len - left);
    if (left == 0 && c->held.cap > KEEP_ROOM)
        agx_buf_done(&c->held);
    c->full = c->held.len >= c->group->config.held_max;
}

static void conn_hold(struct agx_conn *c, const uint8_t *data, size_t len)
{
    if (len == 0)
        return;
    if (agx_buf_append(&c->held, agx_str_bytes(data, len)) < 0)
        conn_fail(c, ENOMEM, "keep bytes of a connection");
    else
        c->full = c->held.len >= c->group->config.held_max;
}

static void reached_eof(struct agx_conn *c)
{
    c->eof = true;
    update_poll(c);
    if (c->state == CONN_LINGERING)
        set_state(c, CONN_CLOSED);
    else if (c->state == CONN_OPEN && c->ops->eof)
        c->ops->eof(c->user);
    else if (c->state == CONN_OPEN)
        agx_conn_close(c);
}

/* One system call: into the user's room first, then the shared buffer (or after the held bytes).
 * True if something arrived. */
static bool read_some(struct agx_conn *c)
{
    struct agx_conn_group *g = c->group;
    uint8_t *room = NULL, *buf = g->scratch;
    size_t room_len = 0, size = g->config.read_bytes, in_room;
    bool behind = c->state == CONN_OPEN && c->held.len > 0;
    ssize_t n;

    if (behind) {
        size = AGX_MIN(size, g->config.held_max - c->held.len);
        if (agx_buf_reserve(&c->held, size) < 0) {
            conn_fail(c, ENOMEM, "keep bytes of a connection");
            return false;
        }
        buf = c->held.data + c->held.len;
    } else if (c->ops->want && c->state == CONN_OPEN) {
        c->ops->want(c->user, &room, &room_len);
    }
    n = readv(c->fd, (struct iovec[]){ { room, room_len }, { buf, size } }, 2);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            conn_fail(c, errno, "read from a connection");
        return false;
    }
    if (n == 0) {
        reached_eof(c);
        return true;
    }
    if (c->state != CONN_OPEN)
        return true; /* lingering: dropped */
    in_room = AGX_MIN((size_t)n, room_len);
    if (in_room > 0)
        c->ops->filled(c->user, in_room);
    if (behind) {
        c->held.len += (size_t)n;
        deliver_held(c);
    } else {
        size_t len = (size_t)n - in_room, left = conn_deliver(c, buf, len);

        conn_hold(c, buf + len - left, left);
    }
    return true;
}

/* libuv reports an error on a descriptor without saying which. */
static int socket_error(int fd)
{
    int e = 0;
    socklen_t len = sizeof(e);

    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
    return e ? e : ECONNRESET;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct agx_conn *c = container_of(poll, struct agx_conn, poll);

    if (status < 0) {
        /* libuv has stopped watching. Bytes sent before the error can still be read. */
        c->events = 0;
        if (!may_read(c) || (!read_some(c) && c->state != CONN_CLOSED))
            conn_fail(c, socket_error(c->fd), "watch a connection");
        update_poll(c);
        return;
    }
    if (events & UV_WRITABLE)
        conn_flush(c);
    if ((events & UV_READABLE) && may_read(c))
        (void)read_some(c);
    update_poll(c);
}

void agx_conn_turn(struct agx_conn *c)
{
    if (c->redeliver && c->state == CONN_OPEN && !c->paused) {
        c->redeliver = false;
        c->full = false;
        if (c->held.len > 0)
            deliver_held(c);
    }
    if (c->state != CONN_CLOSED)
        conn_flush(c);
}

static void on_timer(uv_timer_t *timer);

/* A timer that fires too early arms itself again, so moving a deadline costs nothing. */
static void arm_timer(struct agx_conn *c)
{
    uint64_t now = uv_now(agx_loop_uv(c->group->loop));

    c->armed_ms = c->due_ms;
    (void)uv_timer_start(&c->timer, on_timer, c->due_ms > now ? c->due_ms - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct agx_conn *c = container_of(timer, struct agx_conn, timer);

    if (c->due_ms == 0)
        return;
    if (c->due_ms > uv_now(agx_loop_uv(c->group->loop))) {
        arm_timer(c);
        return;
    }
    if (c->state == CONN_OPEN && may_read(c) && !c->looked) {
        /* We may be late ourselves: bytes already in the socket came in time. */
        c->looked = true;
        (void)uv_timer_start(&c->timer, on_timer, 1, 0); /* the loop polls the sockets before */
        return;
    }
    c->due_ms = 0;
    if (c->state == CONN_OPEN)
        c->ops->expired(c->user);
    else
        set_state(c, CONN_CLOSED);
}

void agx_conn_deadline(struct agx_conn *c, uint64_t ms)
{
    uint64_t due = ms ? uv_now(agx_loop_uv(c->group->loop)) + ms : 0;

    if (c->state != CONN_OPEN)
        return;
    c->due_ms = due;
    c->looked = false;
    if (due && (due < c->armed_ms || !uv_is_active((uv_handle_t *)&c->timer)))
        arm_timer(c);
}

static void set_socket_buffers(int fd, int bytes)
{
    if (bytes <= 0)
        return;
    /* This is only for fairness, so a failure is ignored. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

int agx_conn_open(struct agx_conn_group *g, int *take_fd, const struct agx_conn_ops *ops,
                  void *user, struct agx_conn **ret_conn, struct agx_error **err)
{
    struct agx_conn *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    c->group = g;
    c->ops = ops;
    c->user = user;
    c->held.max = g->config.held_max + g->config.read_bytes;
    c->out.max = g->config.out_max;
    r = uv_poll_init(agx_loop_uv(g->loop), &c->poll, *take_fd);
    if (r < 0) {
        free(c);
        return agx_uverr_set(err, r, "watch a connection");
    }
    (void)uv_timer_init(agx_loop_uv(g->loop), &c->timer);
    c->n_open = 2;
    set_socket_buffers(*take_fd, g->config.socket_buffer_bytes);
    c->fd = AGX_TAKE_FD(*take_fd);
    agx_conn_group_add(c);
    update_poll(c);
    *ret_conn = c;
    return 0;
}

void agx_conn_hand_over(struct agx_conn *c, const struct agx_conn_ops *ops, void *user)
{
    c->ops = ops;
    c->user = user;
    agx_conn_resume(c);
}

struct agx_buf *agx_conn_out(struct agx_conn *c)
{
    /* Drop the sent part when it is the larger one: each byte moves at most once on average. */
    if (c->out_at > 0 && c->out_at >= c->out.len - c->out_at) {
        agx_buf_consume(&c->out, c->out_at);
        c->out_at = 0;
    }
    agx_conn_group_mark(c);
    return &c->out;
}

size_t agx_conn_queued(const struct agx_conn *c)
{
    return c->out.len - c->out_at;
}

void agx_conn_pause(struct agx_conn *c)
{
    c->paused = true;
    update_poll(c);
}

void agx_conn_resume(struct agx_conn *c)
{
    c->paused = false;
    c->redeliver = true;
    agx_conn_group_mark(c);
}

void agx_conn_close(struct agx_conn *c)
{
    if (c->state == CONN_OPEN)
        set_state(c, CONN_FLUSHING);
}

void agx_conn_abort(struct agx_conn *c, struct agx_error **take_error)
{
    if (take_error)
        agx_error_propagate(&c->error, take_error);
    set_state(c, CONN_CLOSED);
}

static void handle_closed(struct agx_conn *c)
{
    struct agx_conn_group *g = c->group;

    if (--c->n_open > 0)
        return;
    agx_conn_group_remove(c);
    c->ops->closed(c->user, AGX_TAKE_PTR(c->error));
    agx_buf_done(&c->held);
    agx_buf_done(&c->out);
    free(c);
    agx_conn_group_released(g);
}

static void on_poll_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_conn, poll));
}

static void on_timer_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_conn, timer));
}

/* The only place that moves the state; see the picture above. */
static void set_state(struct agx_conn *c, enum conn_state next)
{
    if (c->state >= next)
        return;
    c->state = next;
    switch (next) {
    case CONN_OPEN:
        break;
    case CONN_FLUSHING:
        c->due_ms = uv_now(agx_loop_uv(c->group->loop)) + c->group->config.linger_ms;
        arm_timer(c);
        /* With nothing to send, this turn's flush moves to LINGERING. */
        agx_conn_group_mark(c);
        break;
    case CONN_LINGERING:
        (void)shutdown(c->fd, SHUT_WR);
        if (c->eof)
            set_state(c, CONN_CLOSED);
        break;
    case CONN_CLOSED:
        uv_close((uv_handle_t *)&c->poll, on_poll_closed);
        uv_close((uv_handle_t *)&c->timer, on_timer_closed);
        agx_closep(&c->fd);
        c->fd = -1;
        break;
    }
}

/*
 * link.c: messages and descriptors over a Unix stream socket.
 *
 * Descriptors travel with the first byte of their message and arrive in order, never after it; so a
 * queue on both sides is enough. No send contains the start of a second message with descriptors.
 */
#include "tests/fake/link.h"

#include "base/fdpass.h"
#include "base/mem.h"
#include "loop/uverr.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/banned.h"

enum {
    READ_BYTES = 64 << 10,
    READS_A_TURN = 16, /* each ends behind one message with descriptors */
    OUT_MAX = 256 << 20,
    IN_FDS_MAX = 64, /* of messages that are not complete yet */
};

/* Descriptors that leave with the byte at `at` of the buffer. */
struct parcel {
    size_t at;
    int fds[AGX_FAKE_FDS_MAX];
    unsigned n;
};

struct agx_fake_link {
    struct agx_loop *loop;
    const struct agx_fake_link_ops *ops;
    void *user;
    int fd;
    bool closing;
    int events;
    unsigned n_handles;
    uv_poll_t poll;
    uv_prepare_t prepare;
    struct agx_buf in, out;
    size_t out_at;
    int in_fds[IN_FDS_MAX];
    size_t n_in_fds;
    struct parcel *parcels; /* in order */
    size_t n_parcels, parcels_cap, parcels_at;
};

static void parcel_done(struct parcel *p)
{
    for (unsigned i = 0; i < p->n; i++)
        (void)close(p->fds[i]);
    p->n = 0;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct agx_fake_link *k = h->data;

    if (--k->n_handles > 0)
        return;
    for (size_t i = k->parcels_at; i < k->n_parcels; i++)
        parcel_done(&k->parcels[i]);
    for (size_t i = 0; i < k->n_in_fds; i++)
        (void)close(k->in_fds[i]);
    free(k->parcels);
    agx_buf_done(&k->in);
    agx_buf_done(&k->out);
    agx_closep(&k->fd);
    k->ops->closed(k->user);
    free(k);
}

static void end(struct agx_fake_link *k)
{
    if (k->closing)
        return;
    k->closing = true;
    uv_close((uv_handle_t *)&k->prepare, on_handle_closed);
    if (k->fd >= 0)
        uv_close((uv_handle_t *)&k->poll, on_handle_closed);
}

/* The number of bytes for one send, and the descriptors that go with its first byte. */
static size_t next_piece(struct agx_fake_link *k, struct parcel **ret_parcel)
{
    size_t i = k->parcels_at;

    *ret_parcel = NULL;
    if (i < k->n_parcels && k->parcels[i].at == k->out_at)
        *ret_parcel = &k->parcels[i++];
    return (i < k->n_parcels ? k->parcels[i].at : k->out.len) - k->out_at;
}

static ssize_t send_piece(struct agx_fake_link *k, size_t n, const struct parcel *p)
{
    return agx_fdpass_send(k->fd, k->out.data + k->out_at, n, p ? p->fds : NULL, p ? p->n : 0,
                           MSG_DONTWAIT);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void poll_for(struct agx_fake_link *k, int events)
{
    if (k->closing || k->events == events)
        return;
    k->events = events;
    (void)uv_poll_start(&k->poll, events, on_poll); /* an open handle: cannot fail */
}

static void forget_sent(struct agx_fake_link *k)
{
    k->out_at = k->out.len = 0;
    k->parcels_at = k->n_parcels = 0;
}

static void flush(struct agx_fake_link *k)
{
    if (k->closing || k->fd < 0)
        return;
    while (k->out_at < k->out.len) {
        struct parcel *p;
        size_t want = next_piece(k, &p);
        ssize_t n = send_piece(k, want, p);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            poll_for(k, UV_READABLE | UV_WRITABLE);
            return;
        }
        if (n < 0) {
            end(k);
            return;
        }
        if (p) {
            parcel_done(p);
            k->parcels_at++;
        }
        k->out_at += (size_t)n;
    }
    forget_sent(k);
    poll_for(k, UV_READABLE);
}

static void on_prepare(uv_prepare_t *h)
{
    struct agx_fake_link *k = container_of(h, struct agx_fake_link, prepare);

    if (k->out_at < k->out.len && !(k->events & UV_WRITABLE))
        flush(k);
}

/* 1: bytes arrived; 0: none for now; negative: the end, also if more descriptors arrived than
 * messages can have. */
static int receive(struct agx_fake_link *k)
{
    struct agx_fdpass in = { .fds = k->in_fds + k->n_in_fds,
                             .max = AGX_MIN(AGX_FAKE_FDS_MAX, IN_FDS_MAX - k->n_in_fds) };
    ssize_t n;

    if (agx_buf_reserve(&k->in, READ_BYTES) < 0)
        return -1;
    n = agx_fdpass_receive(k->fd, k->in.data + k->in.len, READ_BYTES, MSG_DONTWAIT, &in);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    k->in.len += (size_t)n;
    k->n_in_fds += in.n;
    return n > 0 && !in.lost ? 1 : -1;
}

/* Descriptors of the message that its reader did not take. */
static void drop_fds(struct agx_fake_link *k, size_t before, unsigned n)
{
    while (k->n_in_fds + n > before)
        (void)close(agx_fake_link_take_fd(k));
}

static void deliver(struct agx_fake_link *k)
{
    size_t used = 0, n;
    struct agx_fake_in in;
    int r = 0;

    while (!k->closing &&
           (r = agx_fake_in_open(&in, agx_str_skip(agx_buf_peek(&k->in), used), &n)) > 0) {
        size_t before = k->n_in_fds;

        if (in.n_fds > before) {
            r = -1;
            break;
        }
        r = k->ops->message(k->user, &in);
        drop_fds(k, before, in.n_fds);
        used += n;
        if (r < 0)
            break;
    }
    if (r < 0)
        end(k);
    else
        agx_buf_consume(&k->in, used);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct agx_fake_link *k = container_of(poll, struct agx_fake_link, poll);
    int r = status < 0 ? -1 : 1;

    if (status == 0 && (events & UV_WRITABLE))
        flush(k);
    if (status == 0 && !(events & (UV_READABLE | UV_DISCONNECT)))
        return;
    for (int i = 0; r > 0 && i < READS_A_TURN && !k->closing; i++)
        r = receive(k);
    if (!k->closing)
        deliver(k); /* what came before the end counts */
    if (r < 0)
        end(k);
}

struct agx_fake_link *agx_fake_link_new(struct agx_loop *l, const struct agx_fake_link_ops *ops,
                                        void *user)
{
    struct agx_fake_link *k = agx_new(struct agx_fake_link);

    *k = (struct agx_fake_link){ .loop = l, .ops = ops, .user = user, .fd = -1, .n_handles = 1 };
    k->in.max = AGX_FAKE_MESSAGE_MAX + READ_BYTES;
    k->out.max = OUT_MAX;
    (void)uv_prepare_init(agx_loop_uv(l), &k->prepare);
    (void)uv_prepare_start(&k->prepare, on_prepare);
    uv_unref((uv_handle_t *)&k->prepare);
    k->prepare.data = k;
    return k;
}

int agx_fake_link_attach(struct agx_fake_link *k, int *take_fd, struct agx_error **err)
{
    int r = uv_poll_init(agx_loop_uv(k->loop), &k->poll, *take_fd);

    if (r < 0)
        return agx_uverr_set(err, r, "watch a socket");
    k->fd = AGX_TAKE_FD(*take_fd);
    k->poll.data = k;
    k->n_handles++;
    poll_for(k, UV_READABLE);
    return 0;
}

void agx_fake_link_begin(struct agx_fake_link *k, struct agx_fake_out *o, enum agx_fake_kind kind,
                         uint64_t tag)
{
    agx_fake_out_begin(o, &k->out, kind, tag);
}

static int keep_parcel(struct agx_fake_link *k, size_t at, const int *fds, unsigned n_fds)
{
    struct parcel p = { .at = at };

    if (k->n_parcels == k->parcels_cap) {
        size_t cap = AGX_MAX(2 * k->parcels_cap, 16);
        struct parcel *more = realloc(k->parcels, cap * sizeof(*more));

        if (!more)
            return -AGX_RESOURCE_EXHAUSTED;
        k->parcels = more;
        k->parcels_cap = cap;
    }
    for (; p.n < n_fds; p.n++) {
        p.fds[p.n] = fcntl(fds[p.n], F_DUPFD_CLOEXEC, 3);
        if (p.fds[p.n] < 0) {
            parcel_done(&p);
            return -AGX_RESOURCE_EXHAUSTED;
        }
    }
    k->parcels[k->n_parcels++] = p;
    return 0;
}

int agx_fake_link_send(struct agx_fake_link *k, struct agx_fake_out *o, const int *fds,
                       unsigned n_fds)
{
    int r = agx_fake_out_end(o, n_fds);

    if (r == 0 && n_fds > 0)
        r = keep_parcel(k, o->start, fds, n_fds);
    if (r < 0)
        k->out.len = o->start;
    return r;
}

int agx_fake_link_take_fd(struct agx_fake_link *k)
{
    int fd;

    if (k->n_in_fds == 0)
        return -1;
    fd = k->in_fds[0];
    k->n_in_fds--;
    memmove(k->in_fds, k->in_fds + 1, k->n_in_fds * sizeof(k->in_fds[0]));
    return fd;
}

void agx_fake_link_close(struct agx_fake_link *k)
{
    flush(k);
    end(k);
}

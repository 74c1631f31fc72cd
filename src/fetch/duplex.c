/*
 * duplex.c: a request whose connection becomes a stream.
 *
 *     CONNECT --libcurl has connected--> ASK --answer: 101--> OPEN --the peer's end--> closed()
 *        |                                |  \--other--> REFUSED --its body--> refused()
 *        +---- deadline, broken ----------+---------------------------------------> closed()
 *
 * libcurl makes the connection (also with TLS) and moves bytes over it (CURLOPT_CONNECT_ONLY); the
 * request and the answer's head are ours (codec/http1.h). The user's bytes are sent only after the
 * answer: an engine drops what arrives together with the request.
 *
 * Invariants:
 *  (1) the user is called from the loop only, never inside the user's own call;
 *  (2) after any callback d->state may be CLOSED; the memory stays until the handles on the loop
 *      are closed, which is never in the same turn;
 *  (3) bytes that the user has not consumed are in `in`, and while there are any the user has
 *      paused;
 *  (4) a peer that accepts no more bytes ends the stream only when all that it sent is read; what
 *      cannot be sent any more is dropped.
 */
#include "fetch/duplex.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "fetch/fetch_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/banned.h"

enum { READ_BYTES = 64 << 10, READS_IN_TURN = 8 };

enum duplex_state { DUPLEX_CONNECT, DUPLEX_ASK, DUPLEX_REFUSED, DUPLEX_OPEN, DUPLEX_CLOSED };

struct agx_duplex {
    struct fetch_transfer transfer;
    const struct agx_duplex_ops *ops;
    void *user;
    enum duplex_state state;
    char *name;          /* "POST '/x'": for messages */
    struct agx_buf head; /* the request */
    struct agx_buf out;  /* bytes of the user */
    size_t out_at;       /* how much of the current buffer is sent */
    struct agx_buf in;
    struct agx_buf body; /* of a refusal */
    unsigned status;
    struct agx_http http;
    bool is_tls;
    bool paused;
    bool ending; /* our direction ends after what is queued */
    bool ended;
    uint64_t open_ms;
    int fd; /* the connection, for polling; a copy, because libcurl closes its own */
    uv_poll_t poll;
    uv_timer_t timer; /* the deadline until OPEN, then "read again at once" */
    unsigned n_open;  /* handles */
};

static void update_poll(struct agx_duplex *d);
static void on_timer(uv_timer_t *timer);

static struct agx_duplex *duplex_of(struct fetch_transfer *t)
{
    return container_of(t, struct agx_duplex, transfer);
}

/* ---- the end ---- */

static void duplex_free(struct agx_duplex *d)
{
    if (d->transfer.easy)
        curl_easy_cleanup(d->transfer.easy);
    if (d->fd >= 0)
        (void)close(d->fd);
    agx_buf_done(&d->head);
    agx_buf_done(&d->out);
    agx_buf_done(&d->in);
    agx_buf_done(&d->body);
    free(d->name);
    free(d);
}

static void duplex_released(struct agx_duplex *d)
{
    struct agx_fetch *f = d->transfer.fetch;

    if (--d->n_open == 0)
        duplex_free(d);
    fetch_released(f);
}

static void on_timer_closed(uv_handle_t *h)
{
    duplex_released(container_of((uv_timer_t *)h, struct agx_duplex, timer));
}

static void on_poll_closed(uv_handle_t *h)
{
    duplex_released(container_of((uv_poll_t *)h, struct agx_duplex, poll));
}

/* The connection is closed and no callback follows. */
static void duplex_detach(struct agx_duplex *d)
{
    bool polled = d->n_open == 2;

    d->state = DUPLEX_CLOSED;
    fetch_remove(&d->transfer);
    uv_close((uv_handle_t *)&d->timer, on_timer_closed);
    if (polled)
        uv_close((uv_handle_t *)&d->poll, on_poll_closed);
}

static void duplex_drop(struct fetch_transfer *t)
{
    duplex_detach(duplex_of(t));
}

/* Takes `error`; NULL: an orderly end. */
static void duplex_finish(struct agx_duplex *d, struct agx_error *error)
{
    duplex_detach(d);
    d->ops->closed(d->user, error);
}

static void duplex_fail(struct agx_duplex *d, CURLcode result)
{
    struct agx_error *error = NULL;

    (void)fetch_fail(&error, &d->transfer, result, d->name);
    duplex_finish(d, error);
}

/* ---- reading ---- */

/* Passes received bytes to the user; false: the user has closed, or has paused. */
static bool duplex_deliver(struct agx_duplex *d)
{
    size_t n;

    if (d->paused)
        return false;
    if (d->in.len == 0)
        return true;
    n = d->ops->data(d->user, agx_buf_peek(&d->in));
    if (d->state == DUPLEX_CLOSED)
        return false;
    assert(n == d->in.len || d->paused);
    agx_buf_consume(&d->in, n);
    return !d->paused;
}

/* The body of a refusal; false: it is complete, and reported. */
static bool take_refusal(struct agx_duplex *d)
{
    struct agx_str in = agx_buf_peek(&d->in), part = { 0 };
    size_t used = 0;
    int r = AGX_HTTP_BODY_PART;

    while (r == AGX_HTTP_BODY_PART) {
        r = agx_http_read_body(&d->http, in, &used, &part, NULL);
        part.len = r == AGX_HTTP_BODY_PART ? AGX_MIN(part.len, d->body.max - d->body.len) : 0;
        (void)!agx_buf_append(&d->body, part); /* what fits is enough */
        if (r >= 0)
            in = agx_str_skip(in, used);
    }
    agx_buf_consume(&d->in, d->in.len - in.len);
    if (r == AGX_HTTP_BODY_MORE)
        return true;
    duplex_detach(d);
    d->ops->refused(d->user, d->status, agx_buf_peek(&d->body));
    return false;
}

/* The answer's head; false: more bytes are needed, or the duplex has ended. */
static bool take_head(struct agx_duplex *d)
{
    struct agx_http_head head;
    struct agx_error *error = NULL;
    size_t used;
    int r = agx_http_read_head(&d->http, agx_buf_peek(&d->in), &used, &head, NULL);

    if (r < 0) {
        (void)agx_error_set(&error, AGX_DATA_LOSS, "%s: the answer is not HTTP", d->name);
        duplex_finish(d, error);
        return false;
    }
    if (r == 0)
        return false;
    d->status = head.status;
    agx_buf_consume(&d->in, used);
    if (d->status < 200 && d->status != 101)
        return d->in.len > 0; /* "100 Continue" and the like: the answer follows */
    if (d->status != 101 && !(d->status == 200 && head.body == AGX_HTTP_UNTIL_CLOSE)) {
        d->state = DUPLEX_REFUSED;
        return true;
    }
    d->state = DUPLEX_OPEN;
    (void)uv_timer_stop(&d->timer);
    d->ops->open(d->user);
    return d->state != DUPLEX_CLOSED;
}

/* Bytes were added to `in`; false: stop reading. */
static bool duplex_take(struct agx_duplex *d)
{
    while (d->state == DUPLEX_ASK)
        if (!take_head(d))
            return d->state == DUPLEX_ASK;
    return d->state == DUPLEX_REFUSED ? take_refusal(d) : duplex_deliver(d);
}

static void on_eof(struct agx_duplex *d)
{
    struct agx_error *error = NULL;

    if (d->state == DUPLEX_REFUSED) {
        duplex_detach(d);
        d->ops->refused(d->user, d->status, agx_buf_peek(&d->body));
        return;
    }
    if (d->state == DUPLEX_ASK)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "%s: the connection was closed", d->name);
    duplex_finish(d, error);
}

static void read_some(struct agx_duplex *d)
{
    for (int i = 0; i < READS_IN_TURN; i++) {
        size_t n = 0;
        CURLcode c;

        if (agx_buf_reserve(&d->in, READ_BYTES) < 0) {
            duplex_fail(d, CURLE_OUT_OF_MEMORY);
            return;
        }
        c = curl_easy_recv(d->transfer.easy, d->in.data + d->in.len, READ_BYTES, &n);
        if (c == CURLE_AGAIN) {
            if (d->in.len == 0)
                agx_buf_done(&d->in); /* most streams are silent most of the time */
            return;
        }
        if (c != CURLE_OK) {
            duplex_fail(d, c);
            return;
        }
        if (n == 0) {
            on_eof(d);
            return;
        }
        d->in.len += n;
        if (!duplex_take(d))
            return;
    }
    /* Gives others a turn; TLS may have buffered more than the socket shows. */
    if (d->state == DUPLEX_OPEN)
        (void)uv_timer_start(&d->timer, on_timer, 0, 0);
}

/* ---- writing ---- */

/* Sends what can be sent of a buffer. */
static void send_buf(struct agx_duplex *d, struct agx_buf *b)
{
    while (d->out_at < b->len) {
        size_t n = 0;
        CURLcode c = curl_easy_send(d->transfer.easy, b->data + d->out_at, b->len - d->out_at, &n);

        if (c == CURLE_AGAIN)
            return;
        if (c != CURLE_OK)
            break; /* invariant 4 */
        d->out_at += n;
    }
    d->out_at = 0;
    agx_buf_done(b);
}

static void write_some(struct agx_duplex *d)
{
    bool had = d->out.len > 0;

    if (d->head.len > 0) {
        send_buf(d, &d->head);
        return;
    }
    if (d->state != DUPLEX_OPEN)
        return;
    send_buf(d, &d->out);
    if (d->out.len > 0)
        return;
    if (d->ending && !d->ended) {
        d->ended = true;
        (void)shutdown(d->fd, SHUT_WR);
    }
    if (had && d->ops->drained)
        d->ops->drained(d->user);
}

static int wanted_events(const struct agx_duplex *d)
{
    int events = 0;

    if (!d->paused || d->state != DUPLEX_OPEN)
        events |= UV_READABLE;
    if (d->head.len > 0 ||
        (d->state == DUPLEX_OPEN && (d->out.len > 0 || (d->ending && !d->ended))))
        events |= UV_WRITABLE;
    return events;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct agx_duplex *d = container_of(poll, struct agx_duplex, poll);

    if (status < 0) /* libuv does not say which event failed */
        events = wanted_events(d);
    if (events & UV_WRITABLE)
        write_some(d);
    if (d->state != DUPLEX_CLOSED && (events & UV_READABLE))
        read_some(d);
    update_poll(d);
}

static void update_poll(struct agx_duplex *d)
{
    int events;

    if (d->state == DUPLEX_CLOSED || d->state == DUPLEX_CONNECT)
        return;
    events = wanted_events(d);
    if (events)
        (void)uv_poll_start(&d->poll, events, on_poll);
    else
        (void)uv_poll_stop(&d->poll);
}

static void on_timer(uv_timer_t *timer)
{
    struct agx_duplex *d = container_of(timer, struct agx_duplex, timer);
    struct agx_error *error = NULL;

    if (d->state == DUPLEX_OPEN) {
        if (duplex_deliver(d))
            read_some(d);
        update_poll(d);
        return;
    }
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED, "%s: no answer within %llu ms", d->name,
                        (unsigned long long)d->open_ms);
    duplex_finish(d, error);
}

/* ---- the connection ---- */

static void ended(struct fetch_transfer *t, CURLcode result)
{
    struct agx_duplex *d = duplex_of(t);
    curl_socket_t fd = CURL_SOCKET_BAD;
    struct agx_error *error = NULL;

    if (result != CURLE_OK) {
        duplex_fail(d, result);
        return;
    }
    (void)curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd);
    d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (d->fd < 0 || uv_poll_init(agx_loop_uv(t->fetch->loop), &d->poll, d->fd) < 0) {
        (void)agx_error_set(&error, AGX_RESOURCE_EXHAUSTED, "%s: no descriptor for it", d->name);
        duplex_finish(d, error);
        return;
    }
    d->n_open++;
    t->fetch->n_open++;
    d->state = DUPLEX_ASK;
    update_poll(d);
}

static const struct fetch_transfer_kind duplex_kind = { .ended = ended, .drop = duplex_drop };

static struct agx_duplex *duplex_new(const struct agx_duplex_request *q,
                                     const struct agx_duplex_ops *ops, void *user)
{
    struct agx_duplex *d = agx_new(struct agx_duplex);

    d->transfer.kind = &duplex_kind;
    d->ops = ops;
    d->user = user;
    d->fd = -1;
    d->open_ms = q->open_ms;
    d->head.max = AGX_HTTP_HEAD_MAX + q->body.len;
    d->out.max = q->out_max;
    d->in.max = AGX_HTTP_HEAD_MAX + 2 * (size_t)READ_BYTES;
    d->body.max = q->body_max;
    agx_http_init(&d->http, AGX_HTTP_CLIENT, AGX_HTTP_HEAD_MAX, UINT64_MAX);
    if (asprintf(&d->name, "%s '%.*s'", q->method, (int)strcspn(q->path, "?"), q->path) < 0)
        abort(); /* small, as with agx_new() */
    return d;
}

int agx_duplex_open(struct agx_fetch *f, const struct agx_duplex_request *request,
                    const struct agx_duplex_ops *ops, void *user, struct agx_duplex **ret_duplex,
                    struct agx_error **err)
{
    struct agx_duplex *d = duplex_new(request, ops, user);
    int r = fetch_prepare(f, &d->transfer, request->path, err);

    d->is_tls = strncmp(f->base, "https:", strlen("https:")) == 0;
    if (r == 0 && duplex_write_request(&d->head, f->base, request) < 0)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "%s: the request is malformed or too long",
                          d->name);
    if (r == 0) {
        (void)curl_easy_setopt(d->transfer.easy, CURLOPT_CONNECT_ONLY, 1L);
        r = fetch_begin(&d->transfer, err);
    }
    if (r < 0) {
        duplex_free(d);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(f->loop), &d->timer); /* never fails */
    d->n_open = 1;
    f->n_open++;
    uv_update_time(agx_loop_uv(f->loop));
    if (request->open_ms)
        (void)uv_timer_start(&d->timer, on_timer, request->open_ms, 0);
    *ret_duplex = d;
    return 0;
}

/* ---- the user's calls ---- */

int agx_duplex_write(struct agx_duplex *d, struct agx_str bytes, struct agx_error **err)
{
    assert(d->state != DUPLEX_CLOSED);
    if (d->ending)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "%s: our direction has ended", d->name);
    if (agx_buf_append(&d->out, bytes) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "%s: %zu bytes wait to be sent already",
                             d->name, agx_duplex_queued(d));
    update_poll(d);
    return 0;
}

size_t agx_duplex_queued(const struct agx_duplex *d)
{
    return d->out.len - (d->head.len > 0 ? 0 : d->out_at);
}

int agx_duplex_end(struct agx_duplex *d, struct agx_error **err)
{
    assert(d->state != DUPLEX_CLOSED);
    if (d->is_tls)
        return agx_error_set(err, AGX_UNIMPLEMENTED, "%s: over TLS one direction cannot end alone",
                             d->name);
    d->ending = true;
    update_poll(d);
    return 0;
}

void agx_duplex_pause(struct agx_duplex *d, bool paused)
{
    assert(d->state != DUPLEX_CLOSED);
    if (d->paused == paused)
        return;
    d->paused = paused;
    if (!paused && d->state == DUPLEX_OPEN)
        (void)uv_timer_start(&d->timer, on_timer, 0, 0);
    update_poll(d);
}

struct agx_duplex *agx_duplex_close(struct agx_duplex *d)
{
    if (d)
        duplex_detach(d);
    return NULL;
}

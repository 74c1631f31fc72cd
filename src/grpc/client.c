/*
 * client.c: a gRPC client that waits with poll(2).
 *
 *     reply: OPEN --trailers, reset, lost connection, timeout--> over
 *
 * Invariants:
 *  (1) bytes of a reply wait in `in` until its owner asks for messages, and only then may the
 *      server send more for it: an unread reply holds at most a window, and blocks no other one;
 *  (2) a reply that is over has a code, which never changes;
 *  (3) a server that no longer reads may have answered before: the connection counts as lost only
 *      when everything that it sent has been read.
 */
#include "grpc/client_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/grpc_meta.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/banned.h"

enum { READ_BYTES = 64 << 10 };

static void client_end(struct agx_grpc_reply *r, enum agx_code code, struct agx_str text)
{
    if (r->over)
        return;
    r->over = true;
    r->code = code;
    agx_buf_clear(&r->text);
    if (agx_buf_append(&r->text, text) < 0)
        agx_buf_clear(&r->text); /* the code is enough */
}

static struct agx_grpc_reply *reply_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct agx_grpc_reply *r = reply_of(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (r && agx_grpc_headers_add(&r->headers, agx_str_bytes(name, name_len),
                                  agx_str_bytes(value, value_len)) < 0) {
        client_end(r, AGX_RESOURCE_EXHAUSTED, AGX_STR("the server's headers are too large"));
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t len, void *user)
{
    struct agx_grpc_reply *r = reply_of(session, stream);

    (void)flags;
    (void)user;
    (void)nghttp2_session_consume_connection(session, len);
    if (r && agx_buf_append(&r->in, agx_str_bytes(data, len)) < 0) {
        client_end(r, AGX_RESOURCE_EXHAUSTED, AGX_STR("no memory for an answer"));
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return 0;
}

/* The code for a stream that ended without a status. */
static enum agx_code code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        return AGX_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return AGX_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return AGX_RESOURCE_EXHAUSTED;
    default:
        return AGX_INTERNAL;
    }
}

static void end_with_status(struct agx_grpc_reply *r, struct agx_str status)
{
    struct agx_str message = agx_grpc_headers_peek(&r->headers, AGX_STR("grpc-message"));
    struct agx_str details = agx_grpc_headers_peek(&r->headers, AGX_STR("grpc-status-details-bin"));
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(r->client->config.trailers_max);

    if (message.ptr && agx_grpc_message_decode(&text, message) < 0)
        agx_buf_clear(&text);
    if (details.ptr && agx_grpc_bin_next(&details, &r->details, NULL) < 0)
        agx_buf_clear(&r->details);
    client_end(r, agx_grpc_status_parse(status), agx_buf_peek(&text));
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct agx_grpc_reply *r = reply_of(session, stream);
    struct agx_str status;

    (void)user;
    if (!r)
        return 0;
    r->stream = 0;
    status = agx_grpc_headers_peek(&r->headers, AGX_STR("grpc-status"));
    r->client->refused = !status.ptr && error == NGHTTP2_REFUSED_STREAM;
    if (status.ptr)
        end_with_status(r, status);
    else if (error != NGHTTP2_NO_ERROR)
        client_end(r, code_of_reset(error), agx_str_from(nghttp2_http2_strerror(error)));
    else
        client_end(r, AGX_UNKNOWN, AGX_STR("the server does not speak gRPC"));
    return 0;
}

static int make_session(struct agx_grpc_client *c)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->config.stream_window },
    };
    nghttp2_session_callbacks *cb = NULL;
    nghttp2_option *option = NULL;
    int r = nghttp2_session_callbacks_new(&cb);

    if (r == 0)
        r = nghttp2_option_new(&option);
    if (r == 0) {
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
        r = nghttp2_session_client_new2(&c->session, cb, c, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(cb);
    if (r == 0)
        r = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
                                    AGX_ARRAY_LEN(settings));
    if (r == 0)
        r = nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                  (int32_t)c->config.conn_window);
    return r < 0 ? -AGX_RESOURCE_EXHAUSTED : 0;
}

int agx_grpc_client_adopt(int *take_fd, const struct agx_grpc_client_config *config,
                          struct agx_grpc_client **ret_client, struct agx_error **err)
{
    struct agx_grpc_client *c;
    int r = agx_fd_set_nonblock(*take_fd, true, err);

    if (r < 0)
        return r;
    c = calloc(1, sizeof(*c));
    if (c) {
        c->config = *config;
        c->fd = -1;
        c->out.max = SIZE_MAX / 2; /* nghttp2 is called only when it is empty */
    }
    if (!c || make_session(c) < 0) {
        (void)agx_grpc_client_close(c);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    }
    c->fd = AGX_TAKE_FD(*take_fd);
    *ret_client = c;
    return 0;
}

int agx_grpc_client_open(const char *path, const struct agx_grpc_client_config *config,
                         struct agx_grpc_client **ret_client, struct agx_error **err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = -1;
    size_t len = strlen(path);

    if (len >= sizeof(addr.sun_path))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the path '%s' is too long for a socket",
                             path);
    memcpy(addr.sun_path, path, len);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return agx_error_errno(err, errno, "connect to '%s'", path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return errno == ENOENT || errno == ECONNREFUSED
                   ? agx_error_set(err, AGX_UNAVAILABLE, "nobody listens at '%s'", path)
                   : agx_error_errno(err, errno, "connect to '%s'", path);
    return agx_grpc_client_adopt(&fd, config, ret_client, err);
}

struct agx_grpc_client *agx_grpc_client_close(struct agx_grpc_client *c)
{
    if (!c)
        return NULL;
    assert(agx_list_is_empty(&c->replies));
    nghttp2_session_del(c->session);
    agx_buf_done(&c->out);
    agx_closep(&c->fd);
    free(c);
    return NULL;
}

static void client_lose(struct agx_grpc_client *c, const char *why)
{
    c->lost = true;
    AGX_LIST_FOR_EACH (struct agx_grpc_reply, r, &c->replies, node)
        client_end(r, AGX_UNAVAILABLE, agx_str_from(why));
}

void agx_grpc_client_write(struct agx_grpc_client *c)
{
    const uint8_t *data;
    ssize_t n;

    for (;;) {
        while (c->out.len < READ_BYTES && (n = nghttp2_session_mem_send(c->session, &data)) > 0) {
            if (agx_buf_append(&c->out, agx_str_bytes(data, (size_t)n)) < 0) {
                client_lose(c, "no memory for a connection");
                return;
            }
        }
        if (c->out.len == 0)
            return;
        n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0 && errno != EPIPE && errno != ECONNRESET) {
            client_lose(c, "the connection to the server is lost");
            return;
        }
        agx_buf_consume(&c->out, n < 0 ? c->out.len : (size_t)n); /* invariant 3 */
    }
}

static void read_some(struct agx_grpc_client *c)
{
    uint8_t buf[READ_BYTES];
    ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0)
        client_lose(c, "the connection to the server is lost");
    else if (nghttp2_session_mem_recv(c->session, buf, (size_t)n) < 0 ||
             (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session)))
        client_lose(c, "the server's HTTP/2 is invalid");
}

/* Sends, waits until `due_ms` for input, and reads it. */
static void client_turn(struct agx_grpc_client *c, uint64_t due_ms)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    uint64_t now = agx_clock_ms();
    int wait_ms = -1;

    agx_grpc_client_write(c);
    if (c->lost)
        return;
    if (due_ms != UINT64_MAX)
        wait_ms = due_ms > now ? (int)AGX_MIN(due_ms - now, 1 << 30) : 0;
    if (c->out.len > 0)
        p.events |= POLLOUT;
    if (poll(&p, 1, wait_ms) > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR)))
        read_some(c);
    if (!c->lost)
        agx_grpc_client_write(c);
}

int agx_grpc_client_start(struct agx_grpc_client *c, const struct agx_grpc_request *q,
                          struct agx_grpc_reply **ret_reply, struct agx_error **err)
{
    struct agx_grpc_reply *r;
    int rc;

    if (c->lost)
        return agx_error_set(err, AGX_UNAVAILABLE, "the connection to the server is lost");
    r = calloc(1, sizeof(*r));
    if (!r)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a call");
    r->client = c;
    r->due_ms = q->timeout_ms ? agx_clock_ms() + q->timeout_ms : UINT64_MAX;
    r->request.max = SIZE_MAX / 2;                                /* the caller chose the size */
    r->in.max = 2 * (size_t)c->config.stream_window + READ_BYTES; /* invariant 1, and `taken` */
    r->text.max = r->details.max = c->config.trailers_max;
    agx_grpc_headers_init(&r->headers, c->config.trailers_max);
    agx_grpc_decoder_init(&r->decoder, c->config.message_max);
    agx_list_push_front(&c->replies, &r->node);
    c->refused = false;
    rc = agx_grpc_reply_submit(r, q, err);
    if (rc < 0) {
        (void)agx_grpc_reply_close(r);
        return rc;
    }
    agx_grpc_client_write(c);
    *ret_reply = r;
    return 0;
}

bool agx_grpc_client_refused(const struct agx_grpc_client *c)
{
    return c->refused && agx_list_is_empty(&c->replies);
}

static void client_cancel(struct agx_grpc_reply *r)
{
    if (r->stream == 0)
        return;
    (void)nghttp2_session_set_stream_user_data(r->client->session, r->stream, NULL);
    (void)nghttp2_submit_rst_stream(r->client->session, NGHTTP2_FLAG_NONE, r->stream,
                                    NGHTTP2_CANCEL);
    r->stream = 0;
    if (!r->client->lost)
        agx_grpc_client_write(r->client);
}

/* Takes a message from the received bytes: 1, or 0: none yet. */
static int take_message(struct agx_grpc_reply *r, struct agx_str *ret_message,
                        struct agx_error **err)
{
    struct agx_str in;
    int rc;

    agx_buf_consume(&r->in, r->taken); /* the last message may have been borrowed from it */
    in = agx_buf_peek(&r->in);
    rc = agx_grpc_decoder_next(&r->decoder, &in, ret_message, err);
    r->taken = r->in.len - in.len;
    if (r->stream != 0 && r->taken > 0)
        (void)nghttp2_session_consume_stream(r->client->session, r->stream, r->taken);
    return rc;
}

static int result(struct agx_grpc_reply *r, struct agx_error **err)
{
    if (r->code == AGX_OK)
        return agx_grpc_decoder_end(&r->decoder, err);
    return agx_error_set(err, r->code, "%.*s", AGX_STR_ARG(agx_buf_peek(&r->text)));
}

int agx_grpc_reply_next(struct agx_grpc_reply *r, int wait_ms, struct agx_str *ret_message,
                        struct agx_error **err)
{
    uint64_t until = wait_ms < 0 ? UINT64_MAX : agx_clock_ms() + (uint64_t)wait_ms;
    int rc;

    for (bool again = true;; again = agx_clock_ms() < until) {
        rc = take_message(r, ret_message, err);
        if (rc < 0) {
            client_end(r, (enum agx_code) - rc, AGX_STR("the server's message cannot be read"));
            client_cancel(r);
        }
        if (rc != 0)
            return rc;
        if (r->over)
            return result(r, err);
        if (r->due_ms <= agx_clock_ms()) {
            client_end(r, AGX_DEADLINE_EXCEEDED, AGX_STR("the call's deadline has passed"));
            client_cancel(r);
            return result(r, err);
        }
        if (!again)
            return AGX_GRPC_NOTHING_YET;
        client_turn(r->client, AGX_MIN(r->due_ms, until));
    }
}

struct agx_str agx_grpc_reply_peek_details(const struct agx_grpc_reply *r)
{
    return agx_buf_peek(&r->details);
}

struct agx_grpc_reply *agx_grpc_reply_close(struct agx_grpc_reply *r)
{
    if (!r)
        return NULL;
    client_cancel(r);
    agx_list_remove(&r->node);
    agx_buf_done(&r->request);
    agx_buf_done(&r->in);
    agx_buf_done(&r->text);
    agx_buf_done(&r->details);
    agx_grpc_decoder_done(&r->decoder);
    agx_grpc_headers_done(&r->headers);
    free(r);
    return NULL;
}

int agx_grpc_client_call(struct agx_grpc_client *c, const struct agx_grpc_request *q,
                         struct agx_buf *reply, struct agx_buf *details, struct agx_error **err)
{
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    int rc = agx_grpc_client_start(c, q, &r, err);

    if (rc < 0)
        return rc;
    rc = agx_grpc_reply_next(r, -1, &message, err);
    if (rc == 0)
        rc = agx_error_set(err, AGX_INTERNAL, "the server answered '%s' with nothing", q->path);
    if (rc > 0)
        rc = agx_buf_append(reply, message) < 0
                 ? agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no room for an answer of %zu bytes",
                                 message.len)
                 : agx_grpc_reply_next(r, -1, &message, err);
    if (rc > 0)
        rc = agx_error_set(err, AGX_INTERNAL, "the server answered '%s' more than once", q->path);
    if (details && agx_buf_append(details, agx_grpc_reply_peek_details(r)) < 0)
        agx_buf_clear(details); /* code and message are enough */
    (void)agx_grpc_reply_close(r);
    return rc;
}

int agx_grpc_client_fd(const struct agx_grpc_client *c)
{
    return c->fd;
}

short agx_grpc_client_events(const struct agx_grpc_client *c)
{
    return (short)(c->out.len > 0 ? POLLIN | POLLOUT : POLLIN);
}

bool agx_grpc_reply_ready(const struct agx_grpc_reply *r)
{
    return r->over || r->in.len > r->taken;
}

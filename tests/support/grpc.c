#include "tests/support/grpc.h"

#include "codec/grpc_frame.h"

#include <stdio.h>
#include <sys/socket.h>

/* The service. */

static void echo(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    agx_grpc_call_reply(call, request);
}

static void fail(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    const struct agx_grpc_meta custom = { AGX_STR("x-custom"), AGX_STR("yes") };

    (void)service;
    agx_grpc_call_finish(call, &(struct agx_grpc_status){ .code = AGX_NOT_FOUND,
                                                          .message = request,
                                                          .details = request,
                                                          .trailers = &custom,
                                                          .trailer_count = 1 });
}

static void meta(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct rpc_fixture *f = service;
    struct agx_grpc_meta m;

    (void)request;
    agx_buf_clear(&f->echoed);
    for (size_t at = 0; agx_grpc_call_next_meta(call, &at, &m);)
        ASSERT_OK(
            agx_buf_printf(&f->echoed, "%.*s=%.*s\n", AGX_STR_ARG(m.key), AGX_STR_ARG(m.value)));
    ASSERT_INT(getuid(), agx_grpc_call_peek_peer(call)->uid);
    agx_grpc_call_reply(call, agx_buf_peek(&f->echoed));
}

static void on_ended(void *user, enum agx_code code)
{
    struct rpc_held *h = user;

    h->call = NULL;
    h->code = code;
    h->n_ended++;
}

static void on_writable(void *user)
{
    ((struct rpc_held *)user)->n_writable++;
}

static void on_message(void *user, struct agx_str message)
{
    struct rpc_held *h = user;

    h->n_messages++;
    ASSERT_OK(agx_buf_append(&h->got, message));
    if (h->pause_each)
        agx_grpc_call_pause(h->call);
    if (h->resumes)
        agx_grpc_call_resume(h->resumes);
}

static void on_half_closed(void *user)
{
    ((struct rpc_held *)user)->n_half_closed++;
}

static const struct agx_grpc_call_ops held_ops = {
    .ended = on_ended,
    .writable = on_writable,
    .message = on_message,
    .half_closed = on_half_closed,
};

static void hold(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct rpc_fixture *f = service;
    struct rpc_held *h = &f->held[f->n_held++];

    ASSERT_TRUE(f->n_held <= RPC_HELD_MAX);
    *h = (struct rpc_held){ .f = f, .call = call, .got = AGX_BUF_INIT((size_t)32 << 20) };
    ASSERT_OK(agx_buf_append(&h->got, request));
    h->pause_each = agx_grpc_call_peek_meta(call, AGX_STR("x-pause")).ptr != NULL;
    agx_grpc_call_watch(call, &held_ops, h);
}

static void bidi_message(void *user, struct agx_str message)
{
    ASSERT_OK(agx_grpc_call_send(user, message));
}

static void bidi_half_closed(void *user)
{
    agx_grpc_call_finish(user, &(struct agx_grpc_status){ .code = AGX_OK });
}

static void bidi_ended(void *user, enum agx_code code)
{
    (void)user;
    (void)code;
}

static const struct agx_grpc_call_ops bidi_ops = {
    .ended = bidi_ended,
    .message = bidi_message,
    .half_closed = bidi_half_closed,
};

static void bidi(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    (void)request;
    agx_grpc_call_watch(call, &bidi_ops, call);
}

static const struct agx_grpc_method methods[] = {
    { "/t.T/Echo", AGX_GRPC_UNARY, false, echo },
    { "/t.T/Fail", AGX_GRPC_UNARY, false, fail },
    { "/t.T/Meta", AGX_GRPC_UNARY, false, meta },
    { "/t.T/Hold", AGX_GRPC_UNARY, false, hold },
    { "/t.T/Stream", AGX_GRPC_SERVER_STREAM, false, hold },
    { "/t.T/Endless", AGX_GRPC_SERVER_STREAM, true, hold },
    { "/t.T/Collect", AGX_GRPC_CLIENT_STREAM, false, hold },
    { "/t.T/Bidi", AGX_GRPC_BIDI, false, bidi },
};

/* The client. */

static struct rpc_request *request_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static void keep(char *out, size_t size, struct agx_str value)
{
    (void)snprintf(out, size, "%.*s", AGX_STR_ARG(value));
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct rpc_request *q = request_of(session, frame->hd.stream_id);
    struct agx_str n = agx_str_bytes(name, name_len), v = agx_str_bytes(value, value_len);

    (void)flags;
    (void)user;
    if (!q)
        return 0;
    if (agx_str_eq(n, AGX_STR(":status")))
        keep(q->http_status, sizeof(q->http_status), v);
    else if (agx_str_eq(n, AGX_STR("content-type")))
        keep(q->content_type, sizeof(q->content_type), v);
    else if (agx_str_eq(n, AGX_STR("grpc-status")))
        keep(q->grpc_status, sizeof(q->grpc_status), v);
    else if (agx_str_eq(n, AGX_STR("grpc-message")))
        keep(q->grpc_message, sizeof(q->grpc_message), v);
    else if (agx_str_eq(n, AGX_STR("grpc-status-details-bin")))
        keep(q->details, sizeof(q->details), v);
    else if (agx_str_eq(n, AGX_STR("x-custom")))
        keep(q->custom, sizeof(q->custom), v);
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct rpc_request *q = request_of(session, frame->hd.stream_id);
    struct rpc_client *c = user;

    if (q && frame->hd.type == NGHTTP2_HEADERS)
        q->n_headers++;
    if (frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        c->n_pings++;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->goaway = true;
        c->goaway_error = frame->goaway.error_code;
        c->goaway_last = frame->goaway.last_stream_id;
    }
    return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                    size_t len, void *user)
{
    struct rpc_request *q = request_of(session, stream);

    (void)flags;
    (void)user;
    if (q)
        ASSERT_OK(agx_buf_append(&q->data, agx_str_bytes(data, len)));
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct rpc_request *q = request_of(session, stream);

    (void)user;
    if (q) {
        q->closed = true;
        q->error = error;
    }
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t len,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct rpc_request *q = source->ptr;
    size_t n = AGX_MIN(len, q->body.len - q->at);

    (void)session;
    (void)stream;
    (void)user;
    if (n == 0 && q->open) {
        q->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0)
        memcpy(buf, q->body.data + q->at, n);
    q->at += n;
    if (q->at == q->body.len && !q->open)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

void rpc_start_with(struct rpc_client *c, struct rpc_request *q, const nghttp2_nv *nv, size_t n,
                    const struct agx_str *message)
{
    const nghttp2_data_provider provider = { .source.ptr = q, .read_callback = read_body };

    *q = (struct rpc_request){ .body = AGX_BUF_INIT((size_t)64 << 20),
                               .data = AGX_BUF_INIT((size_t)64 << 20),
                               .open = !message };
    if (message)
        ASSERT_OK(agx_grpc_frame_encode(&q->body, *message));
    q->stream = nghttp2_submit_request(c->session, NULL, nv, n, &provider, q);
    ASSERT_TRUE(q->stream > 0);
}

void rpc_start(struct rpc_client *c, struct rpc_request *q, const char *path,
               const struct agx_str *message)
{
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"), RPC_NV(":scheme", "http"),
        RPC_NV(":path", path),     RPC_NV(":authority", "localhost"),
        RPC_NV("te", "trailers"),  RPC_NV("content-type", "application/grpc"),
    };

    rpc_start_with(c, q, nv, AGX_ARRAY_LEN(nv), message);
}

static void resume(struct rpc_client *c, struct rpc_request *q)
{
    if (q->deferred)
        ASSERT_INT(0, nghttp2_session_resume_data(c->session, q->stream));
    q->deferred = false;
}

void rpc_write(struct rpc_client *c, struct rpc_request *q, struct agx_str message)
{
    ASSERT_OK(agx_grpc_frame_encode(&q->body, message));
    resume(c, q);
}

void rpc_write_end(struct rpc_client *c, struct rpc_request *q)
{
    q->open = false;
    resume(c, q);
}

bool rpc_read(struct rpc_request *q, struct agx_buf *ret_message)
{
    const uint8_t *p = q->data.data;
    size_t len;

    if (q->data.len < AGX_GRPC_PREFIX_SIZE)
        return false;
    len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (q->data.len < AGX_GRPC_PREFIX_SIZE + len)
        return false;
    agx_buf_clear(ret_message);
    ASSERT_OK(agx_buf_append(ret_message, agx_str_bytes(p + AGX_GRPC_PREFIX_SIZE, len)));
    agx_buf_consume(&q->data, AGX_GRPC_PREFIX_SIZE + len);
    return true;
}

void rpc_request_done(struct rpc_request *q)
{
    agx_buf_done(&q->body);
    agx_buf_done(&q->data);
}

void rpc_connect(struct rpc_fixture *f, struct rpc_client *c)
{
    nghttp2_session_callbacks *cb;
    int fds[2];

    *c = (struct rpc_client){ .fd = -1, .out = AGX_BUF_INIT((size_t)1 << 20) };
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    c->fd = fds[1];
    ASSERT_OK(agx_grpc_server_adopt(f->server, &fds[0], NULL));
    ASSERT_INT(0, nghttp2_session_callbacks_new(&cb));
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    ASSERT_INT(0, nghttp2_session_client_new(&c->session, cb, c));
    nghttp2_session_callbacks_del(cb);
    ASSERT_INT(0, nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0));
}

static void client_read(struct rpc_client *c)
{
    uint8_t buf[65536];
    ssize_t n;

    if (c->deaf || c->fd < 0)
        return;
    while ((n = recv(c->fd, buf, sizeof(buf), 0)) > 0)
        (void)nghttp2_session_mem_recv(c->session, buf, (size_t)n);
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        c->closed = true;
}

static void client_write(struct rpc_client *c)
{
    const uint8_t *data;
    ssize_t n;

    while (c->out.len < 65536 && (n = nghttp2_session_mem_send(c->session, &data)) > 0)
        ASSERT_OK(agx_buf_append(&c->out, agx_str_bytes(data, (size_t)n)));
    n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);
    if (n > 0)
        agx_buf_consume(&c->out, (size_t)n);
    else if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
        c->closed = true;
}

void rpc_client_turn(struct rpc_client *c)
{
    if (!c->closed)
        client_write(c);
    client_read(c);
}

void rpc_client_raw(struct rpc_fixture *f, struct rpc_client *c, struct agx_str bytes)
{
    while (bytes.len > 0 && !c->closed) {
        ssize_t n = send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        if (n > 0)
            bytes = agx_str_skip(bytes, (size_t)n);
        rpc_turn(f);
    }
}

void rpc_client_close(struct rpc_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->closed = true;
    nghttp2_session_del(c->session);
    c->session = NULL;
    agx_buf_done(&c->out);
}

void rpc_turn(struct rpc_fixture *f)
{
    if (f->client.session)
        rpc_client_turn(&f->client);
    (void)uv_run(agx_loop_uv(f->loop), UV_RUN_NOWAIT);
}

void rpc_setup(struct rpc_fixture *f, const struct agx_grpc_config *config)
{
    const struct agx_grpc_config defaults = AGX_GRPC_CONFIG_INIT;

    *f = (struct rpc_fixture){ .loop = test_loop_open(), .echoed = AGX_BUF_INIT(65536) };
    f->held = calloc(RPC_HELD_MAX, sizeof(*f->held));
    ASSERT_NOT_NULL(f->held);
    ASSERT_OK(agx_grpc_server_open(f->loop, config ? config : &defaults, &f->server, NULL));
    ASSERT_OK(agx_grpc_server_add(f->server, methods, AGX_ARRAY_LEN(methods), f, NULL));
    rpc_connect(f, &f->client);
}

static void on_stopped(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct rpc_fixture *)user)->n_stopped++;
}

void rpc_stop(struct rpc_fixture *f, uint64_t deadline_ms)
{
    agx_grpc_server_stop(f->server, deadline_ms, on_stopped, f);
    ASSERT_UINT(0, f->n_stopped);
    f->server = NULL;
}

void rpc_teardown(struct rpc_fixture *f)
{
    if (f->client.session)
        rpc_client_close(&f->client);
    if (f->server)
        rpc_stop(f, 0);
    test_loop_run(f->loop);
    ASSERT_UINT(1, f->n_stopped);
    for (size_t i = 0; i < f->n_held; i++) {
        ASSERT_TRUE(f->held[i].n_ended <= 1);
        agx_buf_done(&f->held[i].got);
    }
    free(f->held);
    agx_buf_done(&f->echoed);
    test_loop_close(f->loop);
}

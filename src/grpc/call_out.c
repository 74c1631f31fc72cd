/*
 * call_out.c: output to a client: headers, messages, trailers.
 *
 * Messages wait in `out` until nghttp2 asks for them, as the client's windows allow. Invariants:
 *  (1) the trailers follow when `out` is empty and the call is finished, and nothing follows them;
 *  (2) no stream is left without an end: an end that cannot be sent as trailers is a reset, or the
 *      end of the connection.
 */
#include "grpc/grpc_internal.h"

#include "codec/grpc_meta.h"

#include <assert.h>

#include "base/banned.h"

enum { FIELDS_MAX = 64, COMPACT = 64 << 10 };

#define NV(name_, value_)                                                                          \
    {                                                                                              \
        .name = (uint8_t *)(name_), .value = (uint8_t *)(value_), .namelen = sizeof(name_) - 1,    \
        .valuelen = sizeof(value_) - 1,                                                            \
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                      \
    }

/* The first headers of every gRPC answer. */
static const nghttp2_nv response[] = {
    NV(":status", "200"),
    NV("content-type", "application/grpc"),
};

/* nghttp2 fails only without memory: then the connection ends. That happens later and ends its
 * calls, so no call ends inside a call of its handler's. */
static void submitted(struct agx_grpc_call *c, int r)
{
    if (r < 0)
        c->link->failed = true;
}

void agx_grpc_call_reset(struct agx_grpc_call *c, uint32_t h2_code)
{
    submitted(c,
              nghttp2_submit_rst_stream(c->link->session, NGHTTP2_FLAG_NONE, c->stream, h2_code));
}

void agx_grpc_call_wait(struct agx_grpc_call *c, bool waiting)
{
    if (c->waiting == waiting)
        return;
    c->waiting = waiting;
    if (waiting)
        c->link->n_waiting++;
    else
        c->link->n_waiting--;
}

void agx_grpc_call_refuse(struct agx_grpc_call *c, const char *http_status)
{
    nghttp2_nv nv = NV(":status", "000");

    c->finished = c->responded = true;
    nv.value = (uint8_t *)http_status;
    submitted(c, nghttp2_submit_response(c->link->session, c->stream, &nv, 1, NULL));
}

static void submit_trailers(struct agx_grpc_call *c)
{
    nghttp2_nv nv[FIELDS_MAX];
    size_t n = agx_grpc_headers_nv(&c->trailers, nv, FIELDS_MAX);

    submitted(c, nghttp2_submit_trailer(c->link->session, c->stream, nv, n));
}

/* nghttp2's callback for up to `len` bytes of the stream. */
static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t len,
                        uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct agx_grpc_call *c = source->ptr;
    size_t n = AGX_MIN(len, agx_grpc_call_queued(c));

    (void)session;
    (void)stream;
    (void)user;
    if (n > 0)
        memcpy(buf, c->out.data + c->out_at, n);
    c->out_at += n;
    if (c->out_at == c->out.len) {
        agx_buf_clear(&c->out);
        c->out_at = 0;
        if (c->finished) {
            *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
            agx_buf_done(&c->out);
            (void)agx_grpc_call_count(c);
            submit_trailers(c);
        } else if (n == 0) {
            c->deferred = true;
            return NGHTTP2_ERR_DEFERRED;
        }
    } else if (c->out_at >= COMPACT && c->out_at >= c->out.len - c->out_at) {
        agx_buf_consume(&c->out, c->out_at);
        c->out_at = 0;
    }
    return (ssize_t)n;
}

/* Submits the headers; messages follow as they are queued. */
static void respond(struct agx_grpc_call *c)
{
    const nghttp2_data_provider provider = { .source.ptr = c, .read_callback = read_out };

    if (c->responded)
        return;
    c->responded = true;
    submitted(c, nghttp2_submit_response(c->link->session, c->stream, response,
                                         AGX_ARRAY_LEN(response), &provider));
}

/* Makes nghttp2 call read_out() again. */
static void continue_out(struct agx_grpc_call *c)
{
    respond(c);
    if (c->deferred) {
        c->deferred = false;
        submitted(c, nghttp2_session_resume_data(c->link->session, c->stream));
    }
}

void agx_grpc_call_begin(struct agx_grpc_call *c)
{
    assert(!c->finished);
    respond(c);
    agx_grpc_link_wake(c->link);
}

/* Queues a message; on failure nothing has changed. */
static int queue(struct agx_grpc_call *c, struct agx_str message)
{
    struct agx_grpc_link *l = c->link;
    size_t need = message.len + AGX_GRPC_PREFIX_SIZE;

    if (l->bytes > l->host->config.conn_bytes_max ||
        need > l->host->config.conn_bytes_max - l->bytes)
        return -AGX_RESOURCE_EXHAUSTED;
    if (agx_grpc_frame_encode(&c->out, message) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    (void)agx_grpc_call_count(c);
    return 0;
}

int agx_grpc_call_send(struct agx_grpc_call *c, struct agx_str message)
{
    size_t high = c->link->host->config.stream_high;
    int r;

    assert(!c->finished);
    if (agx_grpc_call_queued(c) >= high)
        return -AGX_RESOURCE_EXHAUSTED;
    r = queue(c, message);
    if (r < 0)
        return r;
    continue_out(c);
    agx_grpc_link_wake(c->link);
    if (agx_grpc_call_queued(c) < high)
        return 0;
    agx_grpc_call_wait(c, true);
    return 1;
}

/* Appends a field with the value encoded by `encode`. */
static int add_encoded(struct agx_grpc_headers *h, struct agx_str name,
                       int (*encode)(struct agx_buf *, struct agx_str), struct agx_str value)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_GRPC_TRAILERS_MAX);
    int r = encode(&text, value);

    return r < 0 ? r : agx_grpc_headers_add(h, name, agx_buf_peek(&text));
}

static int add_meta(struct agx_grpc_headers *h, const struct agx_grpc_meta *m)
{
    assert(agx_grpc_key_is_valid(m->key) && !agx_grpc_key_is_reserved(m->key));
    if (agx_grpc_key_is_bin(m->key))
        return add_encoded(h, m->key, agx_grpc_bin_encode, m->value);
    return agx_grpc_headers_add(h, m->key, m->value);
}

static int add_status(struct agx_grpc_headers *h, const struct agx_grpc_status *s)
{
    int r = agx_grpc_headers_add(h, AGX_STR("grpc-status"),
                                 agx_str_from(agx_grpc_status_text(s->code)));

    if (r == 0 && s->message.len > 0)
        r = add_encoded(h, AGX_STR("grpc-message"), agx_grpc_message_encode, s->message);
    if (r == 0 && s->details.len > 0)
        r = add_encoded(h, AGX_STR("grpc-status-details-bin"), agx_grpc_bin_encode, s->details);
    for (size_t i = 0; i < s->trailer_count && i < FIELDS_MAX / 2 && r == 0; i++)
        r = add_meta(h, &s->trailers[i]);
    return r;
}

/* Makes the trailers; shortened if they are too long. */
static int make_trailers(struct agx_grpc_call *c, const struct agx_grpc_status *s)
{
    struct agx_grpc_status brief = { .code = s->code, .message = s->message };

    if (add_status(&c->trailers, s) == 0)
        return 0;
    /* In the worst case a byte is encoded as three. */
    brief.message.len = AGX_MIN(s->message.len, AGX_GRPC_TRAILERS_MAX / 4);
    agx_grpc_headers_done(&c->trailers);
    return add_status(&c->trailers, &brief);
}

static void submit_trailers_only(struct agx_grpc_call *c)
{
    nghttp2_nv nv[FIELDS_MAX];
    size_t n = AGX_ARRAY_LEN(response);

    memcpy(nv, response, sizeof(response));
    n += agx_grpc_headers_nv(&c->trailers, nv + n, FIELDS_MAX - n);
    c->responded = true;
    submitted(c, nghttp2_submit_response(c->link->session, c->stream, nv, n, NULL));
}

void agx_grpc_call_finish(struct agx_grpc_call *c, const struct agx_grpc_status *status)
{
    struct agx_grpc_link *l = c->link;

    assert(!c->finished);
    c->finished = true;
    c->ops = NULL;
    agx_grpc_call_wait(c, false);
    if (make_trailers(c, status) < 0)
        agx_grpc_call_reset(c, NGHTTP2_INTERNAL_ERROR);
    else if (c->responded || c->out.len > 0)
        continue_out(c);
    else
        submit_trailers_only(c);
    (void)agx_grpc_call_count(c);
    agx_grpc_link_wake(l);
}

void agx_grpc_call_fail(struct agx_grpc_call *c, struct agx_error **take_error)
{
    char text[1024];
    enum agx_code code = (*take_error)->code;

    agx_error_format(*take_error, text, sizeof(text));
    *take_error = agx_error_free(*take_error);
    agx_grpc_call_finish(c,
                         &(struct agx_grpc_status){ .code = code, .message = agx_str_from(text) });
}

void agx_grpc_call_reply(struct agx_grpc_call *c, struct agx_str message)
{
    struct agx_grpc_status status = { .code = AGX_OK };

    assert(c->out.len == 0);
    if (queue(c, message) < 0) {
        status.code = AGX_RESOURCE_EXHAUSTED;
        status.message = AGX_STR("the reply is larger than this connection may hold");
    }
    agx_grpc_call_finish(c, &status);
}

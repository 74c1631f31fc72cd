/* client_send.c: a call's request: headers and one message, or a stream of messages. */
#include "grpc/client_internal.h"

#include "codec/grpc_meta.h"

#include <assert.h>

#include "base/banned.h"

enum { FIXED_FIELDS = 7, META_MAX = 32 };

/* nghttp2's callback for up to `len` bytes of the request. */
static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t len,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct agx_grpc_reply *r = source->ptr;
    size_t n = AGX_MIN(len, r->request.len - r->request_at);

    (void)session;
    (void)stream;
    (void)user;
    if (n == 0 && r->more) {
        r->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0)
        memcpy(buf, r->request.data + r->request_at, n);
    r->request_at += n;
    if (r->request_at == r->request.len && !r->more)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* The request's headers; its own values live in `own`. */
static int make_headers(const struct agx_grpc_request *q, struct agx_grpc_headers *own)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_GRPC_HEADERS_MAX);
    const struct agx_grpc_meta fixed[] = {
        { AGX_STR(":method"), AGX_STR("POST") },
        { AGX_STR(":scheme"), AGX_STR("http") },
        { AGX_STR(":path"), agx_str_from(q->path) },
        { AGX_STR(":authority"), AGX_STR("localhost") },
        { AGX_STR("te"), AGX_STR("trailers") },
        { AGX_STR("content-type"), AGX_STR("application/grpc") },
    };
    int r = 0;

    for (size_t i = 0; i < AGX_ARRAY_LEN(fixed) && r == 0; i++)
        r = agx_grpc_headers_add(own, fixed[i].key, fixed[i].value);
    if (r == 0 && q->timeout_ms > 0) {
        r = agx_grpc_timeout_format(&text, AGX_MIN(q->timeout_ms, UINT64_MAX / 1000000) * 1000000);
        if (r == 0)
            r = agx_grpc_headers_add(own, AGX_STR("grpc-timeout"), agx_buf_peek(&text));
    }
    for (size_t i = 0; i < q->meta_count && r == 0; i++) {
        bool bin = agx_grpc_key_is_bin(q->meta[i].key);

        agx_buf_clear(&text);
        r = bin ? agx_grpc_bin_encode(&text, q->meta[i].value) : 0;
        if (r == 0)
            r = agx_grpc_headers_add(own, q->meta[i].key,
                                     bin ? agx_buf_peek(&text) : q->meta[i].value);
    }
    return r;
}

int agx_grpc_reply_submit(struct agx_grpc_reply *r, const struct agx_grpc_request *q,
                          struct agx_error **err)
{
    const nghttp2_data_provider provider = { .source.ptr = r, .read_callback = read_request };
    nghttp2_nv nv[FIXED_FIELDS + META_MAX];
    struct agx_grpc_headers own;
    int32_t id;

    if (q->meta_count > META_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "more than %d values of metadata",
                             META_MAX);
    agx_grpc_headers_init(&own, AGX_GRPC_HEADERS_MAX);
    r->more = q->more;
    if (make_headers(q, &own) < 0 ||
        (!q->more && agx_grpc_frame_encode(&r->request, q->message) < 0)) {
        agx_grpc_headers_done(&own);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the request '%s' is too large", q->path);
    }
    id = nghttp2_submit_request(r->client->session, NULL, nv,
                                agx_grpc_headers_nv(&own, nv, AGX_ARRAY_LEN(nv)), &provider, r);
    agx_grpc_headers_done(&own);
    if (id < 0) {
        r->client->refused = true;
        return agx_error_set(err, AGX_UNAVAILABLE, "the server takes no more calls");
    }
    r->stream = id;
    return 0;
}

/* Makes nghttp2 call read_request() again. */
static void continue_request(struct agx_grpc_reply *r)
{
    if (r->deferred && r->stream != 0 &&
        nghttp2_session_resume_data(r->client->session, r->stream) == 0)
        r->deferred = false;
    if (!r->client->lost)
        agx_grpc_client_write(r->client);
}

int agx_grpc_reply_send(struct agx_grpc_reply *r, struct agx_str message, struct agx_error **err)
{
    assert(r->more);
    if (r->over) /* discarded; agx_grpc_reply_next() returns the reason */
        return 0;
    agx_buf_consume(&r->request, r->request_at);
    r->request_at = 0;
    if (agx_grpc_frame_encode(&r->request, message) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a message of %zu bytes",
                             message.len);
    continue_request(r);
    return 0;
}

void agx_grpc_reply_send_end(struct agx_grpc_reply *r)
{
    r->more = false;
    continue_request(r);
}

size_t agx_grpc_reply_unsent(const struct agx_grpc_reply *r)
{
    return r->over ? 0 : r->request.len - r->request_at;
}

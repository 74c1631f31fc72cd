/*
 * link.c: one connection's HTTP/2, with nghttp2's memory interface.
 *
 *     serving --shutdown()--> noticed --answer, drain()--> draining --last call--> over
 *
 * Invariants:
 *  (1) nghttp2 is not re-entered: while `busy`, calls only submit, and the submitted data is sent
 *      afterwards;
 *  (2) every stream that nghttp2 reports is one call, from on_begin_headers to on_stream_close;
 *  (3) `bytes` exceeds conn_bytes_max by at most one read, since the calls' buffers are counted
 *      when they grow; `h2_bytes` never does, because nghttp2 uses our allocator. They are separate
 *      so that calls which hold too much fail alone and do not end the connection;
 *      ENHANCE_YOUR_CALM. nghttp2's own limit of resets is off: it cannot be configured per
 *      connection, an ordinary client exhausts it, and it ends with INTERNAL_ERROR.
 */
#include "grpc/grpc_internal.h"

#include <malloc.h>

#include "base/banned.h"

/* Payloads of our PINGs: the answer to the first shows that the client has seen our GOAWAY. */
static const uint8_t ping_shutdown[8] = "shutdown", ping_alive[8] = "keepaliv";

/* nghttp2's allocator, which counts its memory. */

static void *mem_realloc(void *p, size_t size, void *user)
{
    struct agx_grpc_link *l = user;
    size_t before = malloc_usable_size(p);
    void *q;

    if (size > before && l->h2_bytes + (size - before) > l->host->config.conn_bytes_max)
        return NULL;
    q = realloc(p, AGX_MAX(size, 1)); /* realloc(p, 0) would be a free() */
    if (!q)
        return NULL;
    l->h2_bytes += malloc_usable_size(q) - before;
    l->host->stats.bytes += malloc_usable_size(q) - before;
    return q;
}

static void *mem_malloc(size_t size, void *user)
{
    return mem_realloc(NULL, size, user);
}

static void *mem_calloc(size_t n, size_t size, void *user)
{
    void *p = n > 0 && size > SIZE_MAX / n ? NULL : mem_realloc(NULL, n * size, user);

    if (p)
        memset(p, 0, n * size);
    return p;
}

static void mem_free(void *p, void *user)
{
    struct agx_grpc_link *l = user;

    l->h2_bytes -= malloc_usable_size(p);
    l->host->stats.bytes -= malloc_usable_size(p);
    free(p);
}

static struct agx_grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

/* The peer has exceeded its rate limit. */
static void calm(struct agx_grpc_link *l)
{
    if (l->failed || l->draining)
        return;
    l->draining = true;
    l->host->stats.calmed++;
    if (nghttp2_session_terminate_session(l->session, NGHTTP2_ENHANCE_YOUR_CALM) < 0)
        l->failed = true;
}

static void spend(struct agx_grpc_link *l, struct agx_grpc_ratelimit *g)
{
    if (!agx_grpc_ratelimit_spend(g, l->host->now_ms))
        calm(l);
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct agx_grpc_link *l = user;
    struct agx_grpc_call *c;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    c = agx_grpc_call_new(l, frame->hd.stream_id);
    if (!c)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    (void)nghttp2_session_set_stream_user_data(session, c->stream, c);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct agx_grpc_call *c = call_of(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (c && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        agx_grpc_call_header(c, agx_str_bytes(name, name_len), agx_str_bytes(value, value_len));
    return 0;
}

static void on_ping(struct agx_grpc_link *l, const nghttp2_frame *frame)
{
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
        spend(l, &l->controls);
    else if (memcmp(frame->ping.opaque_data, ping_shutdown, sizeof(ping_shutdown)) == 0)
        agx_grpc_link_drain(l);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct agx_grpc_link *l = user;
    struct agx_grpc_call *c = call_of(session, frame->hd.stream_id);
    bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (c && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            agx_grpc_call_request(c);
        else if (c && !end)
            agx_grpc_call_abandon(c); /* trailers must end the stream */
        if (c && end)
            agx_grpc_call_eof(c);
        break;
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && !end)
            spend(l, &l->controls);
        if (c && end)
            agx_grpc_call_eof(c);
        break;
    case NGHTTP2_RST_STREAM:
        spend(l, &l->resets);
        break;
    case NGHTTP2_SETTINGS:
        l->greeted = true;
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            spend(l, &l->controls);
        break;
    case NGHTTP2_PING:
        on_ping(l, frame);
        break;
    case NGHTTP2_PRIORITY:
        spend(l, &l->controls);
        break;
    default:
        break;
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t len, void *user)
{
    struct agx_grpc_call *c = call_of(session, stream);

    (void)flags;
    (void)user;
    (void)nghttp2_session_consume_connection(session, len);
    if (c)
        agx_grpc_call_data(c, agx_str_bytes(data, len));
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct agx_grpc_link *l = user;
    struct agx_grpc_call *c = call_of(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)
        agx_grpc_ratelimit_refund(&l->controls);
    /* A reset that we send for a fault of the peer costs as much as the peer's own resets. */
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        spend(l, &l->resets);
    /* Our side has ended: later input of the client is useless. */
    if (c && !c->remote_ended &&
        (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        agx_grpc_call_reset(c, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct agx_grpc_call *c = call_of(session, stream);

    (void)error;
    (void)user;
    if (c) {
        (void)nghttp2_session_set_stream_user_data(session, stream, NULL);
        agx_grpc_call_closed(c, AGX_CANCELLED);
    }
    return 0;
}

static int make_callbacks(nghttp2_session_callbacks **ret_cb)
{
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new(&cb) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    *ret_cb = cb;
    return 0;
}

static int make_session(struct agx_grpc_link *l)
{
    nghttp2_session_callbacks *cb = NULL;
    nghttp2_option *option = NULL;
    int r = make_callbacks(&cb);

    if (r == 0 && nghttp2_option_new(&option) < 0)
        r = -AGX_RESOURCE_EXHAUSTED;
    if (r == 0) {
        nghttp2_option_set_no_auto_window_update(option, 1);
        /* Its check refuses an :authority that gRPC clients send; call_in.c does the other checks.
         */
        nghttp2_option_set_no_http_messaging(option, 1);
        /* We do not need closed streams: gRPC has no priorities. */
        nghttp2_option_set_no_closed_streams(option, 1);
#ifdef AGX_HAVE_NGHTTP2_RESET_RATE /* older versions have no such limit */
        nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
#endif
        r = nghttp2_session_server_new3(&l->session, cb, l, option, &l->mem) < 0
                ? -AGX_RESOURCE_EXHAUSTED
                : 0;
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(cb);
    return r;
}

static int greet(struct agx_grpc_link *l)
{
    const struct agx_grpc_config *config = &l->host->config;
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, config->streams_max },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, config->stream_window },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)config->headers_max },
    };

    if (nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, settings, AGX_ARRAY_LEN(settings)) <
            0 ||
        nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)config->conn_window) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return 0;
}

/* The count that this link belongs to. */
static size_t *conns_of(struct agx_grpc_link *l)
{
    return l->admitted ? &l->host->stats.conns : &l->host->stats.refused;
}

int agx_grpc_link_new(struct agx_grpc_shared *h, const struct agx_grpc_peer *peer, bool admitted,
                      void *io, struct agx_grpc_link **ret_link, struct agx_error **err)
{
    const struct agx_grpc_config *config = &h->config;
    struct agx_grpc_link *l = calloc(1, sizeof(*l));

    if (!l)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    l->host = h;
    l->io = io;
    l->peer = *peer;
    l->admitted = admitted;
    l->mem = (nghttp2_mem){ l, mem_malloc, mem_free, mem_calloc, mem_realloc };
    agx_grpc_ratelimit_init(&l->resets, config->resets_burst, config->resets_per_s, h->now_ms);
    agx_grpc_ratelimit_init(&l->controls, config->controls_burst, config->controls_per_s,
                            h->now_ms);
    (*conns_of(l))++;
    if (make_session(l) < 0 || greet(l) < 0) {
        (void)agx_grpc_link_free(l);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    }
    *ret_link = l;
    return 0;
}

struct agx_grpc_link *agx_grpc_link_free(struct agx_grpc_link *l)
{
    struct agx_grpc_call *c;

    if (!l)
        return NULL;
    l->busy = true; /* nothing that a handler submits now is sent */
    l->failed = true;
    while ((c = AGX_LIST_FIRST(&l->calls, struct agx_grpc_call, node)))
        agx_grpc_call_closed(c, AGX_CANCELLED);
    nghttp2_session_del(l->session);
    (*conns_of(l))--;
    free(l);
    return NULL;
}

void agx_grpc_link_wake(struct agx_grpc_link *l)
{
    if (!l->busy)
        l->host->wake(l);
}

void agx_grpc_link_recv(struct agx_grpc_link *l, struct agx_str bytes)
{
    ssize_t n;

    if (l->failed)
        return;
    l->busy = true;
    n = nghttp2_session_mem_recv(l->session, (const uint8_t *)bytes.ptr, bytes.len);
    l->busy = false;
    if (n < 0)
        l->failed = true;
}

bool agx_grpc_link_send(struct agx_grpc_link *l, struct agx_buf *out, size_t room)
{
    size_t sent = 0;
    const uint8_t *data;
    ssize_t n = 0;

    if (l->failed)
        return false;
    l->busy = true;
    while (sent < room) {
        n = nghttp2_session_mem_send(l->session, &data);
        if (n <= 0)
            break;
        if (agx_buf_append(out, agx_str_bytes(data, (size_t)n)) < 0) {
            n = -1;
            break;
        }
        sent += (size_t)n;
    }
    l->busy = false;
    if (n < 0)
        l->failed = true;
    return n > 0;
}

bool agx_grpc_link_writable(struct agx_grpc_link *l)
{
    bool told = false;

    if (l->n_waiting == 0)
        return false;
    l->busy = true; /* invariant 1; and no call is freed under our feet */
    AGX_LIST_FOR_EACH (struct agx_grpc_call, c, &l->calls, node) {
        if (!c->waiting || agx_grpc_call_queued(c) >= l->host->config.stream_high)
            continue;
        agx_grpc_call_wait(c, false);
        if (c->ops && c->ops->writable) {
            c->ops->writable(c->user);
            told = true;
        }
    }
    l->busy = false;
    return told;
}

void agx_grpc_link_deliver(struct agx_grpc_link *l)
{
    l->later = false;
    l->busy = true;
    AGX_LIST_FOR_EACH (struct agx_grpc_call, c, &l->calls, node)
        agx_grpc_call_deliver(c);
    l->busy = false;
}

bool agx_grpc_link_is_over(const struct agx_grpc_link *l)
{
    if (l->failed)
        return true;
    if (nghttp2_session_want_write(l->session))
        return false;
    return (l->draining && l->n_calls == 0) || !nghttp2_session_want_read(l->session);
}

void agx_grpc_link_ping(struct agx_grpc_link *l)
{
    if (nghttp2_submit_ping(l->session, NGHTTP2_FLAG_NONE, ping_alive) < 0)
        l->failed = true;
}

void agx_grpc_link_shutdown(struct agx_grpc_link *l)
{
    if (nghttp2_submit_shutdown_notice(l->session) < 0 ||
        nghttp2_submit_ping(l->session, NGHTTP2_FLAG_NONE, ping_shutdown) < 0)
        l->failed = true;
}

void agx_grpc_link_drain(struct agx_grpc_link *l)
{
    if (l->draining)
        return;
    l->draining = true;
    if (nghttp2_submit_goaway(l->session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(l->session), NGHTTP2_NO_ERROR,
                              NULL, 0) < 0)
        l->failed = true;
}

void agx_grpc_link_end_calls(struct agx_grpc_link *l, bool endless_only)
{
    l->busy = true;
    AGX_LIST_FOR_EACH (struct agx_grpc_call, c, &l->calls, node) {
        if (!c->finished && (!endless_only || (c->entry && c->entry->method->endless)))
            agx_grpc_call_end(c, AGX_UNAVAILABLE, "the server is shutting down");
    }
    l->busy = false;
}

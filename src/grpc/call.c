/*
 * call.c: a call: one HTTP/2 stream, its handler, its end.
 *
 *     headers --request--> handler --reply, finish, fail--> FINISHED --stream closed--> freed
 *        |                    |                                ^                          ^
 *        +---- refused -------+---- end(): deadline, fault ----+      reset, lost --------+
 *
 * Invariants:
 *  (1) `ops` is NULL before watch() and after the end, so a handler is never notified twice;
 *  (2) a call lives as long as its stream: nghttp2 reports its end, or the link frees it;
 *  (3) all its memory is counted in link->bytes; `counted` has its share.
 */
#include "grpc/grpc_internal.h"

#include <assert.h>

#include "base/banned.h"

struct agx_grpc_call *agx_grpc_call_new(struct agx_grpc_link *l, int32_t stream)
{
    struct agx_grpc_call *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->link = l;
    c->stream = stream;
    agx_grpc_headers_init(&c->meta, l->host->config.headers_max);
    agx_grpc_headers_init(&c->trailers, AGX_GRPC_TRAILERS_MAX);
    agx_grpc_decoder_init(&c->decoder, l->host->config.message_max);
    c->in.max = c->out.max = l->host->config.conn_bytes_max;
    agx_list_push_front(&l->calls, &c->node);
    l->n_calls++;
    l->host->stats.calls++;
    (void)agx_grpc_call_count(c);
    return c;
}

void agx_grpc_call_free(struct agx_grpc_call *c)
{
    struct agx_grpc_link *l = c->link;

    agx_grpc_call_wait(c, false);
    agx_heap_remove(&l->host->deadlines, &c->deadline);
    agx_list_remove(&c->node);
    l->n_calls--;
    l->host->stats.calls--;
    l->bytes -= c->counted;
    l->host->stats.bytes -= c->counted;
    agx_grpc_headers_done(&c->meta);
    agx_grpc_headers_done(&c->trailers);
    agx_grpc_decoder_done(&c->decoder);
    agx_buf_done(&c->in);
    agx_buf_done(&c->out);
    c->refused = agx_error_free(c->refused);
    free(c);
}

bool agx_grpc_call_count(struct agx_grpc_call *c)
{
    struct agx_grpc_link *l = c->link;
    size_t now = sizeof(*c) + c->meta.packed.cap + c->trailers.packed.cap + c->decoder.held.cap +
                 c->in.cap + c->out.cap;

    l->bytes += now - c->counted;
    l->host->stats.bytes += now - c->counted;
    c->counted = now;
    return l->bytes <= l->host->config.conn_bytes_max;
}

void agx_grpc_call_watch(struct agx_grpc_call *c, const struct agx_grpc_call_ops *ops, void *user)
{
    assert(!c->finished && ops->ended);
    c->ops = ops;
    c->user = user;
}

void agx_grpc_call_end(struct agx_grpc_call *c, enum agx_code code, const char *why)
{
    const struct agx_grpc_call_ops *ops = c->ops;
    void *user = c->user;

    assert(!c->finished);
    if (agx_grpc_call_queued(c) > 0) {
        /* The client does not read earlier messages, so a status after them would never arrive. */
        c->finished = true;
        c->ops = NULL;
        agx_grpc_call_wait(c, false);
        agx_grpc_call_reset(c, NGHTTP2_CANCEL);
    } else {
        bool busy = c->link->busy;

        c->link->busy = true; /* whatever ended() submits is sent together with this */
        agx_grpc_call_finish(
            c, &(struct agx_grpc_status){ .code = code, .message = agx_str_from(why) });
        c->link->busy = busy;
    }
    /* Unlike in finish() no handler needs these buffers; other calls may need the memory. */
    agx_grpc_decoder_done(&c->decoder);
    agx_buf_done(&c->in);
    (void)agx_grpc_call_count(c);
    if (ops)
        ops->ended(user, code);
}

void agx_grpc_call_abandon(struct agx_grpc_call *c)
{
    if (!c->ops)
        c->finished = true; /* no handler to notify; later input is dropped */
    agx_grpc_call_reset(c, NGHTTP2_PROTOCOL_ERROR);
}

void agx_grpc_call_closed(struct agx_grpc_call *c, enum agx_code code)
{
    const struct agx_grpc_call_ops *ops = c->ops;
    void *user = c->user;

    agx_grpc_call_free(c);
    if (ops)
        ops->ended(user, code);
}

const struct agx_grpc_peer *agx_grpc_call_peek_peer(const struct agx_grpc_call *c)
{
    return &c->link->peer;
}

struct agx_str agx_grpc_call_peek_meta(const struct agx_grpc_call *c, struct agx_str key)
{
    return agx_grpc_headers_peek(&c->meta, key);
}

bool agx_grpc_call_next_meta(const struct agx_grpc_call *c, size_t *at, struct agx_grpc_meta *ret)
{
    return agx_grpc_headers_next(&c->meta, at, &ret->key, &ret->value);
}

size_t agx_grpc_call_queued(const struct agx_grpc_call *c)
{
    return c->out.len - c->out_at;
}

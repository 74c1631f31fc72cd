/*
 * call_in.c: input from a client: headers, messages, end of stream.
 *
 * Methods with one request call their handler when the message and the end of stream have arrived;
 * the others when the headers have. A fault is answered once, and later input is dropped.
 */
#include "grpc/grpc_internal.h"

#include "codec/grpc_meta.h"

#include <assert.h>

#include "base/banned.h"

/* Bits of agx_grpc_call.pseudo, in the order of the table in is_well_formed(). */
enum { PSEUDO_NEEDED = 1 | 2 | 4, PSEUDO_OVER = 16 };

/* Stores the first reason; the answer must wait until the headers are complete. */
static void call_in_refuse(struct agx_grpc_call *c, struct agx_error **take_error)
{
    agx_error_propagate(&c->refused, take_error);
}

static void set_timeout(struct agx_grpc_call *c, struct agx_str value)
{
    struct agx_grpc_shared *h = c->link->host;
    struct agx_error *err = NULL;
    uint64_t ns, ms;

    if (agx_grpc_timeout_parse(value, &ns, &err) < 0) {
        call_in_refuse(c, &err);
        return;
    }
    ms = ns / 1000000 + (ns % 1000000 > 0);
    if (agx_heap_has(&c->deadline) || ms > UINT64_MAX - h->now_ms)
        return;
    if (agx_heap_put(&h->deadlines, &c->deadline, h->now_ms + ms) < 0) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no memory for a deadline");
        call_in_refuse(c, &err);
    }
}

static void set_encoding(struct agx_grpc_call *c, struct agx_str value)
{
    struct agx_error *err = NULL;

    if (agx_grpc_encoding_check(value, &err) < 0)
        call_in_refuse(c, &err);
}

static bool is_transports(struct agx_str name)
{
    return name.ptr[0] == ':' || agx_str_eq(name, AGX_STR("te")) ||
           agx_str_eq(name, AGX_STR("content-type")) || agx_grpc_key_is_reserved(name);
}

/* Enforces HTTP/2's rules for requests, except for :authority: a gRPC server must ignore it, and
 * some clients on Unix sockets put a path there. */
static bool is_well_formed(struct agx_grpc_call *c, struct agx_str name, struct agx_str value)
{
    static const char *const pseudo[] = { ":method", ":scheme", ":path", ":authority" };
    static const char *const hop[] = { "connection", "keep-alive", "proxy-connection",
                                       "transfer-encoding", "upgrade" };

    if (!nghttp2_check_header_name((const uint8_t *)name.ptr, name.len) ||
        !nghttp2_check_header_value((const uint8_t *)value.ptr, value.len))
        return false;
    for (size_t i = 0; i < AGX_ARRAY_LEN(hop); i++) {
        if (agx_str_eq(name, agx_str_from(hop[i])))
            return false;
    }
    if (name.ptr[0] != ':') {
        c->pseudo |= PSEUDO_OVER;
        return true;
    }
    for (unsigned i = 0; i < AGX_ARRAY_LEN(pseudo); i++) {
        if (agx_str_eq(name, agx_str_from(pseudo[i])) && !(c->pseudo & (1U << i | PSEUDO_OVER))) {
            c->pseudo |= 1U << i;
            return true;
        }
    }
    return false;
}

void agx_grpc_call_header(struct agx_grpc_call *c, struct agx_str name, struct agx_str value)
{
    struct agx_error *err = NULL;

    if (!is_well_formed(c, name, value)) {
        c->malformed = true;
        return;
    }
    if (agx_str_eq(name, AGX_STR(":path")))
        c->entry = agx_map_get(&c->link->host->methods, value);
    else if (agx_str_eq(name, AGX_STR(":method")))
        c->is_post = agx_str_eq(value, AGX_STR("POST"));
    else if (agx_str_eq(name, AGX_STR("content-type")))
        c->is_grpc = agx_grpc_content_type_is_ok(value);
    else if (agx_str_eq(name, AGX_STR("grpc-timeout")))
        set_timeout(c, value);
    else if (agx_str_eq(name, AGX_STR("grpc-encoding")))
        set_encoding(c, value);
    if (agx_str_eq(name, AGX_STR(":path")) && !c->entry) {
        (void)agx_error_set(&err, AGX_UNIMPLEMENTED, "unknown method '%.*s'",
                            (int)AGX_MIN(value.len, 256), value.ptr);
        call_in_refuse(c, &err);
    }
    c->header_bytes += name.len + value.len + AGX_GRPC_FIELD_OVERHEAD;
    if (c->header_bytes > c->meta.packed.max ||
        (!is_transports(name) && agx_grpc_headers_add(&c->meta, name, value) < 0)) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "the headers are larger than %zu bytes",
                            c->meta.packed.max);
        call_in_refuse(c, &err);
    }
}

static bool takes_one(const struct agx_grpc_call *c)
{
    enum agx_grpc_kind kind = c->entry->method->kind;

    return kind == AGX_GRPC_UNARY || kind == AGX_GRPC_SERVER_STREAM;
}

static void call_in_start(struct agx_grpc_call *c)
{
    c->started = true;
    c->link->host->stats.started++;
    c->entry->method->handler(c->entry->service, c, c->request);
    assert(c->finished || c->ops);
    c->request = (struct agx_str){ NULL, 0 };
    agx_grpc_decoder_done(&c->decoder);
    if (!c->paused)
        agx_buf_done(&c->in);
    (void)agx_grpc_call_count(c);
}

void agx_grpc_call_request(struct agx_grpc_call *c)
{
    struct agx_error *err = NULL;

    if (c->malformed || (c->pseudo & PSEUDO_NEEDED) != PSEUDO_NEEDED) {
        agx_grpc_call_abandon(c);
        return;
    }
    if (!c->is_post) {
        agx_grpc_call_refuse(c, "405");
        return;
    }
    if (!c->is_grpc) {
        agx_grpc_call_refuse(c, "415");
        return;
    }
    if (!c->link->admitted) {
        (void)agx_error_set(&err, AGX_PERMISSION_DENIED, "user %lu may not use this server",
                            (unsigned long)c->link->peer.uid);
        c->refused = agx_error_free(c->refused);
        call_in_refuse(c, &err);
    }
    if (!agx_grpc_call_count(c) && !c->refused) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "this connection already holds %zu bytes",
                            c->link->bytes);
        call_in_refuse(c, &err);
    }
    if (c->refused)
        agx_grpc_call_fail(c, &c->refused);
    else if (!takes_one(c))
        call_in_start(c);
    if (!c->link->admitted)
        agx_grpc_link_drain(c->link); /* the connection was only for this answer */
}

/* A fault of the client or ours: reported to the handler if there is one. */
static void call_in_fail(struct agx_grpc_call *c, struct agx_error **take_error)
{
    char text[512];

    agx_grpc_call_end(c, (*take_error)->code, agx_error_format(*take_error, text, sizeof(text)));
    *take_error = agx_error_free(*take_error);
}

/* Copies the one request to where it outlives the input buffer. */
static int keep_request(struct agx_grpc_call *c, struct agx_str message, struct agx_error **err)
{
    if (c->has_request)
        return agx_error_set(err, AGX_UNIMPLEMENTED, "'%s' takes one message, but more were sent",
                             c->entry->method->path);
    c->has_request = true;
    c->request = message;
    if (message.len == 0 || message.ptr == (const char *)c->decoder.held.data)
        return 0;
    if (agx_buf_append(&c->in, message) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a request of %zu bytes",
                             message.len);
    c->request = agx_buf_peek(&c->in);
    return 0;
}

/* Delivers the messages in `bytes`; returns the bytes consumed: all, unless it was paused. */
static size_t read_messages(struct agx_grpc_call *c, struct agx_str bytes)
{
    struct agx_str rest = bytes, message;
    struct agx_error *err = NULL;
    int r = 0;

    while (!c->finished && !c->paused &&
           (r = agx_grpc_decoder_next(&c->decoder, &rest, &message, &err)) > 0) {
        if (takes_one(c))
            r = keep_request(c, message, &err);
        else if (c->ops && c->ops->message)
            c->ops->message(c->user, message);
        if (r < 0)
            break;
    }
    if (r < 0)
        call_in_fail(c, &err);
    else if (!agx_grpc_call_count(c) && !c->finished)
        agx_grpc_call_end(c, AGX_RESOURCE_EXHAUSTED,
                          "this connection already holds its maximum of bytes");
    return c->finished ? bytes.len : bytes.len - rest.len;
}

static void consume(struct agx_grpc_call *c, size_t n)
{
    (void)nghttp2_session_consume_stream(c->link->session, c->stream, n);
}

/* Bytes of a stream wait for agx_grpc_call_deliver(), and later input queues behind them. A resumed
 * call is no longer paused but may not have had its turn yet. */
static bool holds_input(const struct agx_grpc_call *c)
{
    return c->paused || (c->in.len > 0 && !takes_one(c));
}

void agx_grpc_call_data(struct agx_grpc_call *c, struct agx_str bytes)
{
    size_t used = 0;

    if (c->finished) {
        consume(c, bytes.len);
        return;
    }
    if (!holds_input(c))
        used = read_messages(c, bytes);
    if (used > 0)
        consume(c, used);
    if (used < bytes.len && agx_buf_append(&c->in, agx_str_skip(bytes, used)) < 0)
        agx_grpc_call_end(c, AGX_RESOURCE_EXHAUSTED, "no memory for the messages of a call");
    (void)agx_grpc_call_count(c);
}

static void input_ended(struct agx_grpc_call *c)
{
    struct agx_error *err = NULL;

    c->half_closed = true;
    if (agx_grpc_decoder_end(&c->decoder, &err) < 0) {
        call_in_fail(c, &err);
    } else if (!takes_one(c)) {
        if (c->ops && c->ops->half_closed)
            c->ops->half_closed(c->user);
    } else if (!c->has_request) {
        (void)agx_error_set(&err, AGX_UNIMPLEMENTED, "'%s' takes one message, but none was sent",
                            c->entry->method->path);
        call_in_fail(c, &err);
    } else {
        call_in_start(c);
    }
}

void agx_grpc_call_eof(struct agx_grpc_call *c)
{
    c->remote_ended = true;
    if (!c->finished && !holds_input(c))
        input_ended(c);
}

void agx_grpc_call_deliver(struct agx_grpc_call *c)
{
    if (c->paused || c->finished)
        return;
    if (c->in.len > 0 && !takes_one(c)) {
        size_t used = read_messages(c, agx_buf_peek(&c->in));

        consume(c, used);
        if (!c->finished)
            agx_buf_consume(&c->in, used);
        (void)agx_grpc_call_count(c);
    }
    if (!c->finished && !c->paused && c->remote_ended && !c->half_closed)
        input_ended(c);
}

void agx_grpc_call_pause(struct agx_grpc_call *c)
{
    assert(!c->finished && !takes_one(c));
    c->paused = true;
}

void agx_grpc_call_resume(struct agx_grpc_call *c)
{
    c->paused = false;
    c->link->later = true;
    agx_grpc_link_wake(c->link);
}

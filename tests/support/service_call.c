/* service_call.c: calls to the services, with any manager. */
#include "tests/support/service.h"

#include "codec/grpc_meta.h"

#include "base/banned.h"

static void turn(struct service_fixture *f)
{
    if (f->rpc.client.closed)
        FAIL("the server closed the connection");
    rpc_turn(&f->rpc);
}

void service_until_closed(struct service_fixture *f, struct rpc_request *q)
{
    while (!q->closed)
        turn(f);
}

void service_start(struct service_fixture *f, struct rpc_request *q, const char *path)
{
    struct agx_str message = agx_buf_peek(&f->message);

    rpc_start(&f->rpc.client, q, path, &message);
    agx_buf_clear(&f->message);
}

static enum agx_code status_of(const struct rpc_request *q)
{
    uint64_t code;

    if (!agx_parse_u64(agx_str_from(q->grpc_status), AGX_UNAUTHENTICATED, &code))
        FAIL("the call ended without a status, HTTP/2 error %u", q->error);
    return (enum agx_code)code;
}

enum agx_code service_call(struct service_fixture *f, struct rpc_request *q, const char *path)
{
    service_start(f, q, path);
    service_until_closed(f, q);
    agx_buf_clear(&f->reply);
    (void)rpc_read(q, &f->reply);
    return status_of(q);
}

enum agx_code service_call_id(struct service_fixture *f, struct rpc_request *q, const char *path,
                              const char *id)
{
    /* Field 1, a string: all requests that have only an id have it there. */
    ASSERT_OK(agx_buf_push(&f->message, 0x0a));
    ASSERT_TRUE(strlen(id) < 128);
    ASSERT_OK(agx_buf_push(&f->message, (uint8_t)strlen(id)));
    ASSERT_OK(agx_buf_append(&f->message, agx_str_from(id)));
    return service_call(f, q, path);
}

bool service_next(struct service_fixture *f, struct rpc_request *q)
{
    while (!rpc_read(q, &f->reply)) {
        if (q->closed)
            return false;
        turn(f);
    }
    return true;
}

void service_refused(struct rpc_request *q, enum agx_code code, const char *message,
                     const char *reason, const char *key, const char *id)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(65536), bytes = AGX_BUF_INIT(65536);
    struct agx_str details = agx_str_from(q->details);
    struct agx_status_view v = { 0 };

    ASSERT_INT(code, status_of(q));
    ASSERT_OK(agx_grpc_message_decode(&text, agx_str_from(q->grpc_message)));
    ASSERT_STR(agx_str_from(message), agx_buf_peek(&text));
    if (!reason) {
        ASSERT_CSTR("", q->details);
        return;
    }
    ASSERT_OK(agx_grpc_bin_next(&details, &bytes, NULL));
    ASSERT_OK(agx_status_view_decode(&v, agx_buf_peek(&bytes), NULL));
    ASSERT_INT(code, v.code);
    ASSERT_CSTR(message, v.message);
    ASSERT_CSTR(reason, v.reason);
    ASSERT_CSTR("agents-sandbox", v.domain);
    ASSERT_CSTR(id, agx_pairs_get(&v.metadata, key));
    agx_status_view_done(&v);
}

void service_cancel(struct service_fixture *f, struct rpc_request *q)
{
    ASSERT_INT(0, nghttp2_submit_rst_stream(f->rpc.client.session, NGHTTP2_FLAG_NONE, q->stream,
                                            NGHTTP2_CANCEL));
    service_until_closed(f, q);
    service_turns(f, 3);
}

void service_turns(struct service_fixture *f, unsigned n)
{
    while (n-- > 0)
        rpc_turn(&f->rpc);
}

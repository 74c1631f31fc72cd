/*
 * reflection.c: ServerReflection: one answer for each request of a bidi call.
 *
 * A client that does not read its answers is not read either.
 */
#include "rpc/reflection.h"

#include "rpc/server.h"
#include "wire/descriptor.h"
#include "wire/reflection_wire.h"

#include "base/banned.h"

struct agx_rpc_reflection {
    struct agx_descriptors descriptors;
};

/* One call. */
struct inquiry {
    struct agx_rpc_reflection *reflection;
    struct agx_rpc_call *call;
};

/* Made by the build: health and both versions of reflection. */
extern const unsigned char agx_rpc_descriptor_set[];
extern const size_t agx_rpc_descriptor_set_len;

static void finish(struct inquiry *i, struct agx_error **take_error)
{
    if (*take_error)
        agx_rpc_call_fail(i->call, take_error);
    else
        agx_rpc_call_finish(i->call, &(struct agx_rpc_status){ .code = AGX_OK });
    free(i);
}

static int answer_file(struct agx_buf *out, const struct agx_reflection_request *q,
                       struct agx_str file)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(1024);

    if (file.ptr)
        return agx_reflection_encode_file(out, q, file);
    if (agx_buf_printf(&text, "nothing is known about '%.*s'", (int)AGX_MIN(q->name.len, 200),
                       q->name.ptr) < 0 ||
        agx_buf_push(&text, '\0') < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return agx_reflection_encode_error(out, q, AGX_NOT_FOUND, (const char *)text.data);
}

static int answer(const struct agx_descriptors *d, const struct agx_reflection_request *q,
                  struct agx_buf *out)
{
    switch (q->query) {
    case AGX_REFLECTION_FILE:
        return answer_file(out, q, agx_descriptors_by_name(d, q->name));
    case AGX_REFLECTION_SYMBOL:
        return answer_file(out, q, agx_descriptors_by_symbol(d, q->name));
    case AGX_REFLECTION_EXTENSION:
        return answer_file(out, q, (struct agx_str){ NULL, 0 });
    case AGX_REFLECTION_EXTENSION_NUMBERS:
        if (agx_descriptors_by_symbol(d, q->name).ptr)
            return agx_reflection_encode_no_extensions(out, q);
        return answer_file(out, q, (struct agx_str){ NULL, 0 });
    case AGX_REFLECTION_SERVICES:
        return agx_reflection_encode_services(out, q, d->services, d->service_count);
    case AGX_REFLECTION_NONE:
        break;
    }
    return agx_reflection_encode_error(out, q, AGX_INVALID_ARGUMENT,
                                       "the request asks for nothing");
}

static void on_message(void *user, struct agx_str message)
{
    struct inquiry *i = user;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_reflection_request q;
    struct agx_error *err = NULL;
    int r = agx_reflection_request_decode(&q, message, &err);

    if (r == 0) {
        r = answer(&i->reflection->descriptors, &q, &out);
        agx_reflection_request_done(&q);
        if (r == 0)
            r = agx_rpc_call_send(i->call, agx_buf_peek(&out));
        if (r < 0)
            (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no room for the next answer");
    }
    if (r < 0)
        finish(i, &err);
    else if (r > 0)
        agx_rpc_call_pause(i->call);
}

static void on_writable(void *user)
{
    agx_rpc_call_resume(((struct inquiry *)user)->call);
}

static void on_half_closed(void *user)
{
    finish(user, &(struct agx_error *){ NULL });
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    free(user);
}

static const struct agx_rpc_call_ops ops = {
    .ended = on_ended,
    .writable = on_writable,
    .message = on_message,
    .half_closed = on_half_closed,
};

static void info(void *service, struct agx_rpc_call *call, struct agx_str request)
{
    struct inquiry *i = malloc(sizeof(*i));
    struct agx_error *err = NULL;

    (void)request;
    if (!i) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no memory for a reflection call");
        agx_rpc_call_fail(call, &err);
        return;
    }
    *i = (struct inquiry){ service, call };
    agx_rpc_call_watch(call, &ops, i);
}

static const struct agx_rpc_method methods[] = {
    { "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", AGX_RPC_BIDI, true, info },
    { "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", AGX_RPC_BIDI, true, info },
};

int agx_rpc_reflection_new(struct agx_rpc_server *s, struct agx_rpc_reflection **ret_reflection,
                           struct agx_error **err)
{
    struct agx_rpc_reflection *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for server reflection");
    agx_descriptors_init(&r->descriptors);
    rc = agx_rpc_reflection_add(
        r, agx_str_bytes(agx_rpc_descriptor_set, agx_rpc_descriptor_set_len), err);
    if (rc == 0)
        rc = agx_rpc_server_add(s, methods, AGX_ARRAY_LEN(methods), r, err);
    if (rc < 0) {
        (void)agx_rpc_reflection_free(r);
        return rc;
    }
    *ret_reflection = r;
    return 0;
}

int agx_rpc_reflection_add(struct agx_rpc_reflection *r, struct agx_str set, struct agx_error **err)
{
    return agx_descriptors_add(&r->descriptors, set, err);
}

struct agx_rpc_reflection *agx_rpc_reflection_free(struct agx_rpc_reflection *r)
{
    if (r)
        agx_descriptors_done(&r->descriptors);
    free(r);
    return NULL;
}

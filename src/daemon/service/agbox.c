/*
 * agbox.c: agbox.v1.SandboxService: reads, answered at once, and requests, answered by the
 * manager once they are durable. Lists, subscriptions and DeleteSandboxes have their own files.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "core/spec_yaml.h"
#include "wire/method.h"
#include "wire/reply.h"
#include "wire/sandbox_request.h"

#include "base/banned.h"

/* A request that waits for the manager. */
struct pending {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: the call has ended; drop the answer */
    int (*answer)(const struct agx_service *s, struct agx_buf *out, const struct agx_answer *a);
};

static const struct agx_refusal no_reason;

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    ((struct pending *)user)->call = NULL;
}

static const struct agx_grpc_call_ops pending_ops = { .ended = on_ended };

static struct pending *pending_new(struct agx_service *s, struct agx_grpc_call *call,
                                   int (*answer)(const struct agx_service *s, struct agx_buf *out,
                                                 const struct agx_answer *a))
{
    struct pending *p = agx_new(struct pending);

    *p = (struct pending){ .service = s, .call = call, .answer = answer };
    agx_grpc_call_watch(call, &pending_ops, p);
    return p;
}

static void on_answer(void *user, const struct agx_answer *a)
{
    struct pending *p = user;
    struct agx_service *s = p->service;
    struct agx_error *error = a->error;

    if (!p->call)
        agx_error_free(error);
    else if (error)
        agx_service_fail(p->call, &error,
                         &(struct agx_refusal){ .reason = a->reason, .id = a->reason_id });
    else
        agx_service_reply(s, p->call, p->answer(s, agx_service_scratch(s), a));
    free(p);
}

static int put_accepted(const struct agx_service *s, struct agx_buf *out,
                        const struct agx_answer *a)
{
    (void)s;
    (void)a;
    return agx_reply_accepted(out);
}

static int put_created(const struct agx_service *s, struct agx_buf *out, const struct agx_answer *a)
{
    return agx_service_put_sandbox(s, out, a->sandbox);
}

static int put_exec_created(const struct agx_service *s, struct agx_buf *out,
                            const struct agx_answer *a)
{
    (void)s;
    return agx_reply_exec_created(out, a->exec_id, a->out_path, a->err_path);
}

static void ping(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;

    (void)request; /* it has no known fields; unknown ones are ignored */
    agx_grpc_call_reply(call, agx_buf_peek(&s->pong));
}

static void create_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_create_request q;
    struct agx_error *err = NULL;
    struct agx_spec spec;

    if (agx_create_request_decode(&q, request, &err) < 0) {
        agx_service_fail(call, &err, &no_reason);
        return;
    }
    if (agx_spec_join(&spec, agx_buf_peek(&q.config_yaml), q.has_spec ? &q.spec : NULL, &err) < 0)
        agx_service_fail(call, &err, &no_reason);
    else
        agx_manager_create(s->config.manager, agx_grpc_call_peek_peer(call)->uid, q.sandbox_id,
                           &spec, on_answer, pending_new(s, call, put_created));
    agx_create_request_done(&q);
}

static void get_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_refusal why = { .reason = AGX_REASON_NONE };
    _cleanup_free_ char *id = NULL;
    struct agx_error *err = NULL;
    const struct agx_sandbox *sb = NULL;
    int r = agx_sandbox_id_decode(request, &id, &err);

    if (r == 0) {
        r = agx_manager_find(s->config.manager, id, &sb, &err);
        why = (struct agx_refusal){ .reason = AGX_REASON_SANDBOX_NOT_FOUND, .id = id };
    }
    if (r < 0)
        agx_service_fail(call, &err, &why);
    else
        agx_service_reply(s, call, agx_service_put_sandbox(s, agx_service_scratch(s), sb));
}

static void agbox_ask(struct agx_service *s, struct agx_grpc_call *call, struct agx_str request,
                      enum agx_on on)
{
    _cleanup_free_ char *id = NULL;
    struct agx_error *err = NULL;

    if (agx_sandbox_id_decode(request, &id, &err) < 0)
        agx_service_fail(call, &err, &no_reason);
    else
        agx_manager_ask(s->config.manager, id, on, on_answer, pending_new(s, call, put_accepted));
}

static void resume_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    agbox_ask(service, call, request, AGX_ON_RESUME);
}

static void stop_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    agbox_ask(service, call, request, AGX_ON_STOP);
}

static void delete_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    agbox_ask(service, call, request, AGX_ON_DELETE);
}

static void create_exec(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_exec_request q;
    struct agx_error *err = NULL;

    if (agx_exec_request_decode(&q, request, &err) < 0) {
        agx_service_fail(call, &err, &no_reason);
        return;
    }
    agx_manager_exec_create(s->config.manager, agx_grpc_call_peek_peer(call)->uid, &q.exec,
                            q.has_stdin, on_answer, pending_new(s, call, put_exec_created));
}

static void cancel_exec(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    _cleanup_free_ char *id = NULL;
    struct agx_error *err = NULL;

    if (agx_exec_id_decode(request, &id, &err) < 0)
        agx_service_fail(call, &err, &no_reason);
    else
        agx_manager_exec_cancel(s->config.manager, id, on_answer,
                                pending_new(s, call, put_accepted));
}

static void get_exec(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_refusal why = { .reason = AGX_REASON_NONE };
    _cleanup_free_ char *id = NULL;
    struct agx_error *err = NULL;
    struct agx_exec exec = { 0 };
    uint64_t sequence = 0;
    int r = agx_exec_id_decode(request, &id, &err);

    if (r == 0) {
        r = agx_manager_exec_find(s->config.manager, id, &exec, &sequence, &err);
        if (r == -AGX_NOT_FOUND)
            why = (struct agx_refusal){ .reason = AGX_REASON_EXEC_NOT_FOUND, .id = id };
    }
    if (r < 0) {
        agx_service_fail(call, &err, &why);
        return;
    }
    agx_service_reply(s, call, agx_reply_exec(agx_service_scratch(s), &exec, sequence, true));
    agx_exec_done(&exec);
}

const struct agx_grpc_method agx_service_agbox_methods[] = {
    { AGX_METHOD_PING, AGX_GRPC_UNARY, false, ping },
    { AGX_METHOD_CREATE_SANDBOX, AGX_GRPC_UNARY, false, create_sandbox },
    { AGX_METHOD_GET_SANDBOX, AGX_GRPC_UNARY, false, get_sandbox },
    { AGX_METHOD_LIST_SANDBOXES, AGX_GRPC_UNARY, false, agx_service_list },
    { AGX_METHOD_RESUME_SANDBOX, AGX_GRPC_UNARY, false, resume_sandbox },
    { AGX_METHOD_STOP_SANDBOX, AGX_GRPC_UNARY, false, stop_sandbox },
    { AGX_METHOD_DELETE_SANDBOX, AGX_GRPC_UNARY, false, delete_sandbox },
    { AGX_METHOD_DELETE_SANDBOXES, AGX_GRPC_UNARY, false, agx_service_delete_many },
    { AGX_METHOD_SUBSCRIBE, AGX_GRPC_SERVER_STREAM, true, agx_service_subscribe },
    { AGX_METHOD_CREATE_EXEC, AGX_GRPC_UNARY, false, create_exec },
    { AGX_METHOD_CANCEL_EXEC, AGX_GRPC_UNARY, false, cancel_exec },
    { AGX_METHOD_GET_EXEC, AGX_GRPC_UNARY, false, get_exec },
    { AGX_METHOD_LIST_ACTIVE_EXECS, AGX_GRPC_UNARY, false, agx_service_list_active },
};
const size_t agx_service_agbox_methods_len = AGX_ARRAY_LEN(agx_service_agbox_methods);

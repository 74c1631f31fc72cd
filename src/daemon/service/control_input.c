/*
 * control_input.c: WriteExecInput: a client's stream into a command's standard input.
 *
 * One message is in flight at a time. The call is paused while the manager works on a message, so
 * the client's flow-control window fills and the client waits. If the call ends without `eof`, the
 * input stays open for another writer.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "wire/control_request.h"
#include "wire/reply.h"

#include "base/banned.h"

struct writer {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: it has ended */
    char *exec_id;              /* NULL: no message yet; else it is in `writers` */
    uint64_t written;
    size_t under_way; /* bytes */
    bool busy;        /* a message is in flight */
    bool eof;         /* end of input was passed on */
};

static void writer_free(struct writer *w)
{
    if (w->exec_id)
        (void)agx_map_remove(&w->service->writers, agx_str_from(w->exec_id));
    free(w->exec_id);
    free(w);
}

/* Ends the call, and frees the writer unless the manager still works for it. */
static void writer_fail(struct writer *w, struct agx_error **take_error, enum agx_reason reason)
{
    agx_service_fail(w->call, take_error,
                     &(struct agx_refusal){ .reason = reason, .id = w->exec_id });
    w->call = NULL;
    if (!w->busy)
        writer_free(w);
}

static void on_taken(void *user, struct agx_error *error)
{
    struct writer *w = user;

    w->busy = false;
    if (!error)
        w->written += w->under_way;
    else if (error->code == AGX_NOT_FOUND) /* the exec exists: this call checked it */
        (void)agx_error_wrap(&error, -AGX_FAILED_PRECONDITION, "the input of exec %s is not open",
                             w->exec_id);
    if (!w->call) {
        agx_error_free(error);
        writer_free(w);
    } else if (error) {
        writer_fail(w, &error, AGX_REASON_NONE);
    } else {
        agx_grpc_call_resume(w->call);
    }
}

/* The first message names the exec. It must run, and only one call may write to it. */
static int writer_begin(struct writer *w, char **take_id, enum agx_reason *ret_reason,
                        struct agx_error **err)
{
    struct agx_service *s = w->service;
    struct agx_exec exec;
    uint64_t sequence;
    bool runs;
    int r;

    if (!*take_id)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "exec_id is required in the first message");
    r = agx_manager_exec_find(s->config.manager, *take_id, &exec, &sequence, err);
    if (r < 0) {
        if (r == -AGX_NOT_FOUND)
            *ret_reason = AGX_REASON_EXEC_NOT_FOUND;
        return r;
    }
    runs = exec.state == AGX_EXEC_RUNNING;
    agx_exec_done(&exec);
    if (!runs) {
        *ret_reason = AGX_REASON_EXEC_ALREADY_TERMINAL;
        return agx_reason_error(*ret_reason, *take_id, err);
    }
    if (agx_map_get(&s->writers, agx_str_from(*take_id)))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "another call already writes to the input of exec %s", *take_id);
    if (agx_map_put(&s->writers, agx_str_from(*take_id), w, NULL) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a writer");
    w->exec_id = AGX_TAKE_PTR(*take_id);
    return 0;
}

static int writer_check(const struct writer *w, const struct agx_input_request *q,
                        struct agx_error **err)
{
    if (q->exec_id && strcmp(q->exec_id, w->exec_id) != 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "exec_id differs from that of the first message");
    if (w->eof)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a message came after eof");
    return 0;
}

static int writer_write(struct writer *w, const struct agx_input_request *q, struct agx_error **err)
{
    int r;

    if (q->data.len == 0 && !q->eof)
        return 0;
    r = agx_manager_exec_write(w->service->config.manager, w->exec_id, agx_buf_peek(&q->data),
                               q->eof, on_taken, w, err);
    if (r < 0)
        return r;
    w->busy = true;
    w->eof = q->eof;
    w->under_way = q->data.len;
    agx_grpc_call_pause(w->call);
    return 0;
}

static void on_message(void *user, struct agx_str message)
{
    struct writer *w = user;
    enum agx_reason reason = AGX_REASON_NONE;
    _cleanup_free_ char *id = NULL;
    struct agx_input_request q;
    struct agx_error *err = NULL;
    int r = agx_input_request_decode(&q, message, &err);

    if (r < 0) {
        writer_fail(w, &err, reason);
        return;
    }
    if (w->exec_id) {
        r = writer_check(w, &q, &err);
    } else {
        id = AGX_TAKE_PTR(q.exec_id);
        r = writer_begin(w, &id, &reason, &err);
    }
    if (r == 0)
        r = writer_write(w, &q, &err);
    agx_input_request_done(&q);
    if (r < 0 && !w->exec_id) {
        agx_service_fail(w->call, &err, &(struct agx_refusal){ .reason = reason, .id = id });
        writer_free(w);
    } else if (r < 0) {
        writer_fail(w, &err, reason);
    }
}

static void on_half_closed(void *user)
{
    struct writer *w = user;
    struct agx_service *s = w->service;

    /* All earlier input was taken: the call was paused until then. */
    agx_service_reply(s, w->call, agx_reply_input(agx_service_scratch(s), w->written));
    w->call = NULL;
    writer_free(w);
}

static void on_ended(void *user, enum agx_code code)
{
    struct writer *w = user;

    (void)code;
    w->call = NULL;
    if (!w->busy)
        writer_free(w);
}

static const struct agx_grpc_call_ops writer_ops = {
    .ended = on_ended,
    .message = on_message,
    .half_closed = on_half_closed,
};

void agx_service_write_input(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct writer *w = agx_new(struct writer);

    (void)request; /* messages arrive one by one */
    w->service = service;
    w->call = call;
    agx_grpc_call_watch(call, &writer_ops, w);
}

/*
 * agbox_active.c: ListActiveExecs: lists by id, in slices; each slice begins after the id
 * at which the previous one ended.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "wire/reply.h"
#include "wire/sandbox_request.h"

#include "base/banned.h"

struct active {
    struct agx_service *service;
    struct agx_grpc_call *call;
    struct agx_slice slice;
    char *sandbox_id; /* NULL: all */
    struct agx_buf out;
    char at[AGX_IDENT_MAX + 1]; /* the last id listed */
    size_t told;                /* in this slice */
    bool failed;
};

static void active_free(struct active *a)
{
    free(a->sandbox_id);
    agx_buf_done(&a->out);
    free(a);
}

static int on_exec(void *user, const struct agx_exec *exec, uint64_t sequence)
{
    struct active *a = user;
    size_t len;

    /* Environments are secrets: a client that asks for one exec by id may have set them, a client
     * that lists all execs may not have. */
    if (agx_reply_exec(&a->out, exec, sequence, a->service->config.compat) < 0) {
        a->failed = true;
        return 1;
    }
    len = AGX_MIN(strlen(exec->id), sizeof(a->at) - 1);
    memcpy(a->at, exec->id, len);
    a->at[len] = '\0';
    return ++a->told >= AGX_LIST_SLICE;
}

static void run_slice(struct agx_slice *slice)
{
    struct active *a = container_of(slice, struct active, slice);
    struct agx_service *s = a->service;

    a->told = 0;
    agx_manager_exec_list(s->config.manager, a->sandbox_id, a->at[0] ? a->at : NULL, on_exec, a);
    if (!a->failed && a->told >= AGX_LIST_SLICE) {
        agx_slices_add(&s->slices, slice);
        return;
    }
    if (a->failed)
        agx_service_fail_memory(a->call);
    else
        agx_grpc_call_reply(a->call, agx_buf_peek(&a->out));
    active_free(a);
}

static void on_ended(void *user, enum agx_code code)
{
    struct active *a = user;

    (void)code;
    agx_slices_remove(&a->service->slices, &a->slice);
    active_free(a);
}

static const struct agx_grpc_call_ops active_ops = { .ended = on_ended };

void agx_service_list_active(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct active *a = agx_new(struct active);
    struct agx_error *err = NULL;

    a->service = service;
    a->call = call;
    a->slice.run = run_slice;
    a->out.max = AGX_GRPC_CONN_BYTES_MAX;
    if (agx_active_request_decode(request, &a->sandbox_id, &err) < 0) {
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
        active_free(a);
        return;
    }
    agx_grpc_call_watch(call, &active_ops, a);
    agx_slices_begin(&a->service->slices, &a->slice);
}

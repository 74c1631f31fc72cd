/* backend.c: the common part of every backend: checks arguments, and refuses calls after close. */
#include "backend/backend.h"

#include <assert.h>

#include "base/banned.h"

/* Ids become names of files and of engine objects. They were checked when they were accepted; one
 * that was not must not get past this check. */
static int backend_check(const struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                         struct agx_error **err)
{
    int r = 0;

    agx_loop_assert(b->loop);
    if (b->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "backend '%s' is being closed", b->ops->name);
    if (sandbox_id)
        r = agx_ident_check("sandbox_id", agx_str_from(sandbox_id), err);
    if (r == 0 && exec_id)
        r = agx_ident_check("exec_id", agx_str_from(exec_id), err);
    return r;
}

int agx_backend_start(struct agx_backend *b, const struct agx_backend_request *q,
                      const struct agx_backend_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    int r = backend_check(b, q->sandbox->id, NULL, err);

    assert(q->verb > AGX_DO_NONE && q->verb < AGX_DO_COUNT && hooks->done);
    return r < 0 ? r : b->ops->start(b, q, hooks, user, ret_op, err);
}

void agx_backend_cancel(struct agx_backend_op *op)
{
    agx_loop_assert(op->backend->loop);
    if (op->ops)
        op->ops->cancel(op);
    else
        op->backend->ops->cancel(op);
}

void agx_backend_abandon(struct agx_backend_op *op)
{
    agx_loop_assert(op->backend->loop);
    if (op->ops)
        op->ops->abandon(op);
    else
        op->backend->ops->abandon(op);
}

int agx_backend_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                     agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                     struct agx_error **err)
{
    int r = backend_check(b, sandbox_id, NULL, err);

    return r < 0 ? r : b->ops->look(b, sandbox_id, seen, done, user, ret_op, err);
}

int agx_backend_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                           const struct agx_backend_exec_hooks *hooks, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err)
{
    int r = backend_check(b, q->sandbox->id, q->exec->id, err);

    assert(hooks->begun && hooks->exited && hooks->lost &&
           (adopt ? !!hooks->unknown : !!hooks->refused));
    if (r == 0 && !adopt && q->exec->command.len == 0)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "exec '%s' has no command", q->exec->id);
    return r < 0 ? r : b->ops->exec_start(b, q, adopt, hooks, user, ret_op, err);
}

int agx_backend_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                          uint64_t grace_ms, agx_done_fn gone, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err)
{
    int r = backend_check(b, sandbox_id, exec_id, err);

    return r < 0 ? r : b->ops->exec_kill(b, sandbox_id, exec_id, grace_ms, gone, user, ret_op, err);
}

int agx_backend_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                           struct agx_str data, bool eof, agx_done_fn taken, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err)
{
    int r = backend_check(b, sandbox_id, exec_id, err);

    if (r == 0 && data.len > AGX_BACKEND_WRITE_MAX)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT,
                          "%zu bytes for the input of exec '%s' at once; the limit is %zu",
                          data.len, exec_id, AGX_BACKEND_WRITE_MAX);
    return r < 0 ? r
                 : b->ops->exec_write(b, sandbox_id, exec_id, data, eof, taken, user, ret_op, err);
}

int agx_backend_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            struct agx_error **err)
{
    int r = backend_check(b, sandbox_id, exec_id, err);

    return r < 0 ? r : b->ops->forget_exec(b, sandbox_id, exec_id, err);
}

int agx_backend_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                      agx_backend_usage_fn use, agx_done_fn done, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    int r = backend_check(b, sandbox->id, NULL, err);

    if (r == 0 && !b->ops->use)
        r = agx_error_set(err, AGX_UNIMPLEMENTED, "backend '%s' does not measure resource usage",
                          b->ops->name);
    return r < 0 ? r : b->ops->use(b, sandbox, use, done, user, ret_op, err);
}

int agx_backend_check(struct agx_backend *b, const struct agx_spec *spec,
                      struct agx_words *warnings, struct agx_error **err)
{
    int r = backend_check(b, NULL, NULL, err);

    return r < 0 ? r : b->ops->check(b, spec, warnings, err);
}

void agx_backend_close(struct agx_backend *b, agx_done_fn closed, void *user)
{
    agx_loop_assert(b->loop);
    assert(!b->closing);
    b->closing = true;
    b->ops->close(b, closed, user);
}

/* init_client_op.c: calls, until their last hook. */
#include "backend/exec/init_client_internal.h"

#include "base/mem.h"

#include "base/banned.h"

/* ---- life ---- */

static void op_cancel(struct agx_backend_op *base);
static void op_abandon(struct agx_backend_op *base);

static const struct agx_backend_op_ops op_ops = { op_cancel, op_abandon };

struct agx_init_client_op *agx_init_client_op_new(struct agx_init_client *a,
                                                  enum agx_init_client_kind kind, void *user)
{
    struct agx_init_client_op *op = agx_new(struct agx_init_client_op);

    op->base = (struct agx_backend_op){ a->config.backend, &op_ops };
    op->kind = kind;
    op->init_client = a;
    op->user = user;
    op->input.max = AGX_BACKEND_WRITE_MAX;
    return op;
}

static struct agx_init_client_exec *get_cmd(struct agx_init_client *a, struct agx_str id)
{
    struct agx_init_client_exec *c = agx_init_client_exec_find(a, id);

    if (c)
        return c;
    c = agx_new(struct agx_init_client_exec);
    c->init_client = a;
    c->id_len = id.len;
    memcpy(c->id, id.ptr, id.len);
    memset(c->logs.fds, 0xff, sizeof(c->logs.fds));
    if (agx_map_put(&a->cmds, id, c, NULL) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

struct agx_init_client_exec *agx_init_client_op_join(struct agx_init_client_op *op,
                                                     struct agx_str id)
{
    struct agx_init_client_exec *c = get_cmd(op->init_client, id);

    if (!c)
        return NULL;
    op->cmd = c;
    c->n_ops++;
    agx_list_push_back(&c->ops, &op->node);
    return c;
}

void agx_init_client_op_free(struct agx_init_client_op *op)
{
    struct agx_init_client_exec *c = op->cmd;

    agx_list_remove(&op->node);
    if (c) {
        c->n_ops--;
        if (c->input_op == op)
            c->input_op = NULL;
        agx_init_client_exec_settle(c);
    }
    agx_init_client_start_free(op->start);
    agx_buf_done(&op->input);
    agx_error_free(op->error);
    free(op->output);
    free(op);
}

/* ---- ends ---- */

void agx_init_client_op_end(struct agx_init_client_op *op, enum agx_init_client_end end,
                            struct agx_error *error)
{
    op->end = end;
    op->error = error;
    if (op->cmd->input_op == op)
        op->cmd->input_op = NULL;
    op->ended = true;
    agx_list_remove(&op->node);
    agx_list_push_back(&op->init_client->ending, &op->node);
}

void agx_init_client_op_give_up(struct agx_init_client_op *op, const struct agx_error *error,
                                bool gone)
{
    struct agx_error *e = NULL;

    if (op->kind == AGX_INIT_CLIENT_KILL && gone) {
        agx_init_client_op_end(op, END_DONE, NULL);
    } else if (op->kind == AGX_INIT_CLIENT_ADOPT && gone && !op->begun) {
        agx_init_client_op_end(op, END_UNKNOWN, NULL);
    } else if (op->kind == AGX_INIT_CLIENT_WRITE && gone) {
        (void)agx_error_set(&e, AGX_NOT_FOUND, "exec '%s' has ended", op->cmd->id);
        agx_init_client_op_end(op, END_DONE, e);
    } else {
        e = agx_error_dup(error);
        if (op->kind == AGX_INIT_CLIENT_KILL || op->kind == AGX_INIT_CLIENT_WRITE)
            agx_init_client_op_end(op, END_DONE, e);
        else
            agx_init_client_op_end(op, op->start ? END_REFUSED : END_LOST, e);
    }
}

/* A command of the backend's own: its end is not stored, so init may forget it. */
static void tell_ran(struct agx_init_client_op *op)
{
    struct agx_error *error = AGX_TAKE_PTR(op->error);

    if (!error && op->cancelled)
        (void)agx_error_set(&error, AGX_CANCELLED, "cancelled");
    op->ran(op->user, op->exit_code, agx_str_from(op->output ? op->output : ""), error);
    if (op->end == END_EXITED)
        (void)!agx_init_client_forget(op->init_client, op->cmd->id,
                                      NULL); /* on failure init remembers it:
                                                                  * harmless */
}

static void init_client_op_tell(struct agx_init_client_op *op)
{
    if (op->kind == AGX_INIT_CLIENT_RUN)
        tell_ran(op);
    else if (op->end == END_DONE)
        op->done(op->user, AGX_TAKE_PTR(op->error));
    else if (op->end == END_EXITED)
        op->hooks.exited(op->user, op->exit_code);
    else if (op->end == END_UNKNOWN)
        op->hooks.unknown(op->user);
    else if (op->end == END_REFUSED)
        op->hooks.refused(op->user, AGX_TAKE_PTR(op->error));
    else
        op->hooks.lost(op->user, AGX_TAKE_PTR(op->error));
}

void agx_init_client_deliver(struct agx_init_client *a)
{
    struct agx_init_client_op *op;

    while ((op = AGX_LIST_TAKE(&a->ending, struct agx_init_client_op, node))) {
        init_client_op_tell(op);
        agx_init_client_op_free(op);
    }
}

void agx_init_client_deliver_due(struct agx_init_client *a)
{
    agx_list_move(&a->ending, &a->due);
    agx_init_client_deliver(a);
}

static void on_soon(uv_timer_t *t)
{
    agx_init_client_deliver_due(container_of(t, struct agx_init_client, soon));
}

/* Ops that end inside a call get their hooks in a later turn. */
static void put_off(struct agx_init_client *a)
{
    agx_list_move(&a->due, &a->ending);
    if (!agx_list_is_empty(&a->due))
        (void)uv_timer_start(&a->soon, on_soon, 0, 0);
}

/* ---- what init is asked ---- */

static int send_start(struct agx_init_client_op *op, struct agx_error **err)
{
    const struct agx_init_client_start *s = op->start;
    const struct agx_init_client_output *l = &op->cmd->logs;
    const struct agx_init_client *a = op->init_client;
    const struct agx_init_msg m = {
        .kind = AGX_INIT_START,
        .id = { op->cmd->id, op->cmd->id_len },
        .flags = s->flags,
        .user = agx_str_from(agx_text(a->exec_user)),
        .cwd = agx_str_from(agx_text(s->cwd ? s->cwd : a->cwd)),
        .out_head = l->head_max[0],
        .out_tail = l->tail_max[0],
        .err_head = l->head_max[1],
        .err_tail = l->tail_max[1],
        .argv = { s->n_argv, agx_buf_peek(&s->argv) },
        .env = { s->n_env, agx_buf_peek(&s->env) },
    };
    int r = agx_initlink_send(a->link, &m, l->fds, a->link->kind->carries_logs ? 4 : 0, err);

    op->start_sent = r == 0;
    return r;
}

static int send_kill(struct agx_init_client_op *op, struct agx_error **err)
{
    const struct agx_init_msg m = { .kind = AGX_INIT_KILL,
                                    .id = { op->cmd->id, op->cmd->id_len },
                                    .grace_ms = op->grace_ms };

    return agx_initlink_send(op->init_client->link, &m, NULL, 0, err);
}

/* Where init keeps the logs, a QUERY comes first: START does not say from which offset they are
 * wanted. */
static bool may_start(const struct agx_init_client_op *op)
{
    return op->start && !op->cmd->started &&
           (op->is_unknown || op->init_client->link->kind->carries_logs);
}

void agx_init_client_op_ask(struct agx_init_client_op *op)
{
    struct agx_error *error = NULL;
    int r;

    if (op->kind == AGX_INIT_CLIENT_KILL && agx_init_client_exec_start_is_due(op->cmd))
        return; /* it is sent after the START */
    if (op->kind == AGX_INIT_CLIENT_KILL)
        r = send_kill(op, &error);
    else if (may_start(op))
        r = send_start(op, &error);
    else
        r = agx_init_client_exec_query(op->cmd, &error);
    if (r == 0 && op->cancelled)
        r = send_kill(op, &error);
    if (r < 0 && r != -AGX_UNAVAILABLE) /* that one: with the next connection */
        agx_init_client_op_give_up(op, error, false);
    agx_error_free(error);
}

/* ---- calls ---- */

static void give_up_down(struct agx_init_client_op *op)
{
    const struct agx_init_client *a = op->init_client;
    _cleanup_(agx_error_freep) struct agx_error *error = NULL;

    if (a->why) {
        agx_init_client_op_give_up(op, a->why, false);
        return;
    }
    (void)agx_error_set(&error, AGX_UNAVAILABLE, "sandbox '%s' is not running", a->sandbox_id);
    agx_init_client_op_give_up(op, error, true);
}

/* After it has joined its command. */
static void init_client_op_begin(struct agx_init_client_op *op, struct agx_backend_op **ret_op)
{
    struct agx_init_client *a = op->init_client;

    *ret_op = &op->base;
    if (a->state == AGX_INIT_CLIENT_DOWN)
        give_up_down(op);
    else if (a->state == AGX_INIT_CLIENT_UP && op->kind == AGX_INIT_CLIENT_WRITE)
        agx_init_client_exec_feed(op->cmd);
    else if (a->state == AGX_INIT_CLIENT_UP)
        agx_init_client_op_ask(op);
    put_off(a);
}

static void op_freep(struct agx_init_client_op **op)
{
    if (*op)
        agx_init_client_op_free(*op);
}

static int start_of(struct agx_init_client_op *op, const struct agx_backend_exec *q,
                    struct agx_error **err)
{
    op->start = agx_init_client_start_new(&q->exec->command, &q->exec->env_overrides, q->exec->cwd,
                                          q->stdin_open ? AGX_INIT_STDIN : 0, err);
    return op->start ? 0 : -AGX_RESOURCE_EXHAUSTED;
}

int agx_init_client_exec_start(struct agx_init_client *a, const struct agx_backend_exec *q,
                               bool adopt, const struct agx_backend_exec_hooks *hooks, void *user,
                               struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_init_client_op *op =
        agx_init_client_op_new(a, adopt ? AGX_INIT_CLIENT_ADOPT : AGX_INIT_CLIENT_START, user);
    int r = adopt ? 0 : start_of(op, q, err);

    op->hooks = *hooks;
    if (r < 0)
        return r;
    if (!agx_init_client_op_join(op, agx_str_from(q->exec->id)))
        return agx_error_no_memory(err);
    r = agx_init_client_output_set(&op->cmd->logs, &q->out, &q->err, err);
    if (r < 0)
        return r;
    init_client_op_begin(AGX_TAKE_PTR(op), ret_op);
    return 0;
}

int agx_init_client_kill(struct agx_init_client *a, const char *exec_id, uint64_t grace_ms,
                         agx_done_fn gone, void *user, struct agx_backend_op **ret_op,
                         struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_init_client_op *op =
        agx_init_client_op_new(a, AGX_INIT_CLIENT_KILL, user);

    op->done = gone;
    op->grace_ms = grace_ms;
    if (!agx_init_client_op_join(op, agx_str_from(exec_id)))
        return agx_error_no_memory(err);
    init_client_op_begin(AGX_TAKE_PTR(op), ret_op);
    return 0;
}

int agx_init_client_write(struct agx_init_client *a, const char *exec_id, struct agx_str data,
                          bool eof, agx_done_fn taken, void *user, struct agx_backend_op **ret_op,
                          struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_init_client_op *op =
        agx_init_client_op_new(a, AGX_INIT_CLIENT_WRITE, user);

    op->done = taken;
    op->eof = eof;
    if (agx_buf_append(&op->input, data) < 0 || !agx_init_client_op_join(op, agx_str_from(exec_id)))
        return agx_error_no_memory(err);
    init_client_op_begin(AGX_TAKE_PTR(op), ret_op);
    return 0;
}

/* The id of an exec never contains '/'. */
int agx_init_client_run(struct agx_init_client *a, const struct agx_init_client_run *run,
                        agx_init_client_ran_fn ran, void *user, struct agx_backend_op **ret_op,
                        struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_init_client_op *op =
        agx_init_client_op_new(a, AGX_INIT_CLIENT_RUN, user);
    char id[AGX_INIT_ID_MAX + 1];
    int r;

    op->ran = ran;
    (void)snprintf(id, sizeof(id), "/%s", run->name);
    if (!run->adopt &&
        !(op->start = agx_init_client_start_new(run->command, run->envs, NULL, 0, err)))
        return -AGX_RESOURCE_EXHAUSTED;
    if (!agx_init_client_op_join(op, agx_str_from(id)))
        return agx_error_no_memory(err);
    r = agx_init_client_output_make(&op->cmd->logs, err);
    if (r < 0)
        return r;
    init_client_op_begin(AGX_TAKE_PTR(op), ret_op);
    return 0;
}

static void op_cancel(struct agx_backend_op *base)
{
    struct agx_init_client_op *op = container_of(base, struct agx_init_client_op, base);
    struct agx_init_client *a = op->init_client;
    struct agx_error *error = NULL;
    const bool is_exec = op->kind == AGX_INIT_CLIENT_START || op->kind == AGX_INIT_CLIENT_ADOPT;

    if (is_exec || op->ended)
        return;
    if (op->kind == AGX_INIT_CLIENT_RUN && (op->start_sent || op->begun) &&
        send_kill(op, NULL) == 0) {
        op->cancelled = true; /* its end is reported as the cancellation */
        return;
    }
    (void)agx_error_set(&error, AGX_CANCELLED, "cancelled");
    agx_init_client_op_end(op, op->kind == AGX_INIT_CLIENT_RUN ? END_LOST : END_DONE, error);
    put_off(a);
}

static void op_abandon(struct agx_backend_op *base)
{
    agx_init_client_op_free(container_of(base, struct agx_init_client_op, base));
}

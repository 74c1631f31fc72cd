/*
 * init_client_exec.c: commands, and what init reports about them.
 *
 * A command is kept while init says that it runs, and while there are ops about it. No hook is
 * called while a command is processed: ops are moved to `ending`, and agx_init_client_deliver()
 * calls their hooks.
 */
#include "backend/exec/init_client_internal.h"

#include "base/mem.h"

#include "base/banned.h"

struct agx_init_client_exec *agx_init_client_exec_find(const struct agx_init_client *a,
                                                       struct agx_str id)
{
    return agx_map_get(&a->cmds, id);
}

void agx_init_client_exec_free(struct agx_init_client_exec *c)
{
    (void)agx_map_remove(&c->init_client->cmds, agx_str_bytes(c->id, c->id_len));
    agx_init_client_output_close(&c->logs);
    free(c);
}

void agx_init_client_exec_settle(struct agx_init_client_exec *c)
{
    if (c->n_ops == 0 && !c->started && !c->input_out)
        agx_init_client_exec_free(c);
}

static bool is_exec(enum agx_init_client_kind k)
{
    return k == AGX_INIT_CLIENT_START || k == AGX_INIT_CLIENT_ADOPT || k == AGX_INIT_CLIENT_RUN;
}

static bool is_kill(enum agx_init_client_kind k)
{
    return k == AGX_INIT_CLIENT_KILL;
}

static bool is_write(enum agx_init_client_kind k)
{
    return k == AGX_INIT_CLIENT_WRITE;
}

static struct agx_init_client_op *first_of(const struct agx_init_client_exec *c,
                                           bool (*fits)(enum agx_init_client_kind))
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node)
        if (fits(op->kind))
            return op;
    return NULL;
}

bool agx_init_client_exec_start_is_due(const struct agx_init_client_exec *c)
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node)
        if (is_exec(op->kind) && op->start && !op->start_sent && !c->started)
            return true;
    return false;
}

/* ---- input ---- */

static int send_piece(struct agx_init_client_exec *c, struct agx_init_client_op *op,
                      struct agx_error **err)
{
    size_t left = op->input.len - op->input_at, n = AGX_MIN(left, AGX_INIT_DATA_MAX);
    const uint8_t *at = n > 0 ? op->input.data + op->input_at : NULL; /* an EOF without bytes */
    const struct agx_init_msg m = { .kind = AGX_INIT_INPUT,
                                    .id = { c->id, c->id_len },
                                    .flags = op->eof && n == left ? AGX_INIT_EOF : 0,
                                    .data = agx_str_bytes(at, n) };
    int r = agx_initlink_send(c->init_client->link, &m, NULL, 0, err);

    if (r < 0)
        return r;
    op->input_at += n;
    c->input_out = true;
    c->input_op = op;
    return 0;
}

void agx_init_client_exec_feed(struct agx_init_client_exec *c)
{
    struct agx_init_client_op *op;

    if (agx_init_client_exec_start_is_due(c))
        return;
    while (!c->input_out && (op = first_of(c, is_write))) {
        struct agx_error *error = NULL;
        int r = send_piece(c, op, &error);

        if (r == -AGX_UNAVAILABLE) { /* sent on the next connection */
            agx_error_free(error);
            return;
        }
        if (r < 0)
            agx_init_client_op_end(op, END_DONE, error);
    }
}

static void on_taken(struct agx_init_client_exec *c, enum agx_code code)
{
    struct agx_init_client_op *op = c->input_op;
    struct agx_error *error = NULL;

    c->input_out = false;
    c->input_op = NULL;
    if (op && code != AGX_OK) {
        (void)agx_error_set(&error, code, "nothing reads the input of exec '%s'", c->id);
        agx_init_client_op_end(op, END_DONE, error);
    } else if (op && op->input_at == op->input.len) {
        agx_init_client_op_end(op, END_DONE, NULL);
    }
    agx_init_client_exec_feed(c);
}

/* The connection broke while init held a piece. */
static void forget_input(struct agx_init_client_exec *c)
{
    struct agx_error *error = NULL;

    if (c->input_op) {
        (void)agx_error_set(
            &error, AGX_UNAVAILABLE,
            "the connection to the sandbox broke: it is not known whether the input of exec '%s' "
            "arrived",
            c->id);
        agx_init_client_op_end(c->input_op, END_DONE, error);
    }
    c->input_out = false;
    c->input_op = NULL;
}

/* Sends what waited behind a START, which itself waited for an answer. */
static void ask_rest(struct agx_init_client_exec *c)
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node)
        if (is_kill(op->kind))
            agx_init_client_op_ask(op);
    agx_init_client_exec_feed(c);
}

/* ---- what init says ---- */

static struct agx_init_client_op *first_not_begun(const struct agx_init_client_exec *c)
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node)
        if (is_exec(op->kind) && !op->begun)
            return op;
    return NULL;
}

/* A hook may do anything, so the command is looked for again after each. */
static void on_started(struct agx_init_client *a, struct agx_str id)
{
    struct agx_init_client_exec *c;

    while (a->state == AGX_INIT_CLIENT_UP && (c = agx_init_client_exec_find(a, id))) {
        struct agx_init_client_op *op = first_not_begun(c);

        c->started = true;
        if (!op)
            return;
        op->begun = true;
        agx_init_client_start_free(op->start);
        op->start = NULL;
        if (op->kind != AGX_INIT_CLIENT_RUN)
            op->hooks.begun(op->user);
    }
}

static void on_refused(struct agx_init_client_exec *c, const struct agx_init_msg *m)
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node) {
        struct agx_error *error = NULL;

        if (!is_exec(op->kind))
            continue;
        (void)agx_error_set(&error,
                            m->code > AGX_OK && m->code <= AGX_UNAUTHENTICATED
                                ? (enum agx_code)m->code
                                : AGX_INTERNAL,
                            "%.*s", AGX_STR_ARG(m->data));
        if (op->kind == AGX_INIT_CLIENT_ADOPT) {
            agx_error_free(error);
            error = NULL;
        }
        agx_init_client_op_end(op, op->kind == AGX_INIT_CLIENT_ADOPT ? END_UNKNOWN : END_REFUSED,
                               error);
    }
}

/* For a command that ran, this means that this is another init, or that init was told to forget
 * it. */
static void on_unknown(struct agx_init_client_exec *c)
{
    bool ran = c->started, starts = false;

    c->started = false;
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node) {
        struct agx_error *error = NULL;

        if (!is_exec(op->kind))
            continue;
        if (op->start && !ran) {
            op->is_unknown = true;
            starts = !op->start_sent;
            if (starts)
                agx_init_client_op_ask(op);
        } else if (op->kind == AGX_INIT_CLIENT_ADOPT && !op->begun) {
            agx_init_client_op_end(op, END_UNKNOWN, NULL);
        } else {
            (void)agx_error_set(&error, AGX_UNAVAILABLE,
                                "the main process that ran exec '%s' has ended", c->id);
            agx_init_client_op_end(op, END_LOST, error);
        }
    }
    if (starts)
        ask_rest(c);
}

static void on_exited(struct agx_init_client_exec *c, int32_t exit_code)
{
    c->started = false;
    if (!c->init_client->link->kind->carries_logs)
        agx_init_client_output_end(&c->logs); /* all of them was sent before */
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node) {
        struct agx_error *error = NULL;

        if (!is_exec(op->kind))
            continue;
        op->exit_code = exit_code;
        if (op->kind == AGX_INIT_CLIENT_RUN)
            op->output = agx_init_client_output_tail(&c->logs);
        if (exit_code == AGX_INIT_EXIT_LOST)
            (void)agx_error_set(&error, AGX_UNAVAILABLE,
                                "the main process of sandbox '%s' has ended, and exec '%s' with it",
                                c->init_client->sandbox_id, c->id);
        agx_init_client_op_end(op, error ? END_LOST : END_EXITED, error);
    }
}

static void on_gone(struct agx_init_client_exec *c)
{
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node)
        if (is_kill(op->kind))
            agx_init_client_op_end(op, END_DONE, NULL);
}

static void obey(struct agx_init_client_exec *c, const struct agx_init_msg *m)
{
    switch (m->kind) {
    case AGX_INIT_REFUSED:
        on_refused(c, m);
        break;
    case AGX_INIT_UNKNOWN:
        on_unknown(c);
        break;
    case AGX_INIT_EXITED:
        on_exited(c, m->exit_code);
        break;
    case AGX_INIT_GONE:
        on_gone(c);
        break;
    case AGX_INIT_TAKEN:
        on_taken(c, (enum agx_code)m->code);
        break;
    case AGX_INIT_OUTPUT:
        agx_init_client_output_put(&c->logs, m);
        break;
    default:
        break;
    }
    agx_init_client_exec_settle(c);
}

void agx_init_client_on_message(void *user, const struct agx_init_msg *m)
{
    struct agx_init_client *a = user;
    struct agx_init_client_exec *c = agx_init_client_exec_find(a, m->id);

    if (!c)
        return; /* abandoned */
    if (m->kind == AGX_INIT_STARTED) {
        on_started(a, m->id);
        return;
    }
    obey(c, m);
    agx_init_client_deliver(a);
}

/* ---- the connection ---- */

int agx_init_client_exec_query(struct agx_init_client_exec *c, struct agx_error **err)
{
    struct agx_init_msg m = { .kind = AGX_INIT_QUERY, .id = { c->id, c->id_len } };

    if (!c->init_client->link->kind->carries_logs) {
        m.offset = agx_init_client_output_total(&c->logs, 0);
        m.err_offset = agx_init_client_output_total(&c->logs, 1);
    }
    return agx_initlink_send(c->init_client->link, &m, NULL, 0, err);
}

void agx_init_client_exec_ask(struct agx_init_client_exec *c)
{
    forget_input(c);
    if (c->started && !first_of(c, is_exec))
        (void)!agx_init_client_exec_query(c, NULL); /* abandoned: its logs go on */
    AGX_LIST_FOR_EACH (struct agx_init_client_op, op, &c->ops, node) {
        if (!is_exec(op->kind))
            continue;
        op->start_sent = op->is_unknown = false;
        agx_init_client_op_ask(op);
    }
    ask_rest(c);
}

void agx_init_client_exec_give_up(struct agx_init_client_exec *c, const struct agx_error *error,
                                  bool gone)
{
    struct agx_init_client_op *op;

    if (gone)
        agx_init_client_output_end(&c->logs);
    c->started = c->input_out = false;
    c->input_op = NULL;
    while ((op = AGX_LIST_FIRST(&c->ops, struct agx_init_client_op, node)))
        agx_init_client_op_give_up(op, error, gone);
}

/* world.c: a posted function finishes each operation, so none ends inside the call. */
#include "tests/support/world.h"

#include "base/mem.h"

#include <stdio.h>

enum kind { KIND_BOX, KIND_LOOK, KIND_USE, KIND_EXEC, KIND_KILL, KIND_WRITE };

struct world_op {
    struct agx_backend_op base;
    struct world_op *next;
    enum kind kind;
    struct world *w;
    char id[AGX_IDENT_MAX + 1], exec_id[AGX_IDENT_MAX + 1];
    enum agx_do verb;
    size_t companions_len;
    const struct agx_backend_hooks *hooks;
    const struct agx_backend_exec_hooks *exec_hooks;
    agx_backend_seen_fn seen;
    agx_backend_usage_fn use;
    agx_done_fn done;
    void *user;
    bool adopt, held, cancelled, dead, posted, begun;
    bool stdin_open;
};

struct scripted {
    struct agx_backend base;
    struct world *w;
    struct world_op *ops;
    agx_done_fn closed;
    void *closed_user;
};

static struct scripted *scripted_of(struct agx_backend *b)
{
    return container_of(b, struct scripted, base);
}

struct world_box *world_box(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->n_boxes; i++)
        if (strcmp(w->boxes[i].id, id) == 0)
            return &w->boxes[i];
    return NULL;
}

struct world_exec *world_exec(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->n_execs; i++)
        if (strcmp(w->execs[i].id, id) == 0)
            return &w->execs[i];
    return NULL;
}

static struct world_box *make_box(struct world *w, const char *id)
{
    struct world_box *box = world_box(w, id);

    if (box)
        return box;
    if (w->n_boxes == WORLD_BOXES)
        abort();
    box = &w->boxes[w->n_boxes++];
    *box = (struct world_box){ .seen = AGX_SEEN_MISSING };
    snprintf(box->id, sizeof(box->id), "%s", id);
    return box;
}

static void op_free(struct world_op *op)
{
    struct world_op **at = &scripted_of(op->base.backend)->ops;

    while (*at != op)
        at = &(*at)->next;
    *at = op->next;
    free(op);
}

static void op_run(void *user);

static void op_post(struct world_op *op)
{
    if (op->posted)
        return;
    op->posted = true;
    if (agx_loop_post(op->base.backend->loop, op_run, op) < 0)
        abort();
}

static struct world_op *op_new(struct agx_backend *b, enum kind kind, const char *id,
                               const char *exec_id, void *user, struct agx_backend_op **ret)
{
    struct world_op *op = agx_new(struct world_op);
    struct scripted *s = scripted_of(b);

    op->base.backend = b;
    op->kind = kind;
    op->w = s->w;
    op->user = user;
    snprintf(op->id, sizeof(op->id), "%s", id ? id : "");
    snprintf(op->exec_id, sizeof(op->exec_id), "%s", exec_id ? exec_id : "");
    op->next = s->ops;
    s->ops = op;
    s->w->n_calls++;
    *ret = &op->base;
    return op;
}

/* ---- sandboxes ---- */

static void end_commands(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->n_execs; i++)
        if (strcmp(w->execs[i].sandbox_id, id) == 0 && w->execs[i].running)
            world_exit(w, w->execs[i].id, 137);
}

static void take_effect(struct world_op *op, struct world_box *box)
{
    box->n[op->verb]++;
    switch (op->verb) {
    case AGX_DO_CREATE:
    case AGX_DO_RESUME:
    case AGX_DO_REVIVE:
        box->seen = AGX_SEEN_RUNNING;
        box->companions_len = AGX_MIN(op->companions_len, sizeof(box->companions));
        memset(box->companions, AGX_SEEN_RUNNING, sizeof(box->companions));
        if (op->verb == AGX_DO_CREATE && op->w->stillborn)
            box->seen = AGX_SEEN_EXITED;
        break;
    case AGX_DO_DELETE:
        box->seen = AGX_SEEN_MISSING;
        end_commands(op->w, op->id);
        break;
    default:
        if (box->seen != AGX_SEEN_MISSING)
            box->seen = AGX_SEEN_EXITED;
        end_commands(op->w, op->id);
    }
}

static void box_run(struct world_op *op)
{
    struct world_box *box = make_box(op->w, op->id);
    struct agx_error *error = NULL;

    if (op->cancelled) {
        (void)agx_error_set(&error, AGX_CANCELLED, "cancelled");
    } else if (op->w->fail[op->verb] > 0) {
        op->w->fail[op->verb]--;
        (void)agx_error_set(&error, AGX_INTERNAL, "made to fail");
    } else {
        if (op->hooks->begun && op->verb == AGX_DO_CREATE && !op->begun && !op->dead)
            op->hooks->begun(op->user);
        for (size_t i = 0; i < op->companions_len && !op->dead && op->hooks->companion &&
                           (op->verb == AGX_DO_CREATE || op->verb == AGX_DO_RESUME);
             i++)
            op->hooks->companion(op->user, i, NULL);
        take_effect(op, box);
    }
    box->busy = false;
    if (op->dead)
        agx_error_free(error);
    else
        op->hooks->done(op->user, error);
    op_free(op);
}

static void refuse_busy(void *user)
{
    struct world_op *op = user;
    struct agx_error *error = NULL;

    (void)agx_error_set(&error, AGX_UNAVAILABLE, "another operation is under way");
    if (op->dead)
        agx_error_free(error);
    else
        op->hooks->done(op->user, error);
    op_free(op);
}

static int world_start(struct agx_backend *b, const struct agx_backend_request *q,
                       const struct agx_backend_hooks *hooks, void *user,
                       struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct world *w = scripted_of(b)->w;
    struct world_box *box = make_box(w, q->sandbox->id);
    struct world_op *op = op_new(b, KIND_BOX, q->sandbox->id, NULL, user, ret_op);

    (void)err;
    op->verb = q->verb;
    op->hooks = hooks;
    op->companions_len = q->sandbox->spec.companions_len;
    if (box->busy) {
        op->posted = true;
        if (agx_loop_post(b->loop, refuse_busy, op) < 0)
            abort();
        return 0;
    }
    box->busy = true;
    op->held = w->hold[q->verb];
    if (!op->held)
        op_post(op);
    return 0;
}

void world_release(struct world *w, const char *id)
{
    struct scripted *s = scripted_of(w->backend);

    for (struct world_op *op = s->ops; op; op = op->next) {
        if (strcmp(op->id, id) != 0 || !op->held)
            continue;
        op->held = false;
        op_post(op);
    }
}

void world_pull(struct world *w, const char *id, const struct agx_pull *pull)
{
    for (struct world_op *op = scripted_of(w->backend)->ops; op; op = op->next) {
        if (strcmp(op->id, id) == 0 && op->held)
            op->hooks->progress(op->user, pull);
    }
}

/* ---- looks ---- */

static void show_box(struct world_op *op, const struct world_box *box)
{
    op->seen(op->user, &(struct agx_backend_seen){ .sandbox_id = box->id,
                                                   .primary = box->seen,
                                                   .companions = box->companions,
                                                   .companions_len = box->companions_len });
}

static void look_run(struct world_op *op)
{
    struct agx_error *error = NULL;

    op->w->n_looks++;
    if (!op->dead && op->w->fail_looks)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "nobody is there");
    if (!op->dead && !error && op->id[0])
        show_box(op, make_box(op->w, op->id));
    for (size_t i = 0; !op->dead && !error && !op->id[0] && i < op->w->n_boxes; i++)
        if (op->w->boxes[i].seen != AGX_SEEN_MISSING)
            show_box(op, &op->w->boxes[i]);
    if (!op->dead)
        op->done(op->user, error);
    op_free(op);
}

static int world_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                      agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                      struct agx_error **err)
{
    struct world_op *op = op_new(b, KIND_LOOK, sandbox_id, NULL, user, ret_op);

    (void)err;
    op->seen = seen;
    op->done = done;
    op->held = op->w->hold_looks;
    if (!op->held)
        op_post(op);
    return 0;
}

/* ---- use ---- */

static void use_run(struct world_op *op)
{
    const struct world_box *box = make_box(op->w, op->id);
    struct agx_resource_usage use = { 0 };
    struct agx_error *error = NULL;

    agx_resource_usage_set(&use, AGX_USAGE_DISK, 1);
    if (box->seen == AGX_SEEN_MISSING)
        (void)agx_error_set(&error, AGX_NOT_FOUND, "there is none");
    if (!op->dead && !error)
        op->use(op->user, 0, &use);
    if (op->dead)
        agx_error_free(error);
    else
        op->done(op->user, error);
    op_free(op);
}

static int world_use(struct agx_backend *b, const struct agx_sandbox *sandbox,
                     agx_backend_usage_fn use, agx_done_fn done, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct world_op *op = op_new(b, KIND_USE, sandbox->id, NULL, user, ret_op);

    (void)err;
    op->use = use;
    op->done = done;
    op->held = op->w->hold_uses;
    if (!op->held)
        op_post(op);
    return 0;
}

/* ---- commands ---- */

static void exec_ended(struct world_op *op, struct world_exec *x)
{
    if (x->op == op)
        x->op = NULL;
    if (!op->dead)
        op->exec_hooks->exited(op->user, x->exit_code);
    op_free(op);
}

static struct world_exec *make_exec(struct world_op *op)
{
    struct world_exec *x;

    if (op->w->n_execs == WORLD_EXECS)
        abort();
    x = &op->w->execs[op->w->n_execs++];
    *x = (struct world_exec){ .running = true, .starts = 1, .stdin_open = op->stdin_open };
    snprintf(x->id, sizeof(x->id), "%s", op->exec_id);
    snprintf(x->sandbox_id, sizeof(x->sandbox_id), "%s", op->id);
    return x;
}

static void exec_run(struct world_op *op)
{
    struct world_exec *x = world_exec(op->w, op->exec_id);
    struct agx_error *error = NULL;

    op->posted = false;
    if (op->dead) {
        op_free(op);
        return;
    }
    if (!x && op->adopt) {
        op->exec_hooks->unknown(op->user);
        op_free(op);
        return;
    }
    if (!x && op->w->refuse_starts) {
        (void)agx_error_set(&error, AGX_NOT_FOUND, "no such program");
        op->exec_hooks->refused(op->user, error);
        op_free(op);
        return;
    }
    if (!x)
        x = make_exec(op);
    x->op = op;
    if (x->ended) {
        exec_ended(op, x);
    } else if (!op->begun) {
        op->begun = true;
        op->exec_hooks->begun(op->user);
    }
}

static int world_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                            const struct agx_backend_exec_hooks *hooks, void *user,
                            struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct world_op *op = op_new(b, KIND_EXEC, q->sandbox->id, q->exec->id, user, ret_op);

    (void)err;
    op->exec_hooks = hooks;
    op->adopt = adopt;
    op->stdin_open = q->stdin_open;
    op->held = op->w->hold_starts;
    if (!op->held)
        op_post(op);
    return 0;
}

void world_exit(struct world *w, const char *exec_id, int32_t exit_code)
{
    struct world_exec *x = world_exec(w, exec_id);

    ASSERT_NOT_NULL(x);
    if (x->ended)
        return;
    x->running = false;
    x->ended = true;
    x->exit_code = exit_code;
    if (x->op && !x->op->dead)
        op_post(x->op);
}

static void kill_run(struct world_op *op)
{
    struct world_exec *x = world_exec(op->w, op->exec_id);
    struct agx_error *error = NULL;

    if (op->w->fail_kills > 0) {
        op->w->fail_kills--;
        (void)agx_error_set(&error, AGX_INTERNAL, "made to fail");
    } else if (x) {
        x->kills++;
        if (!op->w->deaf_commands)
            world_exit(op->w, op->exec_id, 143);
    }
    if (op->dead)
        agx_error_free(error);
    else
        op->done(op->user, error);
    op_free(op);
}

static int world_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                           uint64_t grace_ms, agx_done_fn gone, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct world_op *op = op_new(b, KIND_KILL, sandbox_id, exec_id, user, ret_op);

    (void)grace_ms;
    (void)err;
    op->done = gone;
    op_post(op);
    return 0;
}

static void write_run(struct world_op *op)
{
    if (!op->dead)
        op->done(op->user, NULL);
    op_free(op);
}

static int world_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            struct agx_str data, bool eof, agx_done_fn taken, void *user,
                            struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct world_op *op = op_new(b, KIND_WRITE, sandbox_id, exec_id, user, ret_op);
    struct world_exec *x = world_exec(op->w, exec_id);
    size_t len = x ? strlen(x->input) : 0;

    (void)eof;
    (void)err;
    if (x)
        snprintf(x->input + len, sizeof(x->input) - len, "%.*s", AGX_STR_ARG(data));
    op->done = taken;
    op_post(op);
    return 0;
}

static int world_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                             struct agx_error **err)
{
    struct world_exec *x = world_exec(scripted_of(b)->w, exec_id);

    (void)sandbox_id;
    (void)err;
    if (x)
        x->forgotten = true;
    return 0;
}

/* ---- the rest ---- */

static void op_run(void *user)
{
    struct world_op *op = user;

    op->posted = false;
    switch (op->kind) {
    case KIND_BOX:
        box_run(op);
        break;
    case KIND_LOOK:
        look_run(op);
        break;
    case KIND_USE:
        use_run(op);
        break;
    case KIND_EXEC:
        exec_run(op);
        break;
    case KIND_KILL:
        kill_run(op);
        break;
    case KIND_WRITE:
        write_run(op);
        break;
    }
}

static void world_cancel(struct agx_backend_op *base)
{
    struct world_op *op = container_of(base, struct world_op, base);

    if (op->kind != KIND_BOX || op->w->deaf)
        return;
    op->cancelled = true;
    op->held = false;
    op_post(op);
}

static void world_abandon(struct agx_backend_op *base)
{
    struct world_op *op = container_of(base, struct world_op, base);
    struct world_exec *x = op->kind == KIND_EXEC ? world_exec(op->w, op->exec_id) : NULL;

    op->dead = true;
    if (x && x->op == op)
        x->op = NULL;
    if (op->kind == KIND_BOX || op->posted)
        return; /* its work continues; it is freed when that ends */
    op_free(op);
}

/* Adds a warning for each builtin tool. */
static int world_check(struct agx_backend *b, const struct agx_spec *spec,
                       struct agx_words *warnings, struct agx_error **err)
{
    int r = 0;

    (void)b;
    if (spec->gpus)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "gpus: there are none here");
    for (size_t i = 0; r == 0 && i < spec->builtin_tools.len; i++)
        r = agx_words_add(warnings, agx_str_from(spec->builtin_tools.items[i]), err);
    return r;
}

static void on_close(void *user)
{
    struct scripted *s = user;

    while (s->ops) {
        struct world_box *box = world_box(s->w, s->ops->id);

        ASSERT_TRUE(s->ops->dead);
        if (box && s->ops->kind == KIND_BOX)
            box->busy = false; /* a new backend starts without operations */
        op_free(s->ops);
    }
    s->w->backend = NULL;
    if (s->closed)
        s->closed(s->closed_user, NULL);
    free(s);
}

static void world_close(struct agx_backend *b, agx_done_fn closed, void *user)
{
    struct scripted *s = scripted_of(b);

    s->closed = closed;
    s->closed_user = user;
    if (agx_loop_post(b->loop, on_close, s) < 0)
        abort();
}

static const struct agx_backend_ops world_ops = {
    .name = "world",
    .start = world_start,
    .cancel = world_cancel,
    .abandon = world_abandon,
    .look = world_look,
    .use = world_use,
    .exec_start = world_exec_start,
    .exec_kill = world_exec_kill,
    .exec_write = world_exec_write,
    .forget_exec = world_forget_exec,
    .check = world_check,
    .close = world_close,
};

struct agx_backend *world_backend(struct world *w, struct agx_loop *l)
{
    struct scripted *s = agx_new(struct scripted);

    ASSERT_NULL(w->backend);
    s->base = (struct agx_backend){ .ops = &world_ops, .loop = l };
    s->w = w;
    w->backend = &s->base;
    return &s->base;
}

void world_news(struct world *w, const char *id)
{
    if (w->backend && w->backend->news)
        w->backend->news(w->backend->news_user, id);
}

void world_die(struct world *w, const char *id, enum agx_seen how)
{
    struct world_box *box = world_box(w, id);

    ASSERT_NOT_NULL(box);
    box->seen = how;
    end_commands(w, id);
    world_news(w, id);
}

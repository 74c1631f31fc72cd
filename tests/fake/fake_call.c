/* fake_call.c: the calls of the fake backend, as messages to its world. */
#include "tests/fake/fake_internal.h"

#include "base/mem.h"
#include "tests/fake/rule.h"

#include "base/banned.h"

/* Begins a message with a tag of its own. */
static int op_begin(struct agx_fake *f, struct agx_fake_op *op, enum agx_fake_kind kind,
                    struct agx_fake_out *o, struct agx_error **err)
{
    op->base.backend = &f->base;
    op->tag = ++f->last_tag;
    if (!f->link)
        return agx_fake_unavailable(f, err);
    agx_fake_link_begin(f->link, o, kind, op->tag);
    return 0;
}

/* Sends what op_begin() began. Takes the op on success. */
static int op_send(struct agx_fake *f, struct agx_fake_op **take_op, struct agx_fake_out *o,
                   const int *fds, unsigned n_fds, struct agx_backend_op **ret_op,
                   struct agx_error **err)
{
    struct agx_fake_op *op = *take_op;
    int r = agx_map_put(&f->ops, agx_fake_key(&op->tag), op, NULL);

    if (r == 0)
        r = agx_fake_link_send(f->link, o, fds, n_fds);
    if (r < 0) {
        (void)agx_map_remove(&f->ops, agx_fake_key(&op->tag));
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "no memory or descriptors for a message to the fake world");
    }
    *ret_op = &op->base;
    *take_op = NULL;
    return 0;
}

static void op_freep(struct agx_fake_op **op)
{
    if (*op)
        agx_fake_op_free(*op);
}

static struct agx_fake_op *op_new(enum agx_fake_op_kind kind, agx_done_fn done, void *user)
{
    struct agx_fake_op *op = agx_new(struct agx_fake_op);

    op->kind = kind;
    op->hooks.done = done;
    op->user = user;
    return op;
}

static void put_labels(struct agx_fake_out *o, const struct agx_pairs *labels)
{
    size_t n = 0;

    for (size_t i = 0; i < labels->len; i++)
        n += agx_fake_rule_is_label(labels->items[i].key);
    agx_fake_out_u64(o, n);
    for (size_t i = 0; i < labels->len; i++) {
        if (!agx_fake_rule_is_label(labels->items[i].key))
            continue;
        agx_fake_out_cstr(o, labels->items[i].key);
        agx_fake_out_cstr(o, labels->items[i].value);
    }
}

static int fake_start(struct agx_backend *b, const struct agx_backend_request *q,
                      const struct agx_backend_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_START, hooks->done, user);
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r = op_begin(f, op, AGX_FAKE_START, &o, err);

    if (r < 0)
        return r;
    op->hooks = *hooks;
    agx_fake_out_u64(&o, q->verb);
    agx_fake_out_cstr(&o, q->sandbox->id);
    agx_fake_out_u64(&o, q->grace_ms);
    agx_fake_out_u64(&o, q->sandbox->spec.companions_len);
    put_labels(&o, &q->sandbox->spec.labels);
    return op_send(f, &op, &o, NULL, 0, ret_op, err);
}

static void fake_cancel(struct agx_backend_op *base)
{
    struct agx_fake_op *op = container_of(base, struct agx_fake_op, base);
    struct agx_fake *f = agx_fake_of(base->backend);
    struct agx_error *error = NULL;
    struct agx_fake_out o;

    if (op->kind == AGX_FAKE_OP_EXEC || op->is_due)
        return;
    if (op->kind == AGX_FAKE_OP_START && f->link) {
        agx_fake_link_begin(f->link, &o, AGX_FAKE_CANCEL, op->tag);
        (void)!agx_fake_link_send(f->link, &o, NULL, 0); /* the caller's grace ends it then */
        return;
    }
    (void)agx_error_set(&error, AGX_CANCELLED, "cancelled");
    agx_fake_op_end_soon(f, op, error);
}

static void fake_abandon(struct agx_backend_op *base)
{
    struct agx_fake_op *op = container_of(base, struct agx_fake_op, base);

    agx_fake_op_unlink(agx_fake_of(base->backend), op);
    agx_fake_op_free(op);
}

static int fake_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                     agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                     struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_LOOK, done, user);
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r = op_begin(f, op, AGX_FAKE_LOOK, &o, err);

    if (r < 0)
        return r;
    op->seen = seen;
    agx_fake_out_cstr(&o, agx_text(sandbox_id));
    return op_send(f, &op, &o, NULL, 0, ret_op, err);
}

static int fake_use(struct agx_backend *b, const struct agx_sandbox *sandbox,
                    agx_backend_usage_fn use, agx_done_fn done, void *user,
                    struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_USAGE, done, user);
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r = op_begin(f, op, AGX_FAKE_USAGE, &o, err);

    if (r < 0)
        return r;
    op->use = use;
    agx_fake_out_cstr(&o, sandbox->id);
    return op_send(f, &op, &o, NULL, 0, ret_op, err);
}

static void put_words(struct agx_fake_out *o, const struct agx_words *w)
{
    agx_fake_out_u64(o, w->len);
    for (size_t i = 0; i < w->len; i++)
        agx_fake_out_cstr(o, w->items[i]);
}

static void put_pairs(struct agx_fake_out *o, const struct agx_pairs *p)
{
    for (size_t i = 0; i < p->len; i++) {
        agx_fake_out_cstr(o, p->items[i].key);
        agx_fake_out_cstr(o, p->items[i].value);
    }
}

static void put_command(struct agx_fake_out *o, const struct agx_backend_exec *q)
{
    const struct agx_pairs *envs = &q->sandbox->spec.envs, *over = &q->exec->env_overrides;

    agx_fake_out_cstr(o, agx_text(q->exec->cwd));
    agx_fake_out_u64(o, q->stdin_open);
    agx_fake_out_u64(o, q->out.head_max);
    agx_fake_out_u64(o, q->out.tail_max);
    agx_fake_out_u64(o, q->err.head_max);
    agx_fake_out_u64(o, q->err.tail_max);
    put_words(o, &q->exec->command);
    agx_fake_out_u64(o, envs->len + over->len);
    put_pairs(o, envs);
    put_pairs(o, over); /* the last one counts */
}

static int fake_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                           const struct agx_backend_exec_hooks *hooks, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_EXEC, NULL, user);
    const int fds[] = { q->out.data_fd, q->out.index_fd, q->err.data_fd, q->err.index_fd };
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r;

    op->exec_hooks = *hooks;
    op->adopt = adopt;
    r = agx_text_set(&op->sandbox_id, q->sandbox->id, err);
    if (r == 0)
        r = agx_text_set(&op->exec_id, q->exec->id, err);
    if (r == 0)
        r = op_begin(f, op, adopt ? AGX_FAKE_ADOPT : AGX_FAKE_EXEC, &o, err);
    if (r < 0)
        return r;
    agx_fake_out_cstr(&o, q->sandbox->id);
    agx_fake_out_cstr(&o, q->exec->id);
    if (!adopt)
        put_command(&o, q);
    return op_send(f, &op, &o, fds, adopt ? 0 : AGX_ARRAY_LEN(fds), ret_op, err);
}

static int fake_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                          uint64_t grace_ms, agx_done_fn gone, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_KILL, gone, user);
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r = op_begin(f, op, AGX_FAKE_KILL, &o, err);

    if (r < 0)
        return r;
    agx_fake_out_cstr(&o, sandbox_id);
    agx_fake_out_cstr(&o, exec_id);
    agx_fake_out_u64(&o, grace_ms);
    return op_send(f, &op, &o, NULL, 0, ret_op, err);
}

static int fake_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                           struct agx_str data, bool eof, agx_done_fn taken, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err)
{
    _cleanup_(op_freep) struct agx_fake_op *op = op_new(AGX_FAKE_OP_WRITE, taken, user);
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;
    int r = op_begin(f, op, AGX_FAKE_WRITE, &o, err);

    if (r < 0)
        return r;
    agx_fake_out_cstr(&o, sandbox_id);
    agx_fake_out_cstr(&o, exec_id);
    agx_fake_out_u64(&o, eof);
    agx_fake_out_str(&o, data);
    return op_send(f, &op, &o, NULL, 0, ret_op, err);
}

static int fake_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            struct agx_error **err)
{
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_out o;

    if (!f->link)
        return agx_fake_unavailable(f, err);
    agx_fake_link_begin(f->link, &o, AGX_FAKE_FORGET, 0);
    agx_fake_out_cstr(&o, sandbox_id);
    agx_fake_out_cstr(&o, exec_id);
    if (agx_fake_link_send(f->link, &o, NULL, 0) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a message");
    return 0;
}

/* Checks the labels that script the world; the fake supports everything else in a spec. */
static int fake_check(struct agx_backend *b, const struct agx_spec *spec,
                      struct agx_words *warnings, struct agx_error **err)
{
    (void)b;
    return agx_fake_rule_check_labels(&spec->labels, warnings, err);
}

const struct agx_backend_ops agx_fake_ops = {
    .name = "fake",
    .start = fake_start,
    .cancel = fake_cancel,
    .abandon = fake_abandon,
    .look = fake_look,
    .exec_start = fake_exec_start,
    .exec_kill = fake_exec_kill,
    .exec_write = fake_exec_write,
    .forget_exec = fake_forget_exec,
    .use = fake_use,
    .check = fake_check,
    .close = agx_fake_close,
};

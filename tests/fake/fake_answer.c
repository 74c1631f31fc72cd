/* fake_answer.c: turns answers of the world into calls of the backend's hooks. */
#include "tests/fake/fake_internal.h"

#include "base/banned.h"

static struct agx_error *read_error(struct agx_fake_in *in)
{
    uint64_t code = agx_fake_in_u64(in);
    struct agx_str text = agx_fake_in_str(in);
    struct agx_error *e = NULL;

    if (code > AGX_OK && code <= AGX_UNAUTHENTICATED)
        (void)agx_error_set(&e, (enum agx_code)code, "%.*s", AGX_STR_ARG(text));
    else
        in->bad |= code != AGX_OK;
    return e;
}

static void on_companion(struct agx_fake_op *op, struct agx_fake_in *in)
{
    uint64_t place = agx_fake_in_u64(in);
    struct agx_error *e = read_error(in);

    if (op->hooks.companion && agx_fake_in_ends(in))
        op->hooks.companion(op->user, (size_t)place, e);
    else
        agx_error_free(e);
}

static void on_seen(struct agx_fake_op *op, struct agx_fake_in *in)
{
    struct agx_str id = agx_fake_in_str(in);
    uint64_t primary = agx_fake_in_u64(in);
    struct agx_str companions = agx_fake_in_str(in);
    char text[AGX_IDENT_MAX + 1];

    if (!agx_fake_in_ends(in) || primary >= AGX_SEEN_COUNT || id.len >= sizeof(text)) {
        in->bad = true;
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s", AGX_STR_ARG(id));
    op->seen(op->user, &(struct agx_backend_seen){ .sandbox_id = text,
                                                   .primary = (enum agx_seen)primary,
                                                   .companions = (const uint8_t *)companions.ptr,
                                                   .companions_len = companions.len });
}

static void on_used(struct agx_fake_op *op, struct agx_fake_in *in)
{
    uint64_t part = agx_fake_in_u64(in), known = agx_fake_in_u64(in);
    struct agx_resource_usage use = { .known = (uint32_t)known };

    for (size_t i = 0; i < AGX_USAGE_COUNT; i++)
        use.figures[i] = agx_fake_in_u64(in);
    if (agx_fake_in_ends(in) && part <= AGX_SPEC_ITEMS_MAX && known < 1U << AGX_USAGE_COUNT)
        op->use(op->user, (size_t)part, &use);
    else
        in->bad = true;
}

static void on_pull(struct agx_fake_op *op, struct agx_fake_in *in)
{
    char *image = agx_str_dup(agx_fake_in_str(in));
    struct agx_pull pull = { .image = image };

    pull.layers_done = (uint32_t)agx_fake_in_u64(in);
    pull.layers_total = (uint32_t)agx_fake_in_u64(in);
    pull.bytes_done = agx_fake_in_u64(in);
    pull.bytes_total = agx_fake_in_u64(in);
    if (image && op->hooks.progress && agx_fake_in_ends(in))
        op->hooks.progress(op->user, &pull);
    free(image);
}

static void on_exec_begun(struct agx_fake_op *op)
{
    if (op->begun)
        return; /* asked for again on a new connection */
    op->begun = true;
    op->exec_hooks.begun(op->user);
}

/* UNKNOWN: an exec that had begun is lost; one that we meant to start is refused. */
static void on_exec_unknown(struct agx_fake_op *op)
{
    struct agx_error *e = NULL;

    if (op->adopt && !op->begun) {
        op->exec_hooks.unknown(op->user);
        return;
    }
    (void)agx_error_set(&e, AGX_UNAVAILABLE, "the fake world that had exec '%s' is gone",
                        op->exec_id);
    if (op->begun)
        op->exec_hooks.lost(op->user, e);
    else
        op->exec_hooks.refused(op->user, e);
}

static void on_exec_end(struct agx_fake *f, struct agx_fake_op *op, struct agx_fake_in *in)
{
    struct agx_error *e = NULL;
    uint64_t code = 0;

    if (in->kind == AGX_FAKE_EXITED)
        code = agx_fake_in_u64(in);
    else if (in->kind != AGX_FAKE_UNKNOWN)
        e = read_error(in);
    if (!agx_fake_in_ends(in)) {
        agx_error_free(e);
        return;
    }
    agx_fake_op_unlink(f, op);
    if (in->kind == AGX_FAKE_EXITED)
        op->exec_hooks.exited(op->user, (int32_t)code);
    else if (in->kind == AGX_FAKE_UNKNOWN)
        on_exec_unknown(op);
    else if (in->kind == AGX_FAKE_REFUSED && !op->adopt)
        op->exec_hooks.refused(op->user, e);
    else
        op->exec_hooks.lost(op->user, e);
    agx_fake_op_free(op);
}

static void on_op_message(struct agx_fake *f, struct agx_fake_op *op, struct agx_fake_in *in)
{
    struct agx_error *e;

    if (in->kind == AGX_FAKE_BEGUN && op->kind == AGX_FAKE_OP_EXEC) {
        on_exec_begun(op);
    } else if (in->kind == AGX_FAKE_BEGUN && op->kind == AGX_FAKE_OP_START) {
        if (op->hooks.begun)
            op->hooks.begun(op->user);
    } else if (in->kind == AGX_FAKE_COMPANION && op->kind == AGX_FAKE_OP_START) {
        on_companion(op, in);
    } else if (in->kind == AGX_FAKE_PULL && op->kind == AGX_FAKE_OP_START) {
        on_pull(op, in);
    } else if (in->kind == AGX_FAKE_SEEN && op->kind == AGX_FAKE_OP_LOOK) {
        on_seen(op, in);
    } else if (in->kind == AGX_FAKE_USED && op->kind == AGX_FAKE_OP_USAGE) {
        on_used(op, in);
    } else if (in->kind == AGX_FAKE_DONE && op->kind != AGX_FAKE_OP_EXEC) {
        e = read_error(in);
        if (agx_fake_in_ends(in))
            agx_fake_op_end(f, op, e);
        else
            agx_error_free(e);
    } else if (op->kind == AGX_FAKE_OP_EXEC) {
        on_exec_end(f, op, in);
    } else {
        in->bad = true;
    }
}

static void on_welcome(struct agx_fake *f, struct agx_fake_in *in)
{
    const bool again = f->was_up;

    if (agx_fake_in_u64(in) != AGX_FAKE_VERSION) {
        in->bad = true;
        return;
    }
    f->state = AGX_FAKE_UP;
    f->attempts = 0;
    f->was_up = f->ponged = true;
    if (again && f->base.news)
        f->base.news(f->base.news_user, NULL);
}

static void on_news(struct agx_fake *f, struct agx_fake_in *in)
{
    struct agx_str id = agx_fake_in_str(in);
    char text[AGX_IDENT_MAX + 1];

    if (id.len >= sizeof(text)) {
        in->bad = true;
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s", AGX_STR_ARG(id));
    if (f->base.news)
        f->base.news(f->base.news_user, text);
}

int agx_fake_on_message(void *user, struct agx_fake_in *in)
{
    struct agx_fake *f = user;
    struct agx_fake_op *op = agx_map_get(&f->ops, agx_fake_key(&in->tag));

    if (f->base.closing)
        return 0;
    f->ponged = true;
    if (in->kind == AGX_FAKE_WELCOME)
        on_welcome(f, in);
    else if (in->kind == AGX_FAKE_NEWS)
        on_news(f, in);
    else if (op)
        on_op_message(f, op, in);
    return in->bad ? -AGX_INVALID_ARGUMENT : 0;
}

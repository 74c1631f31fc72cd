/*
 * engexec.c: the link: its requests, and the messages that are due.
 *
 * Nothing is sent inside send(): messages that are due are bits of a command, sent in a later turn.
 * A command that is unknown and has no messages due is dropped.
 */
#include "backend/docker/engexec_internal.h"

#include "base/mem.h"
#include "base/uuid.h"
#include "core/text.h"

#include "base/banned.h"

enum { WATCH_MS = 100 }; /* how often we check what is not reported to us */

static struct agx_engexec *engexec_of(const struct agx_initlink *base)
{
    return container_of(base, struct agx_engexec, base);
}

static void on_soon(uv_timer_t *t);
static void on_watch(uv_timer_t *t);

void agx_engexec_tell(struct agx_engexec *x, const struct agx_init_msg *m)
{
    if (!x->is_closed)
        x->ops->message(x->user, m);
}

void agx_engexec_owe(struct agx_engexec_command *c, unsigned what)
{
    c->owes |= what;
    (void)uv_timer_start(&c->link->soon, on_soon, 0, 0);
}

/* ---- what is owed ---- */

static struct agx_engexec_command *first_owing(const struct agx_engexec *x)
{
    void *value;

    for (size_t at = 0; agx_map_next(&x->cmds, &at, NULL, &value);) {
        struct agx_engexec_command *c = value;

        if (c->owes)
            return c;
    }
    return NULL;
}

static struct agx_init_msg message_of(const struct agx_engexec_command *c, unsigned what)
{
    struct agx_init_msg m = { .kind = AGX_INIT_GONE, .id = { c->id, c->id_len } };

    switch (what) {
    case ENGEXEC_OWES_STARTED:
        m.kind = AGX_INIT_STARTED;
        break;
    case ENGEXEC_OWES_REFUSED:
        m.kind = AGX_INIT_REFUSED;
        m.code = c->error->code;
        break;
    case ENGEXEC_OWES_UNKNOWN:
        m.kind = AGX_INIT_UNKNOWN;
        break;
    case ENGEXEC_OWES_TAKEN:
        m.kind = AGX_INIT_TAKEN;
        m.code = c->taken;
        break;
    case ENGEXEC_OWES_EXITED:
        m.kind = AGX_INIT_EXITED;
        m.exit_code = c->exit_code;
        break;
    default:
        break;
    }
    return m;
}

/* The command may be gone afterwards, and everything else. */
static void tell_one(struct agx_engexec_command *c)
{
    unsigned what = c->owes & -c->owes;
    struct agx_init_msg m = message_of(c, what);
    char id[AGX_INIT_ID_MAX], text[AGX_INIT_TEXT_MAX];
    struct agx_engexec *x = c->link;

    memcpy(id, c->id, c->id_len);
    m.id.ptr = id;
    if (m.kind == AGX_INIT_REFUSED)
        m.data = agx_str_from(agx_error_format(c->error, text, sizeof(text)));
    c->owes &= ~what;
    if (c->state == ENGEXEC_NONE && !c->owes)
        agx_engexec_command_free(c);
    agx_engexec_tell(x, &m);
}

static bool needs_watch(const struct agx_engexec *x)
{
    void *value;

    for (size_t at = 0; agx_map_next(&x->cmds, &at, NULL, &value);) {
        const struct agx_engexec_command *c = value;

        if (c->state == ENGEXEC_ENDING || c->state == ENGEXEC_NOTED ||
            agx_engexec_command_is_killed(c))
            return true;
    }
    return false;
}

void agx_engexec_watch(struct agx_engexec *x)
{
    if (!x->is_closed && !uv_is_active((uv_handle_t *)&x->watch) && needs_watch(x))
        (void)uv_timer_start(&x->watch, on_watch, WATCH_MS, 0);
}

static void on_soon(uv_timer_t *t)
{
    struct agx_engexec *x = container_of(t, struct agx_engexec, soon);
    struct agx_engexec_command *c;

    if (!x->is_ready) {
        x->is_ready = true;
        x->ops->ready(x->user);
    }
    while (!x->is_closed && (c = first_owing(x)))
        tell_one(c);
    agx_engexec_watch(x);
}

static void on_watch(uv_timer_t *t)
{
    struct agx_engexec *x = container_of(t, struct agx_engexec, watch);
    void *value;

    for (size_t at = 0; agx_map_next(&x->cmds, &at, NULL, &value);) {
        struct agx_engexec_command *c = value;

        if (c->state == ENGEXEC_ENDING || c->state == ENGEXEC_NOTED)
            agx_engexec_command_look(c);
        if (agx_engexec_command_is_killed(c))
            agx_engexec_command_kill_look(c);
    }
    agx_engexec_watch(x);
}

/* ---- what is asked ---- */

/* Known to us, or recorded by an earlier daemon. */
static struct agx_engexec_command *engexec_find(struct agx_engexec *x, struct agx_str id)
{
    struct agx_engexec_command *c = agx_map_get(&x->cmds, id);
    char *exec;

    if (c)
        return c;
    exec = agx_engexec_record_get(x, id);
    c = exec ? agx_engexec_command_new(x, id) : NULL;
    if (!c) {
        free(exec);
        return NULL;
    }
    c->exec = exec;
    c->state = ENGEXEC_NOTED;
    agx_engexec_command_look(c);
    return c;
}

static void on_query(struct agx_engexec_command *c)
{
    if (c->state == ENGEXEC_NONE)
        agx_engexec_owe(c, ENGEXEC_OWES_UNKNOWN);
    else if (c->state == ENGEXEC_RUNNING || c->state == ENGEXEC_ENDING)
        agx_engexec_owe(c, ENGEXEC_OWES_STARTED);
    else if (c->state == ENGEXEC_EXITED)
        agx_engexec_owe(c, ENGEXEC_OWES_EXITED);
}

static void on_kill(struct agx_engexec_command *c, uint64_t grace_ms)
{
    if (c->state == ENGEXEC_NONE || c->state == ENGEXEC_EXITED) {
        agx_engexec_owe(c, ENGEXEC_OWES_GONE);
        return;
    }
    c->kill_wanted = true;
    c->grace_ms = grace_ms;
    agx_engexec_command_kill(c);
}

static int on_input(struct agx_engexec_command *c, const struct agx_init_msg *m)
{
    if (c->input_out)
        return 0; /* the next piece comes after TAKEN */
    if (agx_buf_append(&c->input, m->data) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    c->input_out = true;
    c->input_eof = m->flags & AGX_INIT_EOF;
    agx_engexec_command_feed(c);
    return 0;
}

static void on_forget(struct agx_engexec *x, struct agx_str id)
{
    struct agx_engexec_command *c = agx_map_get(&x->cmds, id);

    if (c && c->state != ENGEXEC_EXITED)
        return;
    agx_engexec_record_remove(x, id);
    if (c)
        agx_engexec_command_free(c);
}

static int engexec_send(struct agx_initlink *base, const struct agx_init_msg *m, const int *fds,
                        size_t n_fds, struct agx_error **err)
{
    struct agx_engexec *x = engexec_of(base);
    struct agx_engexec_command *c;

    (void)fds;
    (void)n_fds;
    if (!x->is_ready)
        return agx_error_set(err, AGX_UNAVAILABLE, "the engine was not asked yet");
    if (m->kind == AGX_INIT_FORGET) {
        on_forget(x, m->id);
        return 0;
    }
    c = engexec_find(x, m->id);
    if (!c)
        c = agx_engexec_command_new(x, m->id);
    if (!c)
        return agx_error_no_memory(err);
    if (m->kind == AGX_INIT_START && c->state == ENGEXEC_NONE)
        agx_engexec_command_start(c, m);
    else if (m->kind == AGX_INIT_START || m->kind == AGX_INIT_QUERY)
        on_query(c);
    else if (m->kind == AGX_INIT_KILL)
        on_kill(c, m->grace_ms);
    else if (m->kind == AGX_INIT_INPUT)
        return on_input(c, m);
    return 0;
}

static bool engexec_is_ready(const struct agx_initlink *base)
{
    return engexec_of(base)->is_ready;
}

/* ---- life ---- */

static void engexec_free(struct agx_engexec *x)
{
    agx_map_done(&x->cmds);
    agx_closep(&x->dir_fd);
    free(x->container);
    free(x->exec_user);
    free(x);
}

static void engexec_released(struct agx_engexec *x)
{
    if (--x->n_open > 0)
        return;
    if (x->closed)
        x->closed(x->closed_user, NULL);
    engexec_free(x);
}

static void on_soon_closed(uv_handle_t *h)
{
    engexec_released(container_of((uv_timer_t *)h, struct agx_engexec, soon));
}

static void on_watch_closed(uv_handle_t *h)
{
    engexec_released(container_of((uv_timer_t *)h, struct agx_engexec, watch));
}

static void engexec_close(struct agx_initlink *base, agx_done_fn closed, void *user)
{
    struct agx_engexec *x = engexec_of(base);
    void *value;

    if (x->is_closed)
        return;
    x->is_closed = true;
    x->is_ready = false;
    x->closed = closed;
    x->closed_user = user;
    for (size_t at = 0; agx_map_next(&x->cmds, &at, NULL, &value); at = 0)
        agx_engexec_command_free(value);
    uv_close((uv_handle_t *)&x->soon, on_soon_closed);
    uv_close((uv_handle_t *)&x->watch, on_watch_closed);
}

static const struct agx_initlink_kind engexec_kind = {
    .name = "engine",
    .carries_logs = false,
    .send = engexec_send,
    .is_ready = engexec_is_ready,
    .close = engexec_close,
};

int agx_docker_engexec_open(const struct agx_docker_engexec_config *config,
                            const struct agx_initlink_ops *ops, void *user,
                            struct agx_initlink **ret_link, struct agx_error **err)
{
    struct agx_engexec *x = agx_new(struct agx_engexec);
    uv_loop_t *loop = agx_loop_uv(agx_docker_engine_loop(config->engine));
    struct agx_siphash_key seed = { 0 };
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    x->base.kind = &engexec_kind;
    x->ops = ops;
    x->user = user;
    x->engine = config->engine;
    agx_map_init(&x->cmds, seed);
    x->dir_fd = r < 0 ? r : agx_engexec_record_open(config->state_dir, config->sandbox_id, err);
    r = x->dir_fd < 0 ? x->dir_fd : agx_text_set(&x->container, config->container, err);
    if (r == 0)
        r = agx_text_set(&x->exec_user, config->user, err);
    if (r < 0) {
        engexec_free(x);
        return r;
    }
    x->n_open = 2;
    (void)uv_timer_init(loop, &x->soon);
    (void)uv_timer_init(loop, &x->watch);
    (void)uv_timer_start(&x->soon, on_soon, 0, 0);
    *ret_link = &x->base;
    return 0;
}

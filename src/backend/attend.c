/*
 * attend.c: the init client: whether there is an init, and the link to it.
 *
 * Invariants:
 *  (1) hooks are called only by agx_attend_deliver() and for `begun`, never during a walk over the
 *      commands: a hook may call anything, even close;
 *  (2) an op is in exactly one list (its command's, `due` or `ending`) until its hook is called;
 *  (3) a START is sent again only on another connection, to an init that remembers what it started.
 */
#include "backend/attend_internal.h"

#include "base/mem.h"
#include "base/uuid.h"

#include "base/banned.h"

static void attend_free(struct agx_attend *a)
{
    agx_map_done(&a->cmds);
    agx_words_done(&a->forgets);
    agx_error_free(a->why);
    agx_attend_seek_stop(a);
    free(a->sandbox_id);
    free(a->exec_user);
    free(a->cwd);
    free(a);
}

static void released(struct agx_attend *a)
{
    if (--a->n_open > 0 || a->state != AGX_ATTEND_CLOSED)
        return;
    if (a->closed)
        a->closed(a->closed_user, NULL);
    attend_free(a);
}

static void on_link_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    released(user);
}

static void drop_link(struct agx_attend *a)
{
    struct agx_initlink *link = AGX_TAKE_PTR(a->link);

    agx_initlink_close(link, on_link_closed, a);
}

int agx_attend_set_defaults(struct agx_attend *a, const char *exec_user, const char *cwd,
                            struct agx_error **err)
{
    int r = agx_text_set(&a->exec_user, exec_user, err);

    return r < 0 ? r : agx_text_set(&a->cwd, cwd, err);
}

void agx_attend_set_go(struct agx_attend *a, bool go)
{
    a->go = go;
}

int agx_attend_open(const struct agx_attend_config *config, struct agx_attend **ret_attend,
                    struct agx_error **err)
{
    struct agx_attend *a;
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    a = agx_new(struct agx_attend);
    a->config = *config;
    agx_map_init(&a->cmds, seed);
    r = agx_text_set(&a->sandbox_id, config->sandbox_id, err);
    if (r == 0)
        r = agx_attend_set_defaults(a, config->exec_user, config->cwd, err);
    if (r < 0) {
        attend_free(a);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(config->backend->loop), &a->soon);
    (void)uv_timer_init(agx_loop_uv(config->backend->loop), &a->seek.timer);
    a->n_open = 2;
    *ret_attend = a;
    return 0;
}

/* ---- up and down ---- */

/* Commands that only ran, and that no op waits for. */
static void free_idle_cmds(struct agx_attend *a)
{
    void *value;
    size_t at = 0;

    while (agx_map_next(&a->cmds, &at, NULL, &value)) {
        const struct agx_attend_cmd *c = value;

        if (c->n_ops == 0) {
            agx_attend_cmd_free(value);
            at = 0;
        }
    }
}

static void give_up_all(struct agx_attend *a, const struct agx_error *error, bool gone)
{
    void *value;

    for (size_t at = 0; agx_map_next(&a->cmds, &at, NULL, &value);)
        agx_attend_cmd_give_up(value, error, gone);
    free_idle_cmds(a);
}

/* Takes the error. */
static void go_down(struct agx_attend *a, struct agx_error *error, bool gone)
{
    agx_attend_seek_stop(a);
    drop_link(a);
    a->state = AGX_ATTEND_DOWN;
    agx_words_done(&a->forgets);
    a->why = agx_error_free(a->why);
    if (!gone)
        a->why = agx_error_dup(error);
    give_up_all(a, error, gone);
    agx_error_free(error);
}

void agx_attend_down(struct agx_attend *a, struct agx_error *error)
{
    if (!error)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the main process of sandbox '%s' has ended",
                            a->sandbox_id);
    go_down(a, error, true);
    agx_attend_deliver_due(a);
}

void agx_attend_expect(struct agx_attend *a)
{
    if (a->state == AGX_ATTEND_DOWN)
        a->state = AGX_ATTEND_UNKNOWN;
}

void agx_attend_lose(struct agx_attend *a, struct agx_error *error, bool gone)
{
    struct agx_error *told = agx_error_dup(error);

    if (gone)
        (void)agx_error_wrap(&error, -(int)error->code,
                             "the main process of sandbox '%s' has ended", a->sandbox_id);
    go_down(a, error, gone);
    agx_attend_deliver(a);
    if (a->state == AGX_ATTEND_DOWN && a->config.ended)
        a->config.ended(a->config.user, told);
    else
        agx_error_free(told);
}

static void on_lost(void *user, struct agx_error *error)
{
    agx_attend_lose(user, error, error->code == AGX_UNAVAILABLE);
}

static void send_forgets(struct agx_attend *a)
{
    size_t i = 0;

    for (; i < a->forgets.len; i++) {
        const struct agx_init_msg m = { .kind = AGX_INIT_FORGET,
                                        .id = agx_str_from(a->forgets.items[i]) };

        if (agx_initlink_send(a->link, &m, NULL, 0, NULL) < 0)
            return; /* all are sent again later */
    }
    agx_words_done(&a->forgets);
}

static void on_ready(void *user)
{
    const struct agx_init_msg go = { .kind = AGX_INIT_GO };
    struct agx_attend *a = user;
    void *value;

    if (a->go)
        (void)!agx_initlink_send(a->link, &go, NULL, 0, NULL); /* the queue is empty */
    for (size_t at = 0; agx_map_next(&a->cmds, &at, NULL, &value);)
        agx_attend_cmd_ask(value);
    send_forgets(a);
    agx_attend_deliver(a);
    if (a->state == AGX_ATTEND_UP && a->config.ready)
        a->config.ready(a->config.user);
}

const struct agx_initlink_ops agx_attend_link_ops = { on_ready, agx_attend_on_message, on_lost };

void agx_attend_up(struct agx_attend *a, struct agx_initlink *link)
{
    if (a->link)
        agx_attend_down(a, NULL);
    agx_attend_seek_stop(a);
    a->why = agx_error_free(a->why);
    a->link = link;
    a->n_open++;
    a->state = AGX_ATTEND_UP;
}

int agx_attend_up_pidfd(struct agx_attend *a, int pidfd, struct agx_error **err)
{
    struct agx_initlink_config config = AGX_INITLINK_CONFIG_INIT;
    struct agx_initlink *link;
    int r;

    config.pidfd = pidfd;
    config.patient = true; /* a paused init answers later */
    r = agx_initlink_open(a->config.backend->loop, &config, &agx_attend_link_ops, a, &link, err);
    if (r < 0)
        return r;
    agx_attend_up(a, link);
    return 0;
}

bool agx_attend_is_ready(const struct agx_attend *a)
{
    return a->state == AGX_ATTEND_UP && agx_initlink_is_ready(a->link);
}

int agx_attend_forget(struct agx_attend *a, const char *exec_id, struct agx_error **err)
{
    const struct agx_init_msg m = { .kind = AGX_INIT_FORGET, .id = agx_str_from(exec_id) };

    if (a->state == AGX_ATTEND_DOWN)
        return 0;
    if (a->state == AGX_ATTEND_UP && agx_initlink_send(a->link, &m, NULL, 0, NULL) == 0)
        return 0;
    return agx_words_add(&a->forgets, m.id, err);
}

/* ---- close ---- */

static void free_all(struct agx_list *ops)
{
    struct agx_attend_op *op;

    while ((op = AGX_LIST_TAKE(ops, struct agx_attend_op, node)))
        agx_attend_op_free(op);
}

/* All but an op whose hook closes us: that takes the command along when it is freed. */
static void free_ops(struct agx_attend_cmd *c)
{
    c->n_ops++; /* so that the last one does not, while the commands are gone through */
    free_all(&c->ops);
    c->n_ops--;
    c->started = c->input_out = false;
}

static void on_soon_closed(uv_handle_t *h)
{
    released(container_of((uv_timer_t *)h, struct agx_attend, soon));
}

static void on_seek_closed(uv_handle_t *h)
{
    released(container_of((uv_timer_t *)h, struct agx_attend, seek.timer));
}

void agx_attend_close(struct agx_attend *a, agx_done_fn closed, void *user)
{
    void *value;

    if (!a || a->state == AGX_ATTEND_CLOSED)
        return;
    a->state = AGX_ATTEND_CLOSED;
    a->closed = closed;
    a->closed_user = user;
    free_all(&a->due);
    free_all(&a->ending);
    for (size_t at = 0; agx_map_next(&a->cmds, &at, NULL, &value);)
        free_ops(value);
    free_idle_cmds(a);
    drop_link(a);
    uv_close((uv_handle_t *)&a->soon, on_soon_closed);
    uv_close((uv_handle_t *)&a->seek.timer, on_seek_closed);
}

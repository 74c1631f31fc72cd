/*
 * init_client.c: the init client: whether there is an init, and the link to it.
 *
 * Invariants:
 *  (1) hooks are called only by agx_init_client_deliver() and for `begun`, never during a walk over
 *      the commands: a hook may call anything, even close;
 *  (2) an op is in exactly one list (its command's, `due` or `ending`) until its hook is called;
 *  (3) a START is sent again only on another connection, to an init that remembers what it started.
 */
#include "backend/exec/init_client_internal.h"

#include "base/mem.h"
#include "base/uuid.h"

#include "base/banned.h"

static void init_client_free(struct agx_init_client *a)
{
    agx_map_done(&a->cmds);
    agx_words_done(&a->forgets);
    agx_error_free(a->why);
    agx_init_client_seek_stop(a);
    free(a->sandbox_id);
    free(a->exec_user);
    free(a->cwd);
    free(a);
}

static void init_client_released(struct agx_init_client *a)
{
    if (--a->n_open > 0 || a->state != AGX_INIT_CLIENT_CLOSED)
        return;
    if (a->closed)
        a->closed(a->closed_user, NULL);
    init_client_free(a);
}

static void on_link_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    init_client_released(user);
}

static void drop_link(struct agx_init_client *a)
{
    struct agx_initlink *link = AGX_TAKE_PTR(a->link);

    agx_initlink_close(link, on_link_closed, a);
}

int agx_init_client_set_defaults(struct agx_init_client *a, const char *exec_user, const char *cwd,
                                 struct agx_error **err)
{
    int r = agx_text_set(&a->exec_user, exec_user, err);

    return r < 0 ? r : agx_text_set(&a->cwd, cwd, err);
}

void agx_init_client_set_go(struct agx_init_client *a, bool go)
{
    a->go = go;
}

int agx_init_client_open(const struct agx_init_client_config *config,
                         struct agx_init_client **ret_init_client, struct agx_error **err)
{
    struct agx_init_client *a;
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    a = agx_new(struct agx_init_client);
    a->config = *config;
    agx_map_init(&a->cmds, seed);
    r = agx_text_set(&a->sandbox_id, config->sandbox_id, err);
    if (r == 0)
        r = agx_init_client_set_defaults(a, config->exec_user, config->cwd, err);
    if (r < 0) {
        init_client_free(a);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(config->backend->loop), &a->soon);
    (void)uv_timer_init(agx_loop_uv(config->backend->loop), &a->seek.timer);
    a->n_open = 2;
    *ret_init_client = a;
    return 0;
}

/* ---- up and down ---- */

/* Commands that only ran, and that no op waits for. */
static void free_idle_cmds(struct agx_init_client *a)
{
    void *value;
    size_t at = 0;

    while (agx_map_next(&a->cmds, &at, NULL, &value)) {
        const struct agx_init_client_exec *c = value;

        if (c->n_ops == 0) {
            agx_init_client_exec_free(value);
            at = 0;
        }
    }
}

static void give_up_all(struct agx_init_client *a, const struct agx_error *error, bool gone)
{
    void *value;

    for (size_t at = 0; agx_map_next(&a->cmds, &at, NULL, &value);)
        agx_init_client_exec_give_up(value, error, gone);
    free_idle_cmds(a);
}

/* Takes the error. */
static void go_down(struct agx_init_client *a, struct agx_error *error, bool gone)
{
    agx_init_client_seek_stop(a);
    drop_link(a);
    a->state = AGX_INIT_CLIENT_DOWN;
    agx_words_done(&a->forgets);
    a->why = agx_error_free(a->why);
    if (!gone)
        a->why = agx_error_dup(error);
    give_up_all(a, error, gone);
    agx_error_free(error);
}

void agx_init_client_down(struct agx_init_client *a, struct agx_error *error)
{
    if (!error)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the main process of sandbox '%s' has ended",
                            a->sandbox_id);
    go_down(a, error, true);
    agx_init_client_deliver_due(a);
}

void agx_init_client_expect(struct agx_init_client *a)
{
    if (a->state == AGX_INIT_CLIENT_DOWN)
        a->state = AGX_INIT_CLIENT_UNKNOWN;
}

void agx_init_client_lose(struct agx_init_client *a, struct agx_error *error, bool gone)
{
    struct agx_error *told = agx_error_dup(error);

    if (gone)
        (void)agx_error_wrap(&error, -(int)error->code,
                             "the main process of sandbox '%s' has ended", a->sandbox_id);
    go_down(a, error, gone);
    agx_init_client_deliver(a);
    if (a->state == AGX_INIT_CLIENT_DOWN && a->config.ended)
        a->config.ended(a->config.user, told);
    else
        agx_error_free(told);
}

static void on_lost(void *user, struct agx_error *error)
{
    agx_init_client_lose(user, error, error->code == AGX_UNAVAILABLE);
}

static void send_forgets(struct agx_init_client *a)
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
    struct agx_init_client *a = user;
    void *value;

    if (a->go)
        (void)!agx_initlink_send(a->link, &go, NULL, 0, NULL); /* the queue is empty */
    for (size_t at = 0; agx_map_next(&a->cmds, &at, NULL, &value);)
        agx_init_client_exec_ask(value);
    send_forgets(a);
    agx_init_client_deliver(a);
    if (a->state == AGX_INIT_CLIENT_UP && a->config.ready)
        a->config.ready(a->config.user);
}

const struct agx_initlink_ops agx_init_client_link_ops = { on_ready, agx_init_client_on_message,
                                                           on_lost };

void agx_init_client_up(struct agx_init_client *a, struct agx_initlink *link)
{
    if (a->link)
        agx_init_client_down(a, NULL);
    agx_init_client_seek_stop(a);
    a->why = agx_error_free(a->why);
    a->link = link;
    a->n_open++;
    a->state = AGX_INIT_CLIENT_UP;
}

int agx_init_client_up_pidfd(struct agx_init_client *a, int pidfd, struct agx_error **err)
{
    struct agx_initlink_config config = AGX_INITLINK_CONFIG_INIT;
    struct agx_initlink *link;
    int r;

    config.pidfd = pidfd;
    config.patient = true; /* a paused init answers later */
    r = agx_initlink_open(a->config.backend->loop, &config, &agx_init_client_link_ops, a, &link,
                          err);
    if (r < 0)
        return r;
    agx_init_client_up(a, link);
    return 0;
}

bool agx_init_client_is_ready(const struct agx_init_client *a)
{
    return a->state == AGX_INIT_CLIENT_UP && agx_initlink_is_ready(a->link);
}

int agx_init_client_forget(struct agx_init_client *a, const char *exec_id, struct agx_error **err)
{
    const struct agx_init_msg m = { .kind = AGX_INIT_FORGET, .id = agx_str_from(exec_id) };

    if (a->state == AGX_INIT_CLIENT_DOWN)
        return 0;
    if (a->state == AGX_INIT_CLIENT_UP && agx_initlink_send(a->link, &m, NULL, 0, NULL) == 0)
        return 0;
    return agx_words_add(&a->forgets, m.id, err);
}

/* ---- close ---- */

static void free_all(struct agx_list *ops)
{
    struct agx_init_client_op *op;

    while ((op = AGX_LIST_TAKE(ops, struct agx_init_client_op, node)))
        agx_init_client_op_free(op);
}

/* All but an op whose hook closes us: that takes the command along when it is freed. */
static void free_ops(struct agx_init_client_exec *c)
{
    c->n_ops++; /* so that the last one does not, while the commands are gone through */
    free_all(&c->ops);
    c->n_ops--;
    c->started = c->input_out = false;
}

static void on_soon_closed(uv_handle_t *h)
{
    init_client_released(container_of((uv_timer_t *)h, struct agx_init_client, soon));
}

static void on_seek_closed(uv_handle_t *h)
{
    init_client_released(container_of((uv_timer_t *)h, struct agx_init_client, seek.timer));
}

void agx_init_client_close(struct agx_init_client *a, agx_done_fn closed, void *user)
{
    void *value;

    if (!a || a->state == AGX_INIT_CLIENT_CLOSED)
        return;
    a->state = AGX_INIT_CLIENT_CLOSED;
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

/*
 * conn_group.c: all connections of a loop: their list, their shared read buffer, and when each may
 * send.
 *
 * A connection with work calls agx_conn_group_mark(). Twice in each turn of the loop, before it
 * sleeps and after its reads, agx_conn_turn() runs once for each marked connection: data queued by
 * several callbacks leaves with one send().
 *
 * Invariants:
 *  (1) n_open counts the group's handles and connections; the last one frees the group;
 *  (2) while there are connections, `prepare` keeps the loop running;
 *  (3) the loop does not sleep while a connection is marked.
 */
#include "loop/conn_internal.h"

#include "loop/loop.h"

#include "base/banned.h"

void agx_conn_group_released(struct agx_conn_group *g)
{
    if (--g->n_open > 0)
        return;
    free(g->scratch);
    free(g);
}

void agx_conn_group_mark(struct agx_conn *c)
{
    if (!agx_list_has(&c->dirty) && c->state != CONN_CLOSED)
        agx_list_push_front(&c->group->dirty, &c->dirty);
}

void agx_conn_group_add(struct agx_conn *c)
{
    struct agx_conn_group *g = c->group;

    agx_list_push_front(&g->all, &c->node);
    if (g->count++ == 0)
        uv_ref((uv_handle_t *)&g->prepare); /* a connection keeps the loop running, even paused */
    g->n_open++;
}

void agx_conn_group_remove(struct agx_conn *c)
{
    struct agx_conn_group *g = c->group;

    agx_list_remove(&c->node);
    agx_list_remove(&c->dirty);
    if (--g->count == 0)
        uv_unref((uv_handle_t *)&g->prepare);
}

/* Runs each marked connection once. A connection that marks itself again meanwhile waits for the
 * next pass, so that this one ends. */
static void flush_dirty(struct agx_conn_group *g)
{
    struct agx_list pass = { 0 };
    struct agx_conn *c;

    agx_list_move(&pass, &g->dirty);
    while ((c = AGX_LIST_TAKE(&pass, struct agx_conn, dirty)))
        agx_conn_turn(c);
}

static void on_again(uv_idle_t *h)
{
    (void)h;
}

/* drained() and data() may queue more each time: then the loop turns once without sleeping, so that
 * other connections get their turn. */
static void on_prepare(uv_prepare_t *h)
{
    struct agx_conn_group *g = container_of(h, struct agx_conn_group, prepare);

    flush_dirty(g);
    if (!agx_list_is_empty(&g->dirty))
        flush_dirty(g);
    if (!agx_list_is_empty(&g->dirty))
        (void)uv_idle_start(&g->again, on_again);
    else
        (void)uv_idle_stop(&g->again);
}

static void on_check(uv_check_t *h)
{
    flush_dirty(container_of(h, struct agx_conn_group, check));
}

int agx_conn_group_open(struct agx_loop *l, const struct agx_conn_config *config,
                        struct agx_conn_group **ret_group, struct agx_error **err)
{
    struct agx_conn_group *g = calloc(1, sizeof(*g));

    if (g)
        g->scratch = malloc(config->read_bytes);
    if (!g || !g->scratch) {
        free(g);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for connections");
    }
    g->loop = l;
    g->config = *config;
    (void)uv_prepare_init(agx_loop_uv(l), &g->prepare);
    (void)uv_check_init(agx_loop_uv(l), &g->check);
    (void)uv_idle_init(agx_loop_uv(l), &g->again);
    (void)uv_prepare_start(&g->prepare, on_prepare);
    (void)uv_check_start(&g->check, on_check);
    uv_unref((uv_handle_t *)&g->prepare);
    uv_unref((uv_handle_t *)&g->check);
    g->n_open = 3;
    *ret_group = g;
    return 0;
}

static void on_prepare_closed(uv_handle_t *h)
{
    agx_conn_group_released(container_of(h, struct agx_conn_group, prepare));
}

static void on_check_closed(uv_handle_t *h)
{
    agx_conn_group_released(container_of(h, struct agx_conn_group, check));
}

static void on_again_closed(uv_handle_t *h)
{
    agx_conn_group_released(container_of(h, struct agx_conn_group, again));
}

struct agx_conn_group *agx_conn_group_close(struct agx_conn_group *g)
{
    if (!g)
        return NULL;
    AGX_LIST_FOR_EACH (struct agx_conn, c, &g->all, node)
        agx_conn_abort(c, NULL);
    uv_close((uv_handle_t *)&g->prepare, on_prepare_closed);
    uv_close((uv_handle_t *)&g->check, on_check_closed);
    uv_close((uv_handle_t *)&g->again, on_again_closed);
    return NULL;
}

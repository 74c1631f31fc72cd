/*
 * docker.c: the backend object: open, close, and the calls that are not operations.
 *
 * Invariant: whatever runs on the loop for this object (operations, init clients, the firewall)
 * counts in `n_open`; a closed backend is freed by the last of them.
 */
#include "backend/docker/docker_internal.h"

#include "backend/docker/egress_dns.h"
#include "backend/docker/post_start.h"
#include "backend/docker/spare_networks.h"
#include "backend/owner.h"
#include "base/log.h"
#include "base/mem.h"

#include <linux/capability.h>
#include <sys/syscall.h>

#include "base/banned.h"

/* ---- what the engine tells by itself ---- */

static void on_events_up(void *user)
{
    struct agx_docker *d = user;

    agx_docker_firewall_sync(d);
    if (!d->firewall)
        agx_docker_spare_networks_begin(d);
    agx_docker_info_ask(d);
    if (!d->post_starts_restored)
        agx_docker_post_start_restore(d);
    d->post_starts_restored = true;
    if (d->was_away && d->base.news)
        d->base.news(d->base.news_user, NULL);
    d->was_away = false;
}

static void on_events_down(void *user, struct agx_error *error)
{
    struct agx_docker *d = user;

    AGX_LOG(AGX_LOG_DEBUG, "docker.away", AGX_F_ERR(error));
    agx_error_free(error);
    d->was_away = true;
}

static void on_event(void *user, const struct agx_docker_event *ev)
{
    struct agx_docker *d = user;
    const char *id = agx_docker_event_get(ev, AGX_DOCKER_LABEL_SANDBOX);
    struct agx_docker_box *box = id ? agx_docker_box_find(d, id) : NULL;

    if (box && ev->what == AGX_DOCKER_DIE)
        agx_docker_box_doubt(box);
    if (id && d->base.news && agx_ident_check("sandbox_id", agx_str_from(id), NULL) == 0)
        d->base.news(d->base.news_user, id);
}

static const struct agx_docker_events_ops events_ops = { on_events_up, on_events_down, on_event };

/* ---- commands: the init client of their sandbox ---- */

/* Its box, whose init is known or being looked for. */
static int reached(struct agx_backend *b, const char *sandbox_id, struct agx_docker_box **ret_box,
                   struct agx_error **err)
{
    int r = agx_docker_box_get(agx_docker_of(b), sandbox_id, ret_box, err);

    if (r == 0)
        agx_docker_box_reach(*ret_box);
    return r;
}

static int docker_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                             const struct agx_backend_exec_hooks *hooks, void *user,
                             struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_docker_box *box;
    int r = reached(b, q->sandbox->id, &box, err);

    return r < 0 ? r
                 : agx_init_client_exec_start(box->init_client, q, adopt, hooks, user, ret_op, err);
}

static int docker_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            uint64_t grace_ms, agx_done_fn gone, void *user,
                            struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_docker_box *box;
    int r = reached(b, sandbox_id, &box, err);

    return r < 0
               ? r
               : agx_init_client_kill(box->init_client, exec_id, grace_ms, gone, user, ret_op, err);
}

static int docker_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                             struct agx_str data, bool eof, agx_done_fn taken, void *user,
                             struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_docker_box *box;
    int r = reached(b, sandbox_id, &box, err);

    return r < 0 ? r
                 : agx_init_client_write(box->init_client, exec_id, data, eof, taken, user, ret_op,
                                         err);
}

/* Where no init is known, none remembers the exec, or the next one is told. */
static int docker_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                              struct agx_error **err)
{
    const struct agx_docker_box *box = agx_docker_box_find(agx_docker_of(b), sandbox_id);

    return box ? agx_init_client_forget(box->init_client, exec_id, err) : 0;
}

/* ---- close ---- */

static void docker_free(struct agx_docker *d)
{
    void *value;

    for (size_t at = 0; agx_map_next(&d->boxes, &at, NULL, &value);)
        agx_docker_box_free(value);
    agx_map_done(&d->boxes);
    agx_host_view_host_done(&d->host);
    free(d->init_path);
    free(d->state_dir);
    free(d);
}

void agx_docker_released(struct agx_docker *d)
{
    agx_done_fn closed = d->closed;
    void *user = d->closed_user;

    if (--d->n_open > 0)
        return;
    docker_free(d);
    if (closed)
        closed(user, NULL);
}

static void on_part_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    agx_docker_released(user);
}

static void close_pool(struct agx_docker *d, struct agx_pool *pool)
{
    if (!pool)
        return;
    d->n_open++;
    agx_pool_stop(pool, AGX_DOCKER_POOL_STOP_MS, on_part_closed, d);
}

static void on_posted(void *user)
{
    agx_docker_released(user);
}

static void docker_close(struct agx_backend *b, agx_done_fn closed, void *user)
{
    struct agx_docker *d = agx_docker_of(b);
    void *value;

    d->closed = closed;
    d->closed_user = user;
    for (struct agx_op *op = d->operations.first; op; op = op->next)
        agx_op_abort(op);
    for (size_t at = 0; agx_map_next(&d->boxes, &at, NULL, &value);)
        agx_docker_box_close(value);
    d->events = agx_docker_events_close(d->events);
    d->puller = agx_docker_puller_close(d->puller);
    d->engine = agx_docker_engine_close(d->engine);
    agx_docker_egress_dns_stop_all(d);
    if (d->resolver) {
        d->n_open++;
        agx_resolver_close(d->resolver, on_part_closed, d);
    }
    if (d->firewall) {
        d->n_open++;
        agx_firewall_close(d->firewall, on_part_closed, d);
    }
    close_pool(d, d->host.pool);
    close_pool(d, d->copies_pool);
    if (agx_loop_post(b->loop, on_posted, d) < 0) /* never inside this call */
        abort();
}

static void op_begun(struct agx_op_group *g)
{
    container_of(g, struct agx_docker, operations)->n_open++;
}

static void op_gone(struct agx_op_group *g)
{
    agx_docker_released(container_of(g, struct agx_docker, operations));
}

static const struct agx_backend_ops docker_ops = {
    .name = "docker",
    .start = agx_docker_op_start,
    .look = agx_docker_look,
    .exec_start = docker_exec_start,
    .exec_kill = docker_exec_kill,
    .exec_write = docker_exec_write,
    .forget_exec = docker_forget_exec,
    .use = agx_docker_usage,
    .check = agx_docker_check,
    .close = docker_close,
};

/* ---- open ---- */

/* May we trace every process of this machine? */
static bool may_trace(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };

    return syscall(SYS_capget, &head, data) == 0 &&
           (data[CAP_SYS_PTRACE / 32].effective & (1U << (CAP_SYS_PTRACE % 32)));
}

static void choose_control(struct agx_docker *d, enum agx_docker_control want, bool local)
{
    d->control = want;
    if (want == AGX_DOCKER_CONTROL_AUTO)
        d->control = !local        ? AGX_DOCKER_CONTROL_ENGINE
                     : may_trace() ? AGX_DOCKER_CONTROL_PIDFD
                                   : AGX_DOCKER_CONTROL_STDIO;
}

/* For example, another firewall was reloaded. What could not be restored is tried again
 * automatically. */
static void on_firewall_restored(void *user, struct agx_error *error)
{
    (void)user;
    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.firewall_lost", AGX_F_ERR(error));
    else
        AGX_LOG(AGX_LOG_DEBUG, "docker.firewall_restored");
    agx_error_free(error);
}

static int open_firewall(struct agx_docker *d, const struct agx_docker_config *c, bool local,
                         struct agx_error **err)
{
    const struct agx_firewall_config firewall = { .instance = d->instance,
                                                  .lan_blocked = c->common.lan_blocked,
                                                  .restored = on_firewall_restored };
    int r;

    if (c->isolation == AGX_DOCKER_ISOLATION_OFF)
        return 0;
    d->cannot_isolate = !local;
    if (!local)
        return 0; /* sandboxes without a network need no rules; others are refused */
    r = agx_firewall_allowed(err);
    if (r == 0)
        r = agx_firewall_open(d->base.loop, &firewall, &d->firewall, err);
    return r < 0 ? r : agx_resolver_open(d->base.loop, NULL, &d->resolver, err);
}

static int open_engine(struct agx_docker *d, const struct agx_docker_config *c,
                       const struct agx_engine_endpoint *endpoint, struct agx_error **err)
{
    struct agx_docker_engine_config engine = AGX_DOCKER_ENGINE_CONFIG_INIT;
    struct agx_docker_puller_config puller = AGX_DOCKER_PULLER_CONFIG_INIT;
    struct agx_docker_events_config events = AGX_DOCKER_EVENTS_CONFIG_INIT;
    char label[sizeof(AGX_DOCKER_LABEL_INSTANCE) + 1 + AGX_UUID_TEXT_SIZE];
    int r;

    engine.endpoint = endpoint;
    if (c->env.api_version && *c->env.api_version)
        engine.api_version = c->env.api_version;
    puller.env = &c->env;
    (void)snprintf(label, sizeof(label), "%s=%s", AGX_DOCKER_LABEL_INSTANCE, d->instance);
    events.label = label;
    r = agx_docker_engine_open(d->base.loop, &engine, &d->engine, err);
    if (r == 0)
        r = agx_docker_puller_open(d->engine, &puller, &d->puller, err);
    if (r == 0)
        r = agx_docker_events_open(d->engine, &events, &events_ops, d, &d->events, err);
    return r;
}

static int open_pool(struct agx_docker *d, const struct agx_docker_config *c,
                     struct agx_error **err)
{
    struct agx_subnet pool;
    uint64_t start;
    int r;

    if (!c->pool)
        return 0;
    if ((r = agx_subnet_parse(agx_str_from(c->pool), &pool, err)) < 0 ||
        (r = agx_random_bytes(&start, sizeof(start), err)) < 0)
        return r;
    d->has_pool = true;
    if (!c->common.compat) /* there a network has the name that its sandbox gives it */
        d->networks_ready = c->networks_ready;
    return agx_subnets_init(&d->subnets, &pool, c->pool_prefix, start, err);
}

/* What reading the host needs, and its threads. */
static int open_host(struct agx_docker *d, const struct agx_docker_config *c,
                     struct agx_error **err)
{
    const struct agx_pool_config host = { "docker-host", AGX_DOCKER_HOST_THREADS,
                                          AGX_DOCKER_POOL_QUEUE };
    const struct agx_pool_config copies = { "docker-copies", AGX_DOCKER_COPY_THREADS,
                                            AGX_DOCKER_POOL_QUEUE };
    int r;

    r = agx_host_view_host_init(&d->host, &c->common.tools, c->common.sources, err);
    if (r == 0)
        r = agx_pool_open(d->base.loop, &host, &d->host.pool, err);
    if (r == 0)
        r = agx_pool_open(d->base.loop, &copies, &d->copies_pool, err);
    return r;
}

static int open_all(struct agx_docker *d, const struct agx_docker_config *c, struct agx_error **err)
{
    _cleanup_(agx_engine_endpoint_done) struct agx_engine_endpoint endpoint = { 0 };
    struct agx_siphash_key seed;
    int r;

    if ((r = agx_random_bytes(&seed, sizeof(seed), err)) < 0 ||
        (r = agx_engine_endpoint_find(c->target, &c->env, &endpoint, err)) < 0)
        return r;
    agx_map_init(&d->boxes, seed);
    agx_map_init(&d->egress_dns, seed);
    choose_control(d, c->control, endpoint.is_local);
    if ((r = agx_text_set(&d->init_path, c->init_path, err)) < 0 ||
        (r = agx_text_set(&d->state_dir, c->state_dir, err)) < 0 ||
        (r = agx_owner_read(c->state_dir, d->instance, err)) < 0 ||
        (r = open_pool(d, c, err)) < 0 || (r = open_host(d, c, err)) < 0 ||
        (r = open_firewall(d, c, endpoint.is_local, err)) < 0)
        return r;
    return open_engine(d, c, &endpoint, err);
}

int agx_backend_docker_open(struct agx_loop *l, const struct agx_docker_config *c,
                            struct agx_backend **ret_backend, struct agx_error **err)
{
    struct agx_docker *d = agx_new(struct agx_docker);
    int r;

    agx_loop_assert(l);
    d->base = (struct agx_backend){ .ops = &docker_ops, .loop = l };
    d->operations = (struct agx_op_group){
        .loop = l, .begun = op_begun, .gone = op_gone, .end_rest = agx_docker_ask_end
    };
    d->maker = (struct agx_docker_maker){ .instance = d->instance, .compat = c->common.compat };
    d->pids = c->pids;
    d->host_uid = c->common.host_uid;
    d->host_gid = c->common.host_gid;
    d->n_open = 1;
    r = open_all(d, c, err);
    if (r < 0) {
        d->base.closing = true;
        docker_close(&d->base, NULL, NULL);
        return r;
    }
    *ret_backend = &d->base;
    return 0;
}

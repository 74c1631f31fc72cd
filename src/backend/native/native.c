/*
 * native.c: the backend object: open, close, and the calls that are not operations.
 *
 * Invariant: whatever runs on the loop for this object (operations, init clients, handles, pools,
 * the nssets) counts in `n_open`; a closed backend is freed by the last of them.
 */
#include "backend/native/native_internal.h"

#include "backend/native/limits/seccomp.h"
#include "backend/net/firewall.h"
#include "backend/owner.h"
#include "base/log.h"
#include "base/mem.h"

#include <limits.h>
#include <stdio.h>

#include "base/banned.h"

/* ---- commands: the init client of their sandbox ---- */

static int native_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                             const struct agx_backend_exec_hooks *hooks, void *user,
                             struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_native_box *box;
    int r = agx_native_box_get(agx_native_of(b), q->sandbox->id, &box, err);

    return r < 0 ? r
                 : agx_init_client_exec_start(box->init_client, q, adopt, hooks, user, ret_op, err);
}

static int native_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            uint64_t grace_ms, agx_done_fn gone, void *user,
                            struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_native_box *box;
    int r = agx_native_box_get(agx_native_of(b), sandbox_id, &box, err);

    return r < 0
               ? r
               : agx_init_client_kill(box->init_client, exec_id, grace_ms, gone, user, ret_op, err);
}

static int native_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                             struct agx_str data, bool eof, agx_done_fn taken, void *user,
                             struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct agx_native_box *box;
    int r = agx_native_box_get(agx_native_of(b), sandbox_id, &box, err);

    return r < 0 ? r
                 : agx_init_client_write(box->init_client, exec_id, data, eof, taken, user, ret_op,
                                         err);
}

static int native_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                              struct agx_error **err)
{
    const struct agx_native_box *box = agx_native_box_find(agx_native_of(b), sandbox_id);

    return box ? agx_init_client_forget(box->init_client, exec_id, err) : 0;
}

/* ---- the trash ---- */

struct trash_job {
    struct agx_job job;
    struct agx_native *native;
    struct agx_boxdirs dirs; /* its own descriptors: the thread may outlive the backend */
};

static int run_trash(struct agx_job *j, struct agx_error **err)
{
    return agx_boxdirs_empty_trash(&container_of(j, struct trash_job, job)->dirs, err);
}

static void trash_done(struct agx_job *j, struct agx_error *error)
{
    struct trash_job *x = container_of(j, struct trash_job, job);
    struct agx_native *n = x->native;

    if (error && error->code != AGX_CANCELLED)
        AGX_LOG(AGX_LOG_WARN, "native.trash_stays", AGX_F_ERR(error), AGX_F_BOOL("ignored", true));
    agx_error_free(error);
    agx_boxdirs_close(&x->dirs);
    free(x);
    n->trash_runs = false;
    if (n->trash_is_full && !n->base.closing)
        agx_native_empty_trash(n);
}

static const struct agx_job_kind trash_kind = { .name = "trash",
                                                .run = run_trash,
                                                .done = trash_done };

/* What could not be removed is tried again next time. */
void agx_native_empty_trash(struct agx_native *n)
{
    struct trash_job *x;

    n->trash_is_full = true;
    if (n->trash_runs)
        return;
    x = agx_new(struct trash_job);
    x->job.kind = &trash_kind;
    x->native = n;
    n->trash_is_full = false;
    if (agx_boxdirs_open(&x->dirs, n->dir, NULL) < 0 ||
        agx_job_start(&x->job, n->trash_pool, NULL) < 0) {
        agx_boxdirs_close(&x->dirs);
        free(x);
        return;
    }
    n->trash_runs = true;
}

/* ---- close ---- */

static void native_free(struct agx_native *n)
{
    void *value;

    for (size_t at = 0; agx_map_next(&n->boxes, &at, NULL, &value);)
        agx_native_box_free(value);
    agx_map_done(&n->boxes);
    n->cgroups = agx_cgroups_close(n->cgroups);
    n->devices = agx_devices_close(n->devices);
    agx_boxdirs_close(&n->dirs);
    agx_host_view_host_done(&n->host);
    agx_buf_done(&n->seccomp);
    agx_error_free(n->unfirewalled);
    free(n->dir);
    free(n->ground);
    free(n->init_path);
    free(n->unpack_path);
    free(n->forward_path);
    free(n);
}

void agx_native_released(struct agx_native *n)
{
    agx_done_fn closed = n->closed;
    void *user = n->closed_user;

    if (--n->n_open > 0)
        return;
    native_free(n);
    if (closed)
        closed(user, NULL);
}

void agx_native_on_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    agx_native_released(user);
}

static void close_pool(struct agx_native *n, struct agx_pool *pool)
{
    if (!pool)
        return;
    n->n_open++;
    agx_pool_stop(pool, AGX_NATIVE_POOL_STOP_MS, agx_native_on_closed, n);
}

static void on_posted(void *user)
{
    agx_native_released(user);
}

static bool anything_runs(const struct agx_native *n)
{
    void *value;

    for (size_t at = 0; agx_map_next(&n->boxes, &at, NULL, &value);) {
        const struct agx_native_box *box = value;

        for (size_t i = 0; i < box->state.n_parts; i++) {
            if (agx_native_part_runs(box, i))
                return true;
        }
    }
    return false;
}

static void native_close(struct agx_backend *b, agx_done_fn closed, void *user)
{
    struct agx_native *n = agx_native_of(b);
    void *value;

    if (n->rootless && n->loaded) /* nothing was started before */
        n->rootless->empty = !anything_runs(n);
    n->closed = closed;
    n->closed_user = user;
    for (struct agx_op *op = n->operations.first; op; op = op->next)
        agx_op_abort(op);
    for (size_t at = 0; agx_map_next(&n->boxes, &at, NULL, &value);)
        agx_native_box_close(value);
    if (n->nssets) {
        n->n_open++;
        agx_nsset_pool_close(AGX_TAKE_PTR(n->nssets), agx_native_on_closed, n);
    }
    if (n->pasta) {
        n->n_open++;
        agx_pasta_close(AGX_TAKE_PTR(n->pasta), agx_native_on_closed, n);
    }
    if (n->resolver) {
        n->n_open++;
        agx_resolver_close(n->resolver, agx_native_on_closed, n);
    }
    close_pool(n, n->host.pool);
    close_pool(n, n->copies_pool);
    close_pool(n, n->disk_pool);
    close_pool(n, n->usage_pool);
    close_pool(n, n->trash_pool);
    if (agx_loop_post(b->loop, on_posted, n) < 0) /* never inside this call */
        abort();
}

static const struct agx_backend_ops native_ops = {
    .name = "native",
    .start = agx_native_op_start,
    .look = agx_native_look,
    .exec_start = native_exec_start,
    .exec_kill = native_exec_kill,
    .exec_write = native_exec_write,
    .forget_exec = native_forget_exec,
    .use = agx_native_usage,
    .check = agx_native_check,
    .close = native_close,
};

/* ---- open ---- */

static void op_begun(struct agx_op_group *g)
{
    container_of(g, struct agx_native, operations)->n_open++;
}

static void op_gone(struct agx_op_group *g)
{
    agx_native_released(container_of(g, struct agx_native, operations));
}

static void on_notice(void *user, const char *text)
{
    (void)user;
    AGX_LOG(AGX_LOG_INFO, "native.notice", AGX_F_STR("msg", text));
}

static int open_pools(struct agx_native *n, struct agx_error **err)
{
    static const struct agx_pool_config host = { "native-host", AGX_NATIVE_HOST_THREADS,
                                                 AGX_NATIVE_POOL_QUEUE };
    static const struct agx_pool_config copies = { "native-copies", AGX_NATIVE_COPY_THREADS,
                                                   AGX_NATIVE_POOL_QUEUE };
    static const struct agx_pool_config disk = { "native-disk", AGX_NATIVE_DISK_THREADS,
                                                 AGX_NATIVE_POOL_QUEUE };
    static const struct agx_pool_config use = { "native-use", AGX_NATIVE_USAGE_THREADS,
                                                AGX_NATIVE_USAGE_QUEUE };
    static const struct agx_pool_config trash = { "native-trash", 1, 1 };
    struct agx_loop *l = n->base.loop;
    int r;

    if ((r = agx_pool_open(l, &host, &n->host.pool, err)) < 0 ||
        (r = agx_pool_open(l, &copies, &n->copies_pool, err)) < 0 ||
        (r = agx_pool_open(l, &disk, &n->disk_pool, err)) < 0 ||
        (r = agx_pool_open(l, &use, &n->usage_pool, err)) < 0)
        return r;
    return agx_pool_open(l, &trash, &n->trash_pool, err);
}

static int open_dirs(struct agx_native *n, const struct agx_native_config *c,
                     struct agx_error **err)
{
    char path[PATH_MAX];
    int r;

    if ((r = agx_owner_read(c->data_dir, n->instance, err)) < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/native", c->data_dir);
    if ((r = agx_text_set(&n->dir, path, err)) < 0 ||
        (r = agx_boxdirs_open(&n->dirs, path, err)) < 0)
        return r;
    if (!n->rootless) {
        if ((r = agx_boxdirs_ground(n->dir, err)) < 0)
            return r;
        (void)snprintf(path, sizeof(path), "%s/" AGX_BOXDIRS_GROUND, n->dir);
        if ((r = agx_text_set(&n->ground, path, err)) < 0)
            return r;
    }
    if (n->rootless)
        agx_disk_none(&n->disk, "an ordinary user has neither quotas nor loop devices");
    else
        agx_disk_probe(n->dirs.boxes_fd, &n->disk);
    (void)snprintf(path, sizeof(path), "%s/dev", c->run_dir);
    return agx_devices_open(path, n->rootless != NULL, &n->devices, err);
}

static struct agx_idmap idmap_of(const struct agx_native *n)
{
    return n->rootless ? n->rootless->idmap : (struct agx_idmap){ 0 };
}

static int open_pasta(struct agx_native *n, struct agx_error **err)
{
    const struct agx_pasta_config config = { .init_path = n->init_path,
                                             .net_fd = n->rootless->net_fd,
                                             .dir_fd = n->rootless->dir_fd };

    return agx_pasta_open(n->base.loop, &config, &n->pasta, err);
}

/* An ordinary user without delegated cgroups runs without them. */
static int open_cgroups(struct agx_native *n, struct agx_error **err)
{
    const struct agx_cgroups_config config = { .instance = n->instance };
    struct agx_error *why = NULL;
    char text[512];
    int r = agx_cgroups_open(&config, &n->cgroups, &why);

    if (r == 0)
        return 0;
    if (!n->rootless) {
        agx_error_propagate(err, &why);
        return r;
    }
    AGX_LOG(AGX_LOG_WARN, "native.no_limits",
            AGX_F_STR("msg", "sandboxes run without limits of cpu, memory and processes"),
            AGX_F_STR("why", agx_error_format(why, text, sizeof(text))));
    agx_error_free(why);
    return agx_cgroups_open_none(&n->cgroups, err);
}

static int open_kernel(struct agx_native *n, const struct agx_native_config *c,
                       struct agx_error **err)
{
    struct agx_nsset_pool_config nssets = { .init_path = c->init_path,
                                            .instance = n->instance,
                                            .id_base = c->id_base,
                                            .id_ranges = AGX_NSSET_RANGES,
                                            .ready = c->ready,
                                            .lan_blocked = c->common.lan_blocked,
                                            .idmap = idmap_of(n),
                                            .net_fd = n->rootless ? n->rootless->net_fd : 0,
                                            .notice = on_notice };
    int r;

    n->seccomp = (struct agx_buf)AGX_BUF_INIT(AGX_SECCOMP_BYTES_MAX);
    if ((r = agx_firewall_allowed(err)) < 0 ||
        (r = agx_subnet_parse(agx_str_from(c->pool), &nssets.pool, err)) < 0 ||
        (r = agx_seccomp_compile(&n->seccomp, err)) < 0 || (r = open_cgroups(n, err)) < 0)
        return r;
    if (n->rootless && (r = open_pasta(n, err)) < 0)
        return r;
    r = agx_resolver_open(n->base.loop, NULL, &n->resolver, err);
    return r < 0 ? r : agx_nsset_pool_open(n->base.loop, &nssets, &n->nssets, err);
}

static int open_all(struct agx_native *n, const struct agx_native_config *c, struct agx_error **err)
{
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    agx_map_init(&n->boxes, seed);
    if ((r = agx_text_set(&n->init_path, c->init_path, err)) < 0 ||
        (r = agx_text_set(&n->unpack_path, c->unpack_path, err)) < 0 ||
        (r = agx_text_set(&n->forward_path, c->forward_path, err)) < 0 ||
        (r = agx_host_view_host_init(&n->host, &c->common.tools, c->common.sources, err)) < 0 ||
        (r = open_dirs(n, c, err)) < 0 || (r = open_kernel(n, c, err)) < 0)
        return r;
    return open_pools(n, err);
}

int agx_backend_native_open(struct agx_loop *l, const struct agx_native_config *c,
                            struct agx_backend **ret_backend, struct agx_error **err)
{
    struct agx_native *n = agx_new(struct agx_native);
    int r;

    agx_loop_assert(l);
    n->base = (struct agx_backend){ .ops = &native_ops, .loop = l };
    n->operations = (struct agx_op_group){ .loop = l, .begun = op_begun, .gone = op_gone };
    n->dirs = (struct agx_boxdirs){ -1, -1 };
    n->images = c->images;
    n->puller = c->puller;
    n->compat = c->common.compat;
    n->rootless = c->rootless;
    n->pids = c->pids;
    n->host_uid = c->common.host_uid;
    n->host_gid = c->common.host_gid;
    n->n_open = 1;
    r = open_all(n, c, err);
    if (r < 0) {
        n->base.closing = true;
        native_close(&n->base, NULL, NULL);
        return r;
    }
    agx_native_load(n);
    agx_native_empty_trash(n);
    *ret_backend = &n->base;
    return 0;
}

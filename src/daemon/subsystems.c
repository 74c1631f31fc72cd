/*
 * subsystems.c: the subsystems, their order, and how they close.
 *
 * Closing is asynchronous, one by one: close_next() closes the topmost open subsystem and is
 * called again when that is done. A start that failed halfway ends the same way, so there is one
 * order and one path through it.
 */
#include "daemon/subsystems.h"

#include "backend/files/sources.h"
#include "backend/target.h"
#include "base/banned.h"
#include "daemon/daemon.h"
#include "daemon/dirs.h"
#include "daemon/image_setup.h"
#include "daemon/manager/schema.h"
#include "daemon/manager/writables_store.h"
#include "daemon/service/service.h"
#include "daemon/sockets.h"
#include "grpc/health.h"
#include "grpc/reflection.h"
#include "wire/api.h"
#include "wire/method.h"

#define AGBOX_HOME "/home/agbox" /* home of the user in agents-sandbox's images */

/* Call before any thread exists: it may fork. */
static int open_store(struct agx_subsystems *p, struct agx_error **err)
{
    struct agx_store_lmdb_config c = p->o->config->store;

    c.dir = p->o->layout->store_dir;
    return agx_store_lmdb_open(p->loop, &c, &agx_schema_layout, &p->store, err);
}

/* Lists the paths that no sandbox may mount: our sockets, our data, the Docker Engine's socket.
 * Returns the number of entries written to `out`. */
static size_t list_private(const struct agx_daemon_options *o,
                           const char *out[AGX_SUBSYSTEMS_PRIVATE_MAX])
{
    const struct agx_file_layout_agbox *agbox = o->agbox;
    const struct agx_file_layout *layout = o->layout;
    size_t n = 0;

    out[n++] = layout->run_dir_ours ? layout->run_dir : layout->socket;
    out[n++] = layout->data_dir;
    if (agbox) {
        out[n++] = agbox->run_dir;
        out[n++] = agbox->exec_log_dir;
    }
    if (o->docker->engine_socket)
        out[n++] = o->docker->engine_socket;
    return n;
}

/* Opens the host paths that sandboxes use; those of the past are in the store. */
static int open_sources(struct agx_subsystems *p, struct agx_error **err)
{
    const char *private_paths[AGX_SUBSYSTEMS_PRIVATE_MAX];
    const struct agx_sources_config c = { .private_paths = private_paths,
                                          .n_private_paths = list_private(p->o, private_paths),
                                          .mapped = p->rootless->idmap.on };
    int r = agx_sources_new(&c, &p->sources, err);

    return r < 0 ? r : agx_writables_store_open(agx_sources_writables(p->sources), p->store, err);
}

static int open_images(struct agx_subsystems *p, struct agx_error **err)
{
    const struct agx_file_layout *layout = p->o->layout;
    const struct agx_image_setup setup = { p->o->config, p->o->docker_env,
                                           p->rootless->idmap.on ? layout->shifted_images_dir
                                                                 : layout->images_dir,
                                           p->rootless->idmap };
    int r = agx_image_setup_store(p->loop, &setup, &p->images, err);

    return r < 0 ? r : agx_image_setup_puller(p->loop, &setup, p->images, &p->puller, err);
}

static const char *sandbox_home(const struct agx_subsystems *p)
{
    return p->o->agbox ? AGBOX_HOME : "/root";
}

static int open_backend(struct agx_subsystems *p, struct agx_error **err)
{
    struct agx_backend_config common = *p->o->backend;
    struct agx_docker_config docker = p->o->docker->config;
    struct agx_native_config native = p->o->native->config;
    const struct agx_backend_setup setup = { .docker = p->o->docker->used ? &docker : NULL,
                                             .native = p->o->native->used ? &native : NULL };
    int r;

    common.tools.sandbox_home = sandbox_home(p);
    common.sources = p->sources;
    docker.common = native.common = common;
    native.common.tools.layers = true;
    docker.state_dir = p->o->layout->data_dir;
    native.rootless = p->o->native->rootless ? p->rootless : NULL;
    native.data_dir = p->o->layout->data_dir;
    native.run_dir = p->o->layout->run_dir;
    native.images = p->images;
    native.puller = p->puller;
    r = agx_backend_open(p->loop, p->o->backends, p->o->config->backend, &setup, &p->backend, err);
    return agx_native_setup_wrap(p->o->native, r, err);
}

static int open_manager(struct agx_subsystems *p, struct agx_error **err)
{
    struct agx_manager_config c = p->o->config->manager;
    int r;

    c.store = p->store;
    c.backend = p->backend;
    c.settle_ms = p->o->agbox ? AGX_AGBOX_SETTLE_MS : 0;
    c.log_root = p->o->agbox ? p->o->agbox->exec_log_dir : p->o->layout->exec_log_dir;
    c.host.home = p->o->home;
    c.host.sandbox_home = sandbox_home(p);
    c.sources = p->sources;
    c.host.whole_tools = p->o->agbox != NULL;
    c.host.any_companion_names = p->o->agbox != NULL;
    r = agx_dirs_own(c.log_root, 0700, err);
    return r < 0 ? r : agx_manager_open(p->loop, &c, &p->manager, err);
}

static int open_server(struct agx_subsystems *p, struct agx_error **err)
{
    struct agx_grpc_config c = p->o->config->rpc;
    struct agx_config_uids *uids = (struct agx_config_uids *)&p->o->config->allow_uids;
    int r;

    c.conns_max = agx_sockets_fit(c.conns_max);
    c.admit = agx_sockets_admit;
    c.user = uids;
    r = agx_grpc_server_open(p->loop, &c, &p->rpc, err);
    if (r == 0)
        r = agx_grpc_health_new(p->rpc, &p->health, err);
    if (r == 0)
        r = agx_grpc_reflection_new(p->rpc, &p->reflection, err);
    return r < 0 ? r : agx_grpc_reflection_add(p->reflection, agx_api_descriptor_set(), err);
}

static int open_methods(struct agx_subsystems *p, struct agx_error **err)
{
    struct agx_service_config c = AGX_SERVICE_CONFIG_INIT;

    c.loop = p->loop;
    c.manager = p->manager;
    c.store = p->store;
    c.images = p->images;
    c.puller = p->puller;
    c.server = p->rpc;
    c.version = AGX_VERSION;
    c.name = p->o->agbox ? "agboxd" : "agentixd";
    c.backend = p->backend->ops->name;
    c.data_dir = p->o->layout->data_dir;
    c.compat = p->o->agbox != NULL;
    c.subscribers_per_uid = p->o->config->subscribers_per_uid;
    return agx_service_open(&c, &p->service, err);
}

int agx_subsystems_open(struct agx_subsystems *p, struct agx_loop *l,
                        const struct agx_daemon_options *o, struct agx_rootless *rootless,
                        struct agx_error **err)
{
    int r;

    p->loop = l;
    p->o = o;
    p->rootless = rootless;
    r = open_store(p, err);
    if (r == 0)
        r = open_sources(p, err);
    if (r == 0)
        r = open_images(p, err);
    if (r == 0)
        r = open_backend(p, err);
    if (r == 0)
        r = open_manager(p, err);
    if (r == 0)
        r = open_server(p, err);
    return r < 0 ? r : open_methods(p, err);
}

/* Sets it for the whole server and for each service by name. */
int agx_subsystems_set_serving(struct agx_subsystems *p, bool serving, struct agx_error **err)
{
    static const char *const names[] = { "", AGX_SERVICE_SANDBOX, AGX_SERVICE_CONTROL,
                                         AGX_SERVICE_IMAGE };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(names); i++)
        r = agx_grpc_health_set(p->health, agx_str_from(names[i]), serving, err);
    return r;
}

/* ---- close ---- */

static void close_next(struct agx_subsystems *p);

/* `part` is closed; logs its error, if any. */
static void part_closed(struct agx_subsystems *p, const char *part, struct agx_error *error)
{
    if (error)
        AGX_LOG(AGX_LOG_WARN, "daemon.close_failed", AGX_F_STR("part", part), AGX_F_ERR(error),
                AGX_F_BOOL("ignored", true));
    agx_error_free(error);
    close_next(p);
}

static void on_rpc_stopped(void *user, struct agx_error *error)
{
    struct agx_subsystems *p = user;

    p->rpc = NULL;
    p->health = agx_grpc_health_free(p->health);
    p->reflection = agx_grpc_reflection_free(p->reflection);
    part_closed(p, "server", error);
}

static void on_manager_closed(void *user, struct agx_error *error)
{
    ((struct agx_subsystems *)user)->manager = NULL;
    part_closed(user, "engine", error);
}

static void on_backend_closed(void *user, struct agx_error *error)
{
    ((struct agx_subsystems *)user)->backend = NULL;
    part_closed(user, "backend", error);
}

static void on_images_stopped(void *user, struct agx_error *error)
{
    ((struct agx_subsystems *)user)->images = NULL;
    part_closed(user, "images", error);
}

static void close_images(struct agx_subsystems *p)
{
    p->puller = agx_puller_close(p->puller);
    agx_images_stop(p->images, on_images_stopped, p);
}

static void on_store_closed(void *user, struct agx_error *error)
{
    ((struct agx_subsystems *)user)->store = NULL;
    part_closed(user, "store", error);
}

static void on_service_closed(void *user, struct agx_error *error)
{
    ((struct agx_subsystems *)user)->service = NULL;
    part_closed(user, "service", error);
}

/* Closes the topmost subsystem. The service is last: by then no client can reach it and nothing
 * below can answer it. */
static void close_next(struct agx_subsystems *p)
{
    if (p->rpc)
        agx_grpc_server_stop(p->rpc, p->o->config->shutdown_grace_ms, on_rpc_stopped, p);
    else if (p->manager)
        agx_manager_close(p->manager, on_manager_closed, p);
    else if (p->backend)
        agx_backend_close(p->backend, on_backend_closed, p);
    else if (p->images)
        close_images(p);
    else if (p->store)
        agx_store_close(p->store, on_store_closed, p);
    else if (p->service)
        agx_service_close(p->service, on_service_closed, p);
    else {
        p->sources = agx_sources_unref(p->sources);
        p->closed(p->user);
    }
}

void agx_subsystems_close(struct agx_subsystems *p, void (*closed)(void *user), void *user)
{
    p->closed = closed;
    p->user = user;
    close_next(p);
}

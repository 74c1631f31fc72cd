/*
 * create_body.c: turns spec, image and names into JSON.
 *
 * Every jansson call that adds something returns whether it could. The results are collected in
 * `bad` and checked once, because they can only fail without memory: all strings are UTF-8 by now.
 */
#include "backend/docker/create_body_internal.h"

#include "backend/net/hosts.h"
#include "base/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

#define AGBOX_USER "agbox"
#define AGBOX_WORKDIR "/workspace"

/* Ends at once on TERM: a shell runs its trap during `wait`, but not during a foreground child. */
#define IDLE "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"

#define NUMBER_SIZE 24

/* ---- small pieces ---- */

static int create_body_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static int push_words(json_t *list, const struct agx_words *words)
{
    int bad = 0;

    for (size_t i = 0; i < words->len; i++)
        bad |= agx_docker_create_body_push(list, words->items[i]);
    return bad;
}

static json_t *words_new(const struct agx_words *words)
{
    json_t *list = json_array();

    if (push_words(list, words) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* The complete body. */
static int create_body_finish(int bad, json_t **body, json_t **ret_body, struct agx_error **err)
{
    if (bad)
        return agx_error_no_memory(err);
    *ret_body = AGX_TAKE_PTR(*body);
    return 0;
}

const char *agx_docker_exec_user(const struct agx_docker_maker *m,
                                 const struct agx_docker_image *image)
{
    if (m->compat)
        return AGBOX_USER;
    return image->user ? image->user : "0";
}

/* ---- what runs ---- */

/* Without a command in the spec, nothing of the image runs and init idles by itself: no shell is
 * needed. Under engine control there is no init, so a shell idles. */
static int put_idle(json_t *body, const struct agx_docker_frame *f,
                    const struct agx_docker_primary *p)
{
    bool engine = f->control == AGX_DOCKER_CONTROL_ENGINE;
    int bad = create_body_set(body, "Entrypoint",
                              engine ? json_pack("[sss]", "sh", "-c", IDLE)
                                     : agx_docker_create_body_init(f, p));

    bad |= create_body_set(body, "Cmd", json_array());
    /* The image's values are for a program that does not run here. */
    bad |= create_body_set(body, "StopSignal", json_string("SIGTERM"));
    return bad | create_body_set(body, "Healthcheck", json_pack("{s:[s]}", "Test", "NONE"));
}

/* The image's entrypoint with the command, behind init. */
static int put_command(json_t *body, const struct agx_docker_frame *f,
                       const struct agx_docker_primary *p)
{
    const struct agx_words *command = &f->sandbox->spec.command;
    int bad = create_body_set(
        body, "Cmd", command->len > 0 ? words_new(command) : json_pack("[sss]", "sh", "-lc", IDLE));
    json_t *entry;

    if (f->control == AGX_DOCKER_CONTROL_ENGINE)
        return bad;
    entry = agx_docker_create_body_init(f, p);
    bad |= agx_docker_create_body_push(entry, "--");
    bad |= push_words(entry, &p->image->entrypoint);
    return bad | create_body_set(body, "Entrypoint", entry);
}

static int put_primary_process(json_t *body, const struct agx_docker_frame *f,
                               const struct agx_docker_primary *p)
{
    int bad = f->sandbox->spec.command.len == 0 && !f->maker->compat ? put_idle(body, f, p)
                                                                     : put_command(body, f, p);

    if (f->control != AGX_DOCKER_CONTROL_ENGINE)
        bad |= create_body_set(body, "User", json_string("0:0"));
    if (f->control == AGX_DOCKER_CONTROL_STDIO) {
        bad |= create_body_set(body, "OpenStdin", json_true());
        bad |=
            create_body_set(body, "StdinOnce", json_false()); /* the next daemon attaches again */
    }
    return bad;
}

/* The engine sets user and HOME as usual: only init's main process runs here. */
static int put_companion_process(json_t *body, const struct agx_docker_frame *f,
                                 const struct agx_companion *c,
                                 const struct agx_docker_image *image)
{
    int bad =
        create_body_set(body, "Cmd", words_new(c->command.len > 0 ? &c->command : &image->command));
    json_t *entry;

    if (f->control == AGX_DOCKER_CONTROL_ENGINE)
        return bad;
    entry = json_pack("[sss]", AGX_DOCKER_INIT, "--keep-home", "--");
    bad |= push_words(entry, &image->entrypoint);
    return bad | create_body_set(body, "Entrypoint", entry);
}

/* ---- environment ---- */

static int put_env(json_t *body, const struct agx_pairs *envs)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < envs->len; i++)
        bad |= json_array_append_new(
            list, json_sprintf("%s=%s", envs->items[i].key, envs->items[i].value));
    return bad | create_body_set(body, "Env", list);
}

/* ---- the host's side ---- */

static int put_limits(json_t *host, const struct agx_limits *l)
{
    char text[NUMBER_SIZE];
    int bad = 0;

    if (l->cpu_millicores > 0)
        bad |= create_body_set(host, "NanoCpus", json_integer(l->cpu_millicores * 1000000));
    if (l->memory_bytes > 0)
        bad |= create_body_set(host, "Memory", json_integer(l->memory_bytes));
    if (l->disk_bytes > 0) {
        (void)snprintf(text, sizeof(text), "%" PRId64, l->disk_bytes);
        bad |= create_body_set(host, "StorageOpt", json_pack("{s:s}", "size", text));
    }
    return bad;
}

/* A main process that prints for ever must not fill the disk. A channel over standard output is not
 * logged: it is not output. */
static json_t *log_config_new(bool is_channel)
{
    return is_channel ? json_pack("{s:s}", "Type", "none")
                      : json_pack("{s:s, s:{s:s, s:s}}", "Type", "json-file", "Config", "max-size",
                                  "8m", "max-file", "2");
}

/* Names that some images and tools expect for the host lead nowhere. */
static json_t *extra_hosts_new(const struct agx_words *more)
{
    json_t *list =
        json_pack("[ss]", "host.docker.internal:0.0.0.0", "gateway.docker.internal:0.0.0.0");
    int bad = 0;

    for (size_t i = 0; more && i < more->len; i++)
        bad |= json_array_append_new(list, json_string(more->items[i]));
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *bind_new(const char *source, const char *target, bool writable)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source", source, "Target", target,
                     "ReadOnly", !writable);
}

static json_t *mounts_new(const struct agx_docker_frame *f, const struct agx_binds *binds)
{
    json_t *list = json_array();
    int bad = list ? 0 : -1;

    for (size_t i = 0; binds && i < binds->len; i++)
        bad |= json_array_append_new(list, bind_new(binds->items[i].source, binds->items[i].target,
                                                    binds->items[i].writable));
    if (f->control != AGX_DOCKER_CONTROL_ENGINE)
        bad |= json_array_append_new(list, bind_new(f->init_path, AGX_DOCKER_INIT, false));
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* Less than engines grant by default; images of agents-sandbox use sudo and get the default. No raw
 * sockets (ping works without), no devices, no entries in the host's audit log. */
static int put_powers(json_t *host)
{
    int bad = create_body_set(host, "SecurityOpt", json_pack("[s]", "no-new-privileges"));

    return bad | create_body_set(host, "CapDrop",
                                 json_pack("[s,s,s]", "NET_RAW", "MKNOD", "AUDIT_WRITE"));
}

/* Drops those by which a file gives power to the user who runs it, besides MKNOD. */
static int drop_powers_of_files(json_t *host)
{
    json_t *drop = json_object_get(host, "CapDrop");

    return agx_docker_create_body_push(drop, "SETFCAP") |
           agx_docker_create_body_push(drop, "FSETID");
}

/* What primaries and companions have in common. */
static json_t *host_new(const struct agx_docker_frame *f, const struct agx_limits *limits,
                        const char *restart, bool is_channel)
{
    json_t *host = json_object();
    int bad = put_limits(host, limits);

    bad |= create_body_set(host, "Init", json_boolean(f->control == AGX_DOCKER_CONTROL_ENGINE));
    bad |= create_body_set(host, "RestartPolicy", json_pack("{s:s}", "Name", restart));
    bad |= create_body_set(host, "LogConfig", log_config_new(is_channel));
    bad |= create_body_set(host, "NetworkMode", json_string(f->network ? f->network : "none"));
    if (f->network)
        bad |= create_body_set(host, "ExtraHosts", extra_hosts_new(f->hosts));
    if (f->network && f->sandbox->spec.network == AGX_NETWORK_EGRESS)
        bad |= create_body_set(host, "Dns", agx_hosts_dns(&f->sandbox->spec.egress));
    if (f->pids > 0)
        bad |= create_body_set(host, "PidsLimit", json_integer(f->pids));
    if (!f->maker->compat)
        bad |= put_powers(host);
    if (bad) {
        json_decref(host);
        return NULL;
    }
    return host;
}

static int put_endpoint(json_t *body, const char *network, const char *alias)
{
    json_t *endpoint = json_object();
    int bad = 0;

    if (alias)
        bad = create_body_set(endpoint, "Aliases", json_pack("[s]", alias));
    return bad | create_body_set(body, "NetworkingConfig",
                                 json_pack("{s:{s:o}}", "EndpointsConfig", network, endpoint));
}

/* ---- ports and devices ---- */

/* Several ports of the host may lead to one of the container. */
static int put_port(json_t *exposed, json_t *bindings, const struct agx_port *p)
{
    char key[2 * NUMBER_SIZE], host_port[NUMBER_SIZE];
    json_t *list;
    int bad = 0;

    (void)snprintf(key, sizeof(key), "%" PRIu32 "/%s", p->container_port,
                   agx_protocol_name((enum agx_protocol)p->protocol));
    (void)snprintf(host_port, sizeof(host_port), "%" PRIu32, p->host_port);
    if (!json_object_get(bindings, key)) {
        bad |= create_body_set(exposed, key, json_object());
        bad |= create_body_set(bindings, key, json_array());
    }
    list = json_object_get(bindings, key);
    return bad | json_array_append_new(
                     list, json_pack("{s:s, s:s}", "HostIp", "127.0.0.1", "HostPort", host_port));
}

static int put_ports(json_t *body, json_t *host, const struct agx_spec *s)
{
    json_t *exposed = json_object(), *bindings = json_object();
    int bad = 0;

    for (size_t i = 0; i < s->ports_len; i++)
        bad |= put_port(exposed, bindings, &s->ports[i]);
    bad |= create_body_set(body, "ExposedPorts", exposed);
    return bad | create_body_set(host, "PortBindings", bindings);
}

static int put_gpus(json_t *host, const struct agx_docker_primary *p)
{
    int bad = create_body_set(
        host, "DeviceRequests",
        json_pack("[{s:s, s:i, s:[[s]]}]", "Driver", "nvidia", "Count", -1, "Capabilities", "gpu"));
    json_t *groups = json_array();

    for (size_t i = 0; i < p->gpu_groups_len; i++)
        bad |= json_array_append_new(groups, json_sprintf("%" PRIu32, p->gpu_groups[i]));
    return bad | create_body_set(host, "GroupAdd", groups);
}

/* ---- bodies ---- */

int agx_docker_create_body_primary(const struct agx_docker_frame *f,
                                   const struct agx_docker_primary *p, json_t **ret_body,
                                   struct agx_error **err)
{
    const struct agx_spec *s = &f->sandbox->spec;
    const struct agx_docker_tag tag = { .sandbox_id = f->sandbox->id,
                                        .component = AGX_DOCKER_PRIMARY,
                                        .exec_user = agx_docker_exec_user(f->maker, p->image),
                                        .control = f->control,
                                        .held = agx_docker_create_body_is_held(f, p),
                                        .owner = f->sandbox->owner_uid };
    _cleanup_(agx_pairs_done) struct agx_pairs envs = { 0 };
    _cleanup_json_ json_t *body = json_object();
    struct agx_limits limits;
    json_t *labels = NULL, *host;
    int r, bad;

    assert(f->control != AGX_DOCKER_CONTROL_AUTO);
    if ((r = agx_limits_parse(&s->limits, "", &limits, err)) < 0 ||
        (r = agx_docker_create_body_envs(f, p, &envs, err)) < 0 ||
        (r = agx_docker_labels_new(f->maker, &tag, s, &labels, err)) < 0)
        return r;
    bad = create_body_set(body, "Labels", labels);
    bad |= create_body_set(body, "Image", json_string(s->image));
    bad |= put_primary_process(body, f, p);
    bad |= put_env(body, &envs);
    if (f->maker->compat)
        bad |= create_body_set(body, "WorkingDir", json_string(AGBOX_WORKDIR));
    /* The daemon restarts ours itself, when the firewall covers its network. */
    host = host_new(f, &limits, f->maker->compat ? "unless-stopped" : "no",
                    f->control == AGX_DOCKER_CONTROL_STDIO);
    bad |= create_body_set(host, "Mounts", mounts_new(f, p->binds));
    bad |= put_ports(body, host, s);
    if (s->gpus)
        bad |= put_gpus(host, p);
    if (agx_docker_create_body_is_guarded(f, p))
        bad |= drop_powers_of_files(host);
    bad |= create_body_set(body, "HostConfig", host);
    if (f->network)
        bad |= put_endpoint(body, f->network, NULL);
    return create_body_finish(bad, &body, ret_body, err);
}

static int put_span(json_t *object, const char *key, int64_t ns)
{
    return ns == AGX_NS_UNSET ? 0 : create_body_set(object, key, json_integer(ns));
}

static int put_healthcheck(json_t *body, const struct agx_healthcheck *h)
{
    json_t *check = json_object();
    int bad = create_body_set(check, "Test", words_new(&h->test));

    bad |= put_span(check, "Interval", h->interval_ns);
    bad |= put_span(check, "Timeout", h->timeout_ns);
    bad |= put_span(check, "StartPeriod", h->start_period_ns);
    bad |= put_span(check, "StartInterval", h->start_interval_ns);
    if (h->retries > 0)
        bad |= create_body_set(check, "Retries", json_integer(h->retries));
    return bad | create_body_set(body, "Healthcheck", check);
}

int agx_docker_create_body_companion(const struct agx_docker_frame *f, size_t companion,
                                     const struct agx_docker_image *image, json_t **ret_body,
                                     struct agx_error **err)
{
    const struct agx_spec *s = &f->sandbox->spec;
    const struct agx_companion *c = &s->companions[companion];
    const struct agx_docker_tag tag = { .sandbox_id = f->sandbox->id,
                                        .component = AGX_DOCKER_COMPANION,
                                        .companion = companion };
    _cleanup_json_ json_t *body = json_object();
    struct agx_limits limits;
    json_t *labels = NULL, *host;
    int r, bad;

    if (c->command.len == 0 && image->command.len == 0 && image->entrypoint.len == 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "companion_containers[%s]: image '%s' has no command, and none is "
                             "given",
                             c->name, c->image);
    if ((r = agx_limits_parse(&c->limits, "", &limits, err)) < 0 ||
        (r = agx_docker_labels_new(f->maker, &tag, s, &labels, err)) < 0)
        return r;
    bad = create_body_set(body, "Labels", labels);
    bad |= create_body_set(body, "Image", json_string(c->image));
    bad |= put_companion_process(body, f, c, image);
    bad |= put_env(body, &c->envs);
    if (c->healthcheck.set)
        bad |= put_healthcheck(body, &c->healthcheck);
    host = host_new(f, &limits, f->maker->compat ? "unless-stopped" : "on-failure", false);
    bad |= create_body_set(host, "Mounts", mounts_new(f, NULL));
    bad |= create_body_set(body, "HostConfig", host);
    if (f->network)
        bad |= put_endpoint(body, f->network, c->name);
    return create_body_finish(bad, &body, ret_body, err);
}

/* Takes the labels. */
static int network_new(json_t *labels, const char *name, const char *subnet, const char *bridge,
                       json_t **ret_body, struct agx_error **err)
{
    _cleanup_json_ json_t *body = json_object();
    int bad = create_body_set(body, "Labels", labels);

    bad |= create_body_set(body, "Name", json_string(name));
    bad |= create_body_set(body, "CheckDuplicate", json_true());
    bad |= create_body_set(body, "Driver", json_string("bridge"));
    if (subnet)
        bad |= create_body_set(body, "IPAM", json_pack("{s:[{s:s}]}", "Config", "Subnet", subnet));
    if (bridge)
        bad |= create_body_set(body, "Options",
                               json_pack("{s:s}", "com.docker.network.bridge.name", bridge));
    return create_body_finish(bad, &body, ret_body, err);
}

int agx_docker_create_body_network(const struct agx_docker_maker *m,
                                   const struct agx_sandbox *sandbox, const char *name,
                                   const char *subnet, const char *bridge, const char *egress,
                                   json_t **ret_body, struct agx_error **err)
{
    const struct agx_docker_tag tag = { .sandbox_id = sandbox->id,
                                        .component = AGX_DOCKER_NETWORK,
                                        .egress = egress };
    json_t *labels = NULL;
    int r = agx_docker_labels_new(m, &tag, &sandbox->spec, &labels, err);

    return r < 0 ? r : network_new(labels, name, subnet, bridge, ret_body, err);
}

int agx_docker_create_body_spare_network(const struct agx_docker_maker *m, const char *name,
                                         const char *subnet, const char *bridge, json_t **ret_body,
                                         struct agx_error **err)
{
    return network_new(json_pack("{s:s}", AGX_DOCKER_LABEL_INSTANCE, m->instance), name, subnet,
                       bridge, ret_body, err);
}

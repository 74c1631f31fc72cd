/* info.c: the engine's abilities, read whenever it comes (back) up. */
#include "backend/docker/docker_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <glob.h>

#include "base/banned.h"

enum { INFO_DONE = AGX_OP_DONE, INFO_ASK };

/* Where a container's own layer can be limited: overlay2 needs quotas of xfs. */
static bool has_disk_limits(const json_t *info)
{
    static const char *const drivers[] = { "btrfs", "zfs", "devicemapper", "windowsfilter" };
    const char *driver = agx_text(json_string_value(json_object_get(info, "Driver")));
    const json_t *row;
    size_t i;

    for (i = 0; i < AGX_ARRAY_LEN(drivers); i++) {
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    }
    json_array_foreach(json_object_get(info, "DriverStatus"), i, row)
    {
        const char *name = agx_text(json_string_value(json_array_get(row, 0)));
        const char *value = agx_text(json_string_value(json_array_get(row, 1)));

        if (strcmp(name, "Backing Filesystem") == 0)
            return strcmp(driver, "overlay2") == 0 && strcmp(value, "xfs") == 0;
    }
    return false;
}

static void on_info(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    struct agx_docker_info *info = &agx_docker_by(op)->info;

    (void)tag;
    if (!error) {
        info->known = true;
        info->has_nvidia =
            json_object_get(json_object_get(answer->json, "Runtimes"), "nvidia") != NULL;
        info->has_disk_limits = has_disk_limits(answer->json);
        (void)snprintf(info->driver, sizeof(info->driver), "%s",
                       agx_text(json_string_value(json_object_get(answer->json, "Driver"))));
    }
    agx_op_fail(op, &error);
}

static int enter_ask(struct agx_op *op, struct agx_error **err)
{
    int r = agx_docker_ask(
        op,
        &(struct agx_docker_query){ .request = { .method = "GET", .what = "ask the engine" },
                                    .path = agx_docker_path("/info"),
                                    .answered = on_info },
        err);

    return agx_op_wait(op, r, INFO_DONE, err);
}

static void info_ended(struct agx_op *op, struct agx_error *error)
{
    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.no_info", AGX_F_ERR(error));
    agx_error_free(error);
    free(op);
}

static const struct agx_op_state info_states[] = {
    [INFO_ASK] = { "ask", enter_ask, agx_op_cancel_held },
};

static const struct agx_op_kind info_kind = {
    .name = "docker-info",
    .states = info_states,
    .n_states = AGX_ARRAY_LEN(info_states),
    .finish = info_ended,
};

void agx_docker_info_ask(struct agx_docker *d)
{
    if (!d->base.closing)
        agx_op_start_in(agx_new(struct agx_op), &info_kind, &d->operations, "engine", 0);
}

/* ---- what follows from it ---- */

static int info_refuse(struct agx_error **err, const char *field, const char *why)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "%s: %s", field, why);
}

/* An engine may support GPUs without a runtime of that name, but not without a device. */
static bool has_gpus(const struct agx_docker *d)
{
    glob_t found = { 0 };
    bool yes = !d->info.known || d->info.has_nvidia;

    if (!yes) {
        yes = glob("/dev/nvidia*", 0, NULL, &found) == 0;
        globfree(&found);
    }
    return yes;
}

static int check_disk(const struct agx_docker *d, const struct agx_limit_texts *l,
                      struct agx_error **err)
{
    if (!l->disk || !d->info.known || d->info.has_disk_limits)
        return 0;
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         AGX_DOCKER_NO_DISK_LIMIT ": its storage driver is '%s'", d->info.driver);
}

int agx_docker_check_isolation(const struct agx_docker *d, const struct agx_spec *spec,
                               struct agx_error **err)
{
    if (!d->cannot_isolate || spec->network == AGX_NETWORK_NONE)
        return 0;
    return info_refuse(
        err, "network",
        "the engine is on another machine, where sandboxes cannot be isolated from here; "
        "network 'none' needs no isolation, and 'docker.isolation: off' does without");
}

/* Init forbids setuid bits where there is one that may: under no_new_privs. */
static int warn_of_suid(const struct agx_docker *d, const struct agx_spec *spec,
                        struct agx_words *warnings, struct agx_error **err)
{
    const bool is_engines = d->control == AGX_DOCKER_CONTROL_ENGINE;

    if (!(d->maker.compat || is_engines) || !agx_spec_needs_suid_guard(spec))
        return 0;
    return agx_words_add(
        warnings,
        is_engines
            ? AGX_STR("setuid programs that it leaves in a writable mount are setuid "
                      "on the host too: without agentix-init (docker.control: engine) nothing "
                      "prevents that")
            : AGX_STR("setuid programs that it leaves in a writable mount are setuid "
                      "on the host too: in compatibility mode nothing prevents "
                      "that"),
        err);
}

int agx_docker_check(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                     struct agx_error **err)
{
    const struct agx_docker *d = agx_docker_of(b);
    int r;

    if (spec->network == AGX_NETWORK_NONE && spec->companions_len > 0)
        return info_refuse(err, "companion_containers", "a sandbox with network 'none' has none");
    if (spec->network == AGX_NETWORK_NONE && spec->ports_len > 0)
        return info_refuse(err, "ports", "a sandbox with network 'none' has none");
    r = agx_docker_check_isolation(d, spec, err);
    if (r < 0)
        return r;
    if (spec->network == AGX_NETWORK_EGRESS && !d->firewall)
        return info_refuse(err, "network", "a list needs isolation (docker.isolation)");
    if (spec->gpus && !has_gpus(d))
        return info_refuse(err, "gpus",
                           "the engine has no 'nvidia' runtime and the host no such device");
    r = check_disk(d, &spec->limits, err);
    for (size_t i = 0; r == 0 && i < spec->companions_len; i++)
        r = check_disk(d, &spec->companions[i].limits, err);
    if (r == 0)
        r = warn_of_suid(d, spec, warnings, err);
    return r < 0 ? r : agx_tools_warn(&spec->builtin_tools, &d->host.tools, warnings, err);
}

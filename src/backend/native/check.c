/* check.c: refuses, by field name, what this backend does not support; limits as numbers. */
#include "backend/native/native_internal.h"

#include <stdio.h>

#include "base/banned.h"

static int check_refuse(struct agx_error **err, const char *field, const char *why)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "%s: %s", field, why);
}

int agx_native_limits(const struct agx_native *n, const struct agx_spec *spec, size_t part,
                      struct agx_native_limits *ret, struct agx_error **err)
{
    const struct agx_companion *c = part == 0 ? NULL : &spec->companions[part - 1];
    struct agx_limits limits;
    char field[64] = "";
    int r;

    if (c)
        (void)snprintf(field, sizeof(field), "companion_containers[%.30s].", agx_text(c->name));
    r = agx_limits_parse(c ? &c->limits : &spec->limits, field, &limits, err);
    if (r < 0)
        return r;
    *ret = (struct agx_native_limits){ .group = { .cpu_millicores = limits.cpu_millicores,
                                                  .memory_bytes = limits.memory_bytes,
                                                  .pids = n->pids },
                                       .disk_bytes = limits.disk_bytes };
    r = agx_cgroups_check(n->cgroups, &ret->group, err);
    if (r < 0)
        return agx_error_wrap(err, r, "%slimits", field);
    r = limits.disk_bytes > 0 ? agx_disk_check(&n->disk, limits.disk_bytes, err) : 0;
    return r < 0 ? agx_error_wrap(err, r, "%sdisk_limit", field) : 0;
}

static int check_ports(const struct agx_spec *spec, struct agx_error **err)
{
    for (size_t i = 0; i < spec->ports_len; i++) {
        if (spec->ports[i].protocol == AGX_PROTOCOL_SCTP)
            return check_refuse(err, "ports", "the native backend does not forward sctp");
    }
    return 0;
}

/* What an ordinary user's daemon does not support. */
static int check_rootless(const struct agx_rootless *r, const struct agx_spec *spec,
                          struct agx_error **err)
{
    int bad = spec->network == AGX_NETWORK_NONE ? 0 : agx_pasta_check(err);

    if (bad < 0)
        return bad;
    if (spec->mounts_len > 0 && (r->idmap.uid >= AGX_IDMAP_IDS || r->idmap.gid >= AGX_IDMAP_IDS))
        return check_refuse(err, "mounts",
                            "ids of the daemon's user above 65535 are not seen inside");
    return 0;
}

int agx_native_check(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                     struct agx_error **err)
{
    const struct agx_native *n = agx_native_of(b);
    struct agx_native_limits limits;
    int r;

    if (spec->network == AGX_NETWORK_NONE && spec->companions_len > 0)
        return check_refuse(err, "companion_containers", "a sandbox with network 'none' has none");
    if (spec->network == AGX_NETWORK_NONE && spec->ports_len > 0)
        return check_refuse(err, "ports", "a sandbox with network 'none' has none");
    if (spec->companions_len + 1 > AGX_NSSET_MEMBERS_MAX)
        return check_refuse(err, "companion_containers", "a sandbox has at most 12 of them");
    if (spec->gpus)
        return check_refuse(err, "gpus", "the native backend has none");
    r = n->rootless ? check_rootless(n->rootless, spec, err) : 0;
    if (r == 0)
        r = check_ports(spec, err);
    for (size_t i = 0; r == 0 && i <= spec->companions_len; i++)
        r = agx_native_limits(n, spec, i, &limits, err);
    return r < 0 ? r : agx_tools_warn(&spec->builtin_tools, &n->host.tools, warnings, err);
}

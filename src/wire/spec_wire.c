/* spec_wire.c: CreateSpec and struct agx_spec. */
#include "wire/spec_wire_internal.h"

#include "base/limits.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agbox__V1__CompanionContainerSpec companion_pb;
typedef Agbox__V1__CreateSpec spec_pb;
typedef Agbox__V1__HealthcheckConfig healthcheck_pb;

healthcheck_pb *agx_healthcheck_pack(struct agx_pack *p, const struct agx_healthcheck *h)
{
    healthcheck_pb *m = h->set ? agx_arena_alloc(&p->arena, sizeof(*m)) : NULL;

    if (!m)
        return NULL;
    agbox__v1__healthcheck_config__init(m);
    m->n_test = h->test.len;
    m->test = h->test.items;
    m->interval = agx_pack_duration(p, h->interval_ns);
    m->timeout = agx_pack_duration(p, h->timeout_ns);
    m->retries = h->retries;
    m->start_period = agx_pack_duration(p, h->start_period_ns);
    m->start_interval = agx_pack_duration(p, h->start_interval_ns);
    return m;
}

companion_pb **agx_companions_pack(struct agx_pack *p, const struct agx_spec *s, bool envs,
                                   size_t *ret_n)
{
    companion_pb **items = agx_pack_messages(p, &agbox__v1__companion_container_spec__descriptor,
                                             s->companions_len, ret_n);

    for (size_t i = 0; i < *ret_n; i++) {
        const struct agx_companion *c = &s->companions[i];
        companion_pb *m = items[i];

        m->name = agx_pack_text(c->name);
        m->image = agx_pack_text(c->image);
        if (envs)
            m->envs =
                agx_pack_pairs(p, &agbox__v1__companion_container_spec__envs_entry__descriptor,
                               &c->envs, &m->n_envs);
        m->healthcheck = agx_healthcheck_pack(p, &c->healthcheck);
        m->n_post_start_on_primary = c->post_start_on_primary.len;
        m->post_start_on_primary = c->post_start_on_primary.items;
        m->n_command = c->command.len;
        m->command = c->command.items;
        m->cpu_limit = agx_pack_text(c->limits.cpu);
        m->memory_limit = agx_pack_text(c->limits.memory);
        m->disk_limit = agx_pack_text(c->limits.disk);
    }
    return items;
}

static void pack_files(struct agx_pack *p, spec_pb *m, const struct agx_spec *s)
{
    m->mounts =
        agx_pack_messages(p, &agbox__v1__mount_spec__descriptor, s->mounts_len, &m->n_mounts);
    for (size_t i = 0; i < m->n_mounts; i++) {
        m->mounts[i]->source = agx_pack_text(s->mounts[i].source);
        m->mounts[i]->target = agx_pack_text(s->mounts[i].target);
        m->mounts[i]->writable = s->mounts[i].writable;
        m->mounts[i]->suid = (Agbox__V1__MountSuid)s->mounts[i].suid;
    }
    m->copies =
        agx_pack_messages(p, &agbox__v1__copy_spec__descriptor, s->copies_len, &m->n_copies);
    for (size_t i = 0; i < m->n_copies; i++) {
        m->copies[i]->source = agx_pack_text(s->copies[i].source);
        m->copies[i]->target = agx_pack_text(s->copies[i].target);
        m->copies[i]->n_exclude_patterns = s->copies[i].exclude_patterns.len;
        m->copies[i]->exclude_patterns = s->copies[i].exclude_patterns.items;
    }
}

static void pack_ports(struct agx_pack *p, spec_pb *m, const struct agx_spec *s)
{
    m->ports =
        agx_pack_messages(p, &agbox__v1__port_mapping__descriptor, s->ports_len, &m->n_ports);
    for (size_t i = 0; i < m->n_ports; i++) {
        m->ports[i]->container_port = s->ports[i].container_port;
        m->ports[i]->host_port = s->ports[i].host_port;
        m->ports[i]->protocol = (Agbox__V1__PortProtocol)s->ports[i].protocol;
    }
}

void agx_spec_pack(struct agx_pack *p, spec_pb *m, const struct agx_spec *s)
{
    m->image = agx_pack_text(s->image);
    pack_files(p, m, s);
    pack_ports(p, m, s);
    m->n_builtin_tools = s->builtin_tools.len;
    m->builtin_tools = s->builtin_tools.items;
    m->companion_containers = agx_companions_pack(p, s, true, &m->n_companion_containers);
    m->labels = agx_pack_pairs(p, &agbox__v1__create_spec__labels_entry__descriptor, &s->labels,
                               &m->n_labels);
    m->envs =
        agx_pack_pairs(p, &agbox__v1__create_spec__envs_entry__descriptor, &s->envs, &m->n_envs);
    m->idle_ttl = agx_pack_duration(p, s->idle_ttl_ns);
    m->n_command = s->command.len;
    m->command = s->command.items;
    m->cpu_limit = agx_pack_text(s->limits.cpu);
    m->memory_limit = agx_pack_text(s->limits.memory);
    m->disk_limit = agx_pack_text(s->limits.disk);
    m->gpus = agx_pack_text(s->gpus);
    m->network = (Agbox__V1__NetworkMode)s->network;
    m->n_egress = s->egress.len;
    m->egress = s->egress.items;
}

int agx_healthcheck_unpack(struct agx_unpack *u, const healthcheck_pb *m, struct agx_healthcheck *h)
{
    int r = agx_unpack_words(u, "healthcheck.test", m->n_test, m->test, &h->test);

    h->set = true;
    h->retries = m->retries;
    if (r == 0)
        r = agx_unpack_duration(u, "healthcheck.interval", m->interval, &h->interval_ns);
    if (r == 0)
        r = agx_unpack_duration(u, "healthcheck.timeout", m->timeout, &h->timeout_ns);
    if (r == 0)
        r = agx_unpack_duration(u, "healthcheck.start_period", m->start_period,
                                &h->start_period_ns);
    if (r == 0)
        r = agx_unpack_duration(u, "healthcheck.start_interval", m->start_interval,
                                &h->start_interval_ns);
    return r;
}

static int unpack_limits(struct agx_unpack *u, struct agx_limit_texts *l, const char *cpu,
                         const char *memory, const char *disk)
{
    int r = agx_unpack_text(u, cpu, &l->cpu);

    if (r == 0)
        r = agx_unpack_text(u, memory, &l->memory);
    return r < 0 ? r : agx_unpack_text(u, disk, &l->disk);
}

static int unpack_companion(struct agx_unpack *u, const companion_pb *m, struct agx_companion *c)
{
    int r = agx_unpack_text(u, m->name, &c->name);

    if (r == 0)
        r = agx_unpack_text(u, m->image, &c->image);
    if (r == 0)
        r = agx_unpack_pairs(u, "companion_containers.envs", m->n_envs, m->envs, &c->envs);
    if (r == 0 && m->healthcheck)
        r = agx_healthcheck_unpack(u, m->healthcheck, &c->healthcheck);
    if (r == 0)
        r = agx_unpack_words(u, "post_start_on_primary", m->n_post_start_on_primary,
                             m->post_start_on_primary, &c->post_start_on_primary);
    if (r == 0)
        r = agx_unpack_words(u, "companion_containers.command", m->n_command, m->command,
                             &c->command);
    return r < 0 ? r : unpack_limits(u, &c->limits, m->cpu_limit, m->memory_limit, m->disk_limit);
}

int agx_companions_unpack(struct agx_unpack *u, size_t n, companion_pb *const *items,
                          struct agx_spec *s)
{
    int r = agx_unpack_count(u, "companion_containers", n, AGX_SPEC_ITEMS_MAX);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct agx_companion *c;

        r = agx_spec_add_companion(s, &c, u->err);
        if (r == 0)
            r = unpack_companion(u, items[i], c);
    }
    return r;
}

static int unpack_mounts(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = agx_unpack_count(u, "mounts", m->n_mounts, AGX_SPEC_ITEMS_MAX);

    for (size_t i = 0; r == 0 && i < m->n_mounts; i++) {
        struct agx_mount *mount;

        r = agx_spec_add_mount(s, &mount, u->err);
        if (r < 0)
            break;
        mount->writable = m->mounts[i]->writable;
        mount->suid = (int32_t)m->mounts[i]->suid;
        r = agx_unpack_text(u, m->mounts[i]->source, &mount->source);
        if (r == 0)
            r = agx_unpack_text(u, m->mounts[i]->target, &mount->target);
    }
    return r;
}

static int unpack_copies(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = agx_unpack_count(u, "copies", m->n_copies, AGX_SPEC_ITEMS_MAX);

    for (size_t i = 0; r == 0 && i < m->n_copies; i++) {
        struct agx_copy *copy;

        r = agx_spec_add_copy(s, &copy, u->err);
        if (r == 0)
            r = agx_unpack_text(u, m->copies[i]->source, &copy->source);
        if (r == 0)
            r = agx_unpack_text(u, m->copies[i]->target, &copy->target);
        if (r == 0)
            r = agx_unpack_words(u, "exclude_patterns", m->copies[i]->n_exclude_patterns,
                                 m->copies[i]->exclude_patterns, &copy->exclude_patterns);
    }
    return r;
}

static int unpack_ports(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = agx_unpack_count(u, "ports", m->n_ports, AGX_SPEC_ITEMS_MAX);

    for (size_t i = 0; r == 0 && i < m->n_ports; i++) {
        struct agx_port *port;

        r = agx_spec_add_port(s, &port, u->err);
        if (r == 0)
            *port = (struct agx_port){ m->ports[i]->container_port, m->ports[i]->host_port,
                                       (int32_t)m->ports[i]->protocol };
    }
    return r;
}

static int unpack_lists(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = unpack_mounts(u, m, s);

    if (r == 0)
        r = unpack_copies(u, m, s);
    if (r == 0)
        r = unpack_ports(u, m, s);
    return r < 0 ? r
                 : agx_companions_unpack(u, m->n_companion_containers, m->companion_containers, s);
}

static int unpack_words(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = agx_unpack_words(u, "builtin_tools", m->n_builtin_tools, m->builtin_tools,
                             &s->builtin_tools);

    if (r == 0)
        r = agx_unpack_pairs(u, "labels", m->n_labels, m->labels, &s->labels);
    if (r == 0)
        r = agx_unpack_pairs(u, "envs", m->n_envs, m->envs, &s->envs);
    if (r == 0)
        r = agx_unpack_words(u, "command", m->n_command, m->command, &s->command);
    return r < 0 ? r : agx_unpack_words(u, "egress", m->n_egress, m->egress, &s->egress);
}

int agx_spec_unpack(struct agx_unpack *u, const spec_pb *m, struct agx_spec *s)
{
    int r = agx_unpack_text(u, m->image, &s->image);

    s->network = (int32_t)m->network;
    if (r == 0)
        r = unpack_lists(u, m, s);
    if (r == 0)
        r = unpack_words(u, m, s);
    if (r == 0)
        r = agx_unpack_duration(u, "idle_ttl", m->idle_ttl, &s->idle_ttl_ns);
    if (r == 0)
        r = unpack_limits(u, &s->limits, m->cpu_limit, m->memory_limit, m->disk_limit);
    return r < 0 ? r : agx_unpack_text(u, m->gpus, &s->gpus);
}

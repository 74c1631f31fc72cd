/* spec_yaml.c: each kind of mapping has a table of its keys; one function reads them all. */
#include "core/spec_yaml.h"

#include "base/banned.h"
#include "base/duration.h"
#include "base/limits.h"
#include "core/spec_internal.h"
#include "core/yaml_walk.h"

#include <stddef.h>

#define TEXT_MAX 200 /* of text quoted from the file in a message */

struct reader {
    struct agx_yaml_walk walk;
    struct agx_spec *spec;
    char field[256]; /* prefix of a command's messages: "", "companion_containers[db]." */
};

typedef int (*read_fn)(struct reader *r, const struct agx_yaml_node *n, void *to);

struct field {
    const char *key;
    read_fn read;
    size_t offset; /* of the target field, in the struct of the table */
};

static int read_fields(struct reader *r, const struct agx_yaml_node *n, const struct field *fields,
                       size_t count, void *to)
{
    _cleanup_(agx_yaml_entries_done) struct agx_yaml_entries e = { 0 };
    int rc = agx_yaml_walk_entries(&r->walk, n, &e);

    for (size_t i = 0; rc == 0 && i < e.len; i++) {
        struct agx_str key = agx_yaml_text(r->walk.y, e.items[i].key);
        size_t f = 0;

        while (f < count && !agx_str_eq(key, agx_str_from(fields[f].key)))
            f++;
        if (f == count)
            return agx_error_set(r->walk.err, AGX_INVALID_ARGUMENT, "line %u: field %.*s not found",
                                 e.items[i].key->line, agx_text_cut(key, TEXT_MAX), key.ptr);
        if (!agx_yaml_is_null(r->walk.y, e.items[i].value)) /* null counts as absent */
            rc = fields[f].read(r, e.items[i].value, (char *)to + fields[f].offset);
    }
    return rc;
}

#define READ_FIELDS(r, n, fields, to) read_fields((r), (n), (fields), AGX_ARRAY_LEN(fields), (to))

/* A scalar's characters as text, also for "2" and "true". */
static int scalar_text(struct reader *r, const struct agx_yaml_node *n, struct agx_str *ret)
{
    if (n->kind != AGX_YAML_SCALAR)
        return agx_yaml_walk_bad(&r->walk, n, "expected a string");
    *ret = agx_yaml_is_null(r->walk.y, n) ? AGX_STR("") : agx_yaml_text(r->walk.y, n);
    return 0;
}

static int read_text(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    _cleanup_free_ char *copy = NULL;
    struct agx_str s;
    int rc = scalar_text(r, n, &s);

    if (rc < 0)
        return rc;
    copy = agx_str_dup(s);
    return copy ? agx_text_set(to, copy, r->walk.err) : agx_error_no_memory(r->walk.err);
}

static int read_bool(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    return agx_yaml_bool(r->walk.y, n, to)
               ? 0
               : agx_yaml_walk_bad(&r->walk, n, "expected true or false");
}

static int read_u32(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    uint64_t number;

    if (!agx_yaml_unsigned(r->walk.y, n, UINT32_MAX, &number))
        return agx_yaml_walk_bad(&r->walk, n, "expected a whole number that is not negative");
    *(uint32_t *)to = (uint32_t)number;
    return 0;
}

static int read_duration(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    struct agx_str s;
    int rc = scalar_text(r, n, &s);

    if (rc < 0 || s.len == 0)
        return rc;
    rc = agx_duration_parse(s, to, r->walk.err);
    if (rc < 0 && rc != -AGX_RESOURCE_EXHAUSTED)
        return agx_error_wrap(r->walk.err, -AGX_INVALID_ARGUMENT, "line %u", n->line);
    return rc;
}

/* Reads one of several words: protocol, network. */
static int read_choice(struct reader *r, const struct agx_yaml_node *n, const char *const *names,
                       int32_t count, int32_t *to)
{
    struct agx_str s;
    int rc = scalar_text(r, n, &s);

    if (rc < 0)
        return rc;
    s = agx_str_trim(s);
    for (int32_t i = 0; i < count; i++) {
        if (agx_str_eq_nocase(s, agx_str_from(names[i]))) {
            *to = i;
            return 0;
        }
    }
    return agx_error_set(r->walk.err, AGX_INVALID_ARGUMENT, "line %u: unknown word '%.*s'", n->line,
                         agx_text_cut(s, TEXT_MAX), s.ptr);
}

static int read_protocol(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    static const char *const names[AGX_PROTOCOL_COUNT] = { "tcp", "udp", "sctp" };

    return read_choice(r, n, names, AGX_PROTOCOL_COUNT, to);
}

static int read_network(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    static const char *const names[AGX_NETWORK_COUNT] = { "nat", "none", "egress" };

    return read_choice(r, n, names, AGX_NETWORK_COUNT, to);
}

static int read_suid(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    static const char *const names[AGX_SUID_COUNT] = { "deny", "allow" };

    return read_choice(r, n, names, AGX_SUID_COUNT, to);
}

static int read_words(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    const struct agx_yaml_node *item;
    int rc = 0;

    if (n->kind != AGX_YAML_SEQUENCE)
        return agx_yaml_walk_bad(&r->walk, n, "expected a list");
    for (uint32_t at = n->first; rc == 0 && at; at = r->walk.y->nodes[at].next) {
        struct agx_str s = { 0 };

        item = agx_yaml_walk_visit(&r->walk, at);
        rc = item ? scalar_text(r, item, &s) : -AGX_INVALID_ARGUMENT;
        if (rc == 0)
            rc = agx_words_add(to, s, r->walk.err);
    }
    return rc;
}

static int read_command(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    const struct agx_words *w = to;
    int rc = read_words(r, n, to);

    if (rc < 0)
        return rc;
    if (w->len == 0)
        return agx_error_set(r->walk.err, AGX_INVALID_ARGUMENT,
                             "%scommand: empty array is not allowed", r->field);
    for (size_t i = 0; i < w->len; i++)
        if (!w->items[i][0])
            return agx_error_set(r->walk.err, AGX_INVALID_ARGUMENT,
                                 "%scommand[%zu]: empty string entry is not allowed", r->field, i);
    return 0;
}

static int read_pairs(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    _cleanup_(agx_yaml_entries_done) struct agx_yaml_entries e = { 0 };
    int rc = agx_yaml_walk_entries(&r->walk, n, &e);

    for (size_t i = 0; rc == 0 && i < e.len; i++) {
        struct agx_str value;

        if ((rc = scalar_text(r, e.items[i].value, &value)) == 0)
            rc = agx_pairs_set(to, agx_yaml_text(r->walk.y, e.items[i].key), value, r->walk.err);
    }
    return rc;
}

/* A list of mappings; `one` adds an element to the spec and reads into it. */
static int read_list(struct reader *r, const struct agx_yaml_node *n,
                     int (*one)(struct reader *r, const struct agx_yaml_node *n))
{
    const struct agx_yaml_node *item;
    int rc = 0;

    if (n->kind != AGX_YAML_SEQUENCE)
        return agx_yaml_walk_bad(&r->walk, n, "expected a list");
    for (uint32_t at = n->first; rc == 0 && at; at = r->walk.y->nodes[at].next) {
        item = agx_yaml_walk_visit(&r->walk, at);
        rc = item ? one(r, item) : -AGX_INVALID_ARGUMENT;
    }
    return rc;
}

static int read_mount(struct reader *r, const struct agx_yaml_node *n)
{
    static const struct field fields[] = {
        { "source", read_text, offsetof(struct agx_mount, source) },
        { "target", read_text, offsetof(struct agx_mount, target) },
        { "writable", read_bool, offsetof(struct agx_mount, writable) },
        { "suid", read_suid, offsetof(struct agx_mount, suid) },
    };
    struct agx_mount *m = NULL;
    int rc = agx_spec_add_mount(r->spec, &m, r->walk.err);

    return rc < 0 ? rc : READ_FIELDS(r, n, fields, m);
}

static int read_copy(struct reader *r, const struct agx_yaml_node *n)
{
    static const struct field fields[] = {
        { "source", read_text, offsetof(struct agx_copy, source) },
        { "target", read_text, offsetof(struct agx_copy, target) },
        { "exclude_patterns", read_words, offsetof(struct agx_copy, exclude_patterns) },
    };
    struct agx_copy *c = NULL;
    int rc = agx_spec_add_copy(r->spec, &c, r->walk.err);

    return rc < 0 ? rc : READ_FIELDS(r, n, fields, c);
}

static int read_port(struct reader *r, const struct agx_yaml_node *n)
{
    static const struct field fields[] = {
        { "container_port", read_u32, offsetof(struct agx_port, container_port) },
        { "host_port", read_u32, offsetof(struct agx_port, host_port) },
        { "protocol", read_protocol, offsetof(struct agx_port, protocol) },
    };
    struct agx_port *p = NULL;
    int rc = agx_spec_add_port(r->spec, &p, r->walk.err);

    return rc < 0 ? rc : READ_FIELDS(r, n, fields, p);
}

static int read_mounts(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    (void)to;
    return read_list(r, n, read_mount);
}

static int read_copies(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    (void)to;
    return read_list(r, n, read_copy);
}

static int read_ports(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    (void)to;
    return read_list(r, n, read_port);
}

static int read_healthcheck(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    static const struct field fields[] = {
        { "test", read_words, offsetof(struct agx_healthcheck, test) },
        { "interval", read_duration, offsetof(struct agx_healthcheck, interval_ns) },
        { "timeout", read_duration, offsetof(struct agx_healthcheck, timeout_ns) },
        { "retries", read_u32, offsetof(struct agx_healthcheck, retries) },
        { "start_period", read_duration, offsetof(struct agx_healthcheck, start_period_ns) },
        { "start_interval", read_duration, offsetof(struct agx_healthcheck, start_interval_ns) },
    };
    struct agx_healthcheck *h = to;

    h->set = true;
    return READ_FIELDS(r, n, fields, h);
}

static int read_companion(struct reader *r, struct agx_yaml_entry entry)
{
    static const struct field fields[] = {
        { "image", read_text, offsetof(struct agx_companion, image) },
        { "envs", read_pairs, offsetof(struct agx_companion, envs) },
        { "healthcheck", read_healthcheck, offsetof(struct agx_companion, healthcheck) },
        { "post_start_on_primary", read_words,
          offsetof(struct agx_companion, post_start_on_primary) },
        { "command", read_command, offsetof(struct agx_companion, command) },
        { "cpu_limit", read_text, offsetof(struct agx_companion, limits.cpu) },
        { "memory_limit", read_text, offsetof(struct agx_companion, limits.memory) },
        { "disk_limit", read_text, offsetof(struct agx_companion, limits.disk) },
    };
    struct agx_companion *c = NULL;
    int rc = agx_spec_add_companion(r->spec, &c, r->walk.err);

    if (rc < 0 || (rc = read_text(r, entry.key, &c->name)) < 0)
        return rc;
    if (agx_yaml_is_null(r->walk.y, entry.value))
        return 0;
    (void)snprintf(r->field, sizeof(r->field), "companion_containers[%.*s].",
                   agx_text_cut(agx_str_from(c->name), TEXT_MAX), agx_text(c->name));
    rc = READ_FIELDS(r, entry.value, fields, c);
    r->field[0] = '\0';
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    const struct agx_companion *x = a, *y = b;

    return strcmp(agx_text(x->name), agx_text(y->name));
}

static int read_companions(struct reader *r, const struct agx_yaml_node *n, void *to)
{
    _cleanup_(agx_yaml_entries_done) struct agx_yaml_entries e = { 0 };
    int rc = agx_yaml_walk_entries(&r->walk, n, &e);

    (void)to;
    for (size_t i = 0; rc == 0 && i < e.len; i++)
        rc = read_companion(r, e.items[i]);
    if (rc == 0 && r->spec->companions_len > 1)
        qsort(r->spec->companions, r->spec->companions_len, sizeof(*r->spec->companions),
              compare_names);
    return rc;
}

static int read_spec(struct reader *r)
{
    static const struct field fields[] = {
        { "image", read_text, offsetof(struct agx_spec, image) },
        { "mounts", read_mounts, 0 },
        { "copies", read_copies, 0 },
        { "ports", read_ports, 0 },
        { "builtin_tools", read_words, offsetof(struct agx_spec, builtin_tools) },
        { "companion_containers", read_companions, 0 },
        { "labels", read_pairs, offsetof(struct agx_spec, labels) },
        { "envs", read_pairs, offsetof(struct agx_spec, envs) },
        { "idle_ttl", read_duration, offsetof(struct agx_spec, idle_ttl_ns) },
        { "command", read_command, offsetof(struct agx_spec, command) },
        { "cpu_limit", read_text, offsetof(struct agx_spec, limits.cpu) },
        { "memory_limit", read_text, offsetof(struct agx_spec, limits.memory) },
        { "disk_limit", read_text, offsetof(struct agx_spec, limits.disk) },
        { "gpus", read_text, offsetof(struct agx_spec, gpus) },
        { "network", read_network, offsetof(struct agx_spec, network) },
        { "egress", read_words, offsetof(struct agx_spec, egress) },
    };

    return READ_FIELDS(r, agx_yaml_node(r->walk.y, AGX_YAML_ROOT), fields, r->spec);
}

int agx_spec_from_yaml(struct agx_spec *ret, struct agx_str bytes, struct agx_error **err)
{
    struct agx_yaml y = { 0 };
    struct agx_spec spec;
    struct reader r = { .walk = { &y, AGX_YAML_NODES_MAX, err }, .spec = &spec };
    int rc;

    agx_spec_init(&spec);
    if (bytes.len > AGX_YAML_MAX)
        rc = agx_error_set(err, AGX_INVALID_ARGUMENT, "longer than %zu bytes", AGX_YAML_MAX);
    else
        rc = agx_yaml_parse(&y, bytes, AGX_YAML_NODES_MAX, err);
    if (rc == 0)
        rc = read_spec(&r);
    agx_yaml_done(&y);
    if (rc < 0) {
        agx_spec_done(&spec);
        return agx_error_wrap(err, rc, "invalid config_yaml");
    }
    *ret = spec;
    return 0;
}

/* Without a file the request is used unchanged: duplicate tools are only tolerated after a merge.
 */
static int spec_yaml_join(struct agx_spec *spec, struct agx_str yaml, const struct agx_spec *create,
                          struct agx_error **err)
{
    struct agx_spec none;
    int r;

    if (yaml.len == 0)
        return agx_spec_copy(spec, create, err);
    r = agx_spec_from_yaml(spec, yaml, err);
    if (r < 0)
        return r;
    agx_spec_init(&none);
    return agx_spec_merge(spec, create ? create : &none, err);
}

int agx_spec_join(struct agx_spec *ret, struct agx_str yaml, const struct agx_spec *create,
                  struct agx_error **err)
{
    struct agx_spec spec;
    int r;

    if (yaml.len == 0 && !create)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "create_spec is required");
    agx_spec_init(&spec);
    r = spec_yaml_join(&spec, yaml, create, err);
    if (r < 0)
        agx_spec_done(&spec);
    else
        *ret = spec;
    return r;
}

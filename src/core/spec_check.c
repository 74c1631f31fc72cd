/*
 * spec_check.c: validates specs.
 *
 * The order and the texts of the checks are part of the contract: clients show the first failure.
 * Each function here is one step of that order.
 */
#include "core/spec.h"

#include "base/banned.h"
#include "base/cpu.h"
#include "base/limits.h"
#include "base/size.h"
#include "core/egress.h"
#include "core/ident.h"
#include "core/spec_internal.h"
#include "core/tool.h"

#include <inttypes.h>

#define RESERVED_ENV "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS"
#define NAME_QUOTED_MAX 200         /* of a companion's name in a message */
#define ROOM (NAME_QUOTED_MAX + 32) /* for the path of a field in a message */

#define invalid(err, ...) agx_error_set(err, AGX_INVALID_ARGUMENT, __VA_ARGS__)

static int check_scalars(const struct agx_spec *s, struct agx_error **err)
{
    if (!s->image)
        return invalid(err, "create_spec.image is required");
    if (s->idle_ttl_ns != AGX_NS_UNSET && s->idle_ttl_ns < 0)
        return invalid(err, "idle_ttl must not be negative");
    if (s->gpus && strcmp(s->gpus, "all") != 0)
        return invalid(err, "gpus '%s' is not supported: use \"\" or \"all\"", s->gpus);
    if (agx_pairs_get(&s->envs, RESERVED_ENV))
        return invalid(err, "envs." RESERVED_ENV " is reserved for the daemon");
    return 0;
}

/* "~name/...": only the host's passwd file knows that home. */
static bool names_other_home(const char *path)
{
    return path && path[0] == '~' && path[1] != '\0' && path[1] != '/';
}

int agx_spec_clean_path(const char *path, char **ret, struct agx_error **err)
{
    size_t len = 0;
    char *out = malloc(strlen(path) + 2);

    if (!out)
        return agx_error_no_memory(err);
    while (*path) {
        struct agx_str part = agx_str_from(path);

        part.len = agx_str_find(part, '/');
        path += part.len + (path[part.len] == '/');
        if (part.len == 0 || agx_str_eq(part, AGX_STR(".")))
            continue;
        if (agx_str_eq(part, AGX_STR(".."))) {
            while (len > 0 && out[--len] != '/')
                ;
            continue;
        }
        out[len++] = '/';
        memcpy(out + len, part.ptr, part.len);
        len += part.len;
    }
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    *ret = out;
    return 0;
}

/* Replaces *slot, which is absolute or begins with "~", with its clean form. */
static int expand(char **slot, const char *home, struct agx_error **err)
{
    _cleanup_free_ char *joined = NULL;
    char *clean = NULL;
    int r;

    if ((*slot)[0] == '~') {
        size_t size = strlen(home) + strlen(*slot) + 1;

        joined = malloc(size);
        if (!joined)
            return agx_error_no_memory(err);
        (void)snprintf(joined, size, "%s%s", home, *slot + 1);
    }
    r = agx_spec_clean_path(joined ? joined : *slot, &clean, err);
    if (r < 0)
        return r;
    free(*slot);
    *slot = clean;
    return 0;
}

static bool is_absolute(const char *path)
{
    return path[0] == '/' || path[0] == '~';
}

static int check_source(const char *what, char **source, const struct agx_spec_host *host,
                        struct agx_error **err)
{
    enum agx_path_kind kind;
    int r;

    if (!is_absolute(*source))
        return invalid(err, "%s source must be absolute: %s", what, *source);
    if ((r = expand(source, host->home, err)) < 0)
        return r;
    r = host->look(host->user, *source, &kind, err);
    if (r == -AGX_RESOURCE_EXHAUSTED)
        return r;
    if (r < 0)
        return agx_error_wrap(err, -AGX_INVALID_ARGUMENT, "%s source path is invalid", what);
    if (kind == AGX_PATH_SYMLINK)
        return invalid(err, "%s source must not be a symlink: %s", what, *source);
    if (kind == AGX_PATH_OTHER)
        return invalid(err, "%s source must be a file, directory, or unix socket: %s", what,
                       *source);
    return 0;
}

static int check_target(const struct agx_spec *s, const char *what, char **target,
                        const struct agx_spec_host *host, struct agx_error **err)
{
    int r;

    if (!*target)
        return invalid(err, "%s target is required", what);
    if (!is_absolute(*target))
        return invalid(err, "%s target must be absolute: %s", what, *target);
    if ((r = expand(target, host->sandbox_home, err)) < 0)
        return r;
    /* All earlier ones were checked, and their targets are clean. */
    for (size_t i = 0; i < s->mounts_len && target != &s->mounts[i].target; i++)
        if (agx_text_eq(s->mounts[i].target, *target))
            return invalid(err, "conflicting target %s between mount and %s", *target, what);
    if (strcmp(what, "copy") != 0)
        return 0;
    for (size_t i = 0; target != &s->copies[i].target; i++)
        if (agx_text_eq(s->copies[i].target, *target))
            return invalid(err, "conflicting target %s between copy and copy", *target);
    return 0;
}

static int check_homes(const char *source, const char *target, const char *what,
                       struct agx_error **err)
{
    if (!source)
        return invalid(err, "%s source is required", what);
    if (names_other_home(source))
        return invalid(err, "~username syntax is not supported: %s", source);
    if (names_other_home(target))
        return invalid(err, "~username syntax is not supported: %s", target);
    return 0;
}

static int check_mounts(struct agx_spec *s, const struct agx_spec_host *host,
                        struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->mounts_len; i++) {
        struct agx_mount *m = &s->mounts[i];

        if ((r = check_homes(m->source, m->target, "mount", err)) == 0 &&
            (r = check_source("mount", &m->source, host, err)) == 0)
            r = check_target(s, "mount", &m->target, host, err);
        if (r == 0 && (m->suid < 0 || m->suid >= AGX_SUID_COUNT))
            r = invalid(err, "suid of mount \"%s\" must be deny or allow, got %" PRId32, m->target,
                        m->suid);
    }
    return r;
}

static int check_copies(struct agx_spec *s, const struct agx_spec_host *host,
                        struct agx_error **err)
{
    for (size_t i = 0; i < s->copies_len; i++) {
        struct agx_copy *c = &s->copies[i];
        int r;

        if ((r = check_homes(c->source, c->target, "copy", err)) < 0 ||
            (r = check_source("copy", &c->source, host, err)) < 0)
            return r;
        if (agx_text_eq(c->source, "/"))
            return invalid(err, "copy source must not be the root directory");
        if ((r = check_target(s, "copy", &c->target, host, err)) < 0)
            return r;
    }
    return 0;
}

static int check_port_number(const char *what, uint32_t n, struct agx_error **err)
{
    if (n < 1 || n > 65535)
        return invalid(err, "port %s must be between 1 and 65535, got %" PRIu32, what, n);
    return 0;
}

static int check_ports(const struct agx_spec *s, struct agx_error **err)
{
    for (size_t i = 0; i < s->ports_len; i++) {
        const struct agx_port *p = &s->ports[i];
        int r;

        if ((r = check_port_number("container_port", p->container_port, err)) < 0 ||
            (r = check_port_number("host_port", p->host_port, err)) < 0)
            return r;
        if (p->protocol < 0 || p->protocol >= AGX_PROTOCOL_COUNT)
            return invalid(err, "port protocol must be TCP, UDP, or SCTP, got %" PRId32,
                           p->protocol);
        for (size_t j = 0; j < i; j++)
            if (s->ports[j].host_port == p->host_port && s->ports[j].protocol == p->protocol)
                return invalid(err, "duplicate host_port %" PRIu32 " with protocol %s",
                               p->host_port, agx_protocol_name((enum agx_protocol)p->protocol));
    }
    return 0;
}

static int check_command(const struct agx_words *command, const char *field, struct agx_error **err)
{
    for (size_t i = 0; i < command->len; i++)
        if (!command->items[i][0])
            return invalid(err, "%scommand[%zu]: empty string entry is not allowed", field, i);
    return 0;
}

static int check_healthcheck(const struct agx_healthcheck *h, const char *field,
                             struct agx_error **err)
{
    const char *first = h->test.len > 0 ? h->test.items[0] : NULL;
    bool none = first && strcmp(first, "NONE") == 0;

    if (!h->set)
        return 0;
    if (!first)
        return invalid(err, "%shealthcheck.test is required", field);
    if (!none && strcmp(first, "CMD") != 0 && strcmp(first, "CMD-SHELL") != 0)
        return invalid(err, "%shealthcheck.test must begin with CMD, CMD-SHELL or NONE, got '%s'",
                       field, first);
    if (none && h->test.len > 1)
        return invalid(err, "%shealthcheck.test: NONE takes no arguments", field);
    if (!none && h->test.len < 2)
        return invalid(err, "%shealthcheck.test: %s needs a command", field, first);
    return 0;
}

/* "companion_containers[db]." */
static const char *companion_field(const struct agx_companion *c, char out[ROOM])
{
    struct agx_str name = agx_str_from(agx_text(c->name));

    (void)snprintf(out, ROOM, "companion_containers[%.*s].", agx_text_cut(name, NAME_QUOTED_MAX),
                   name.ptr);
    return out;
}

/* Whether it is one word of one line in a hosts file. */
static bool is_host_word(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ' || s.ptr[i] == 0x7f || s.ptr[i] == '#')
            return false;
    return true;
}

/* Parts of a sandbox find each other by these names, through /etc/hosts. */
static int check_companion_name(const struct agx_companion *c, size_t i, bool any_names,
                                struct agx_error **err)
{
    struct agx_str name = agx_str_from(c->name);
    int quoted = agx_text_cut(name, NAME_QUOTED_MAX);

    if (!is_host_word(name))
        return invalid(err,
                       "companion_containers[%zu].name '%.*s' must not contain blanks, control "
                       "characters or '#'",
                       i, quoted, name.ptr);
    if (!any_names && !agx_ident_is_label(name))
        return invalid(err,
                       "companion_containers[%zu].name '%.*s' must be 1 to %d letters, digits or "
                       "'-', with a letter or digit at both ends",
                       i, quoted, name.ptr, AGX_LABEL_MAX);
    return 0;
}

static int check_companions(const struct agx_spec *s, bool any_names, struct agx_error **err)
{
    char field[ROOM];

    for (size_t i = 0; i < s->companions_len; i++) {
        const struct agx_companion *c = &s->companions[i];
        int r;

        (void)companion_field(c, field);
        if (!c->name)
            return invalid(err, "companion_containers[%zu].name is required", i);
        if ((r = check_companion_name(c, i, any_names, err)) < 0)
            return r;
        if (!c->image)
            return invalid(err, "%simage is required", field);
        for (size_t j = 0; j < i; j++)
            if (agx_text_eq(s->companions[j].name, c->name))
                return invalid(err, "duplicate companion container name '%s'", c->name);
        if (c->post_start_on_primary.len > 0 && !c->healthcheck.set)
            return invalid(err, "%spost_start_on_primary needs a healthcheck", field);
        if ((r = check_healthcheck(&c->healthcheck, field, err)) < 0 ||
            (r = check_command(&c->command, field, err)) < 0)
            return r;
    }
    return 0;
}

/* Parses one limit; a message has the field's path, the text and the reason. */
static int parse_limit(int (*parse)(struct agx_str, int64_t *, struct agx_error **),
                       const char *text, const char *field, const char *name, int64_t *ret,
                       struct agx_error **err)
{
    int r;

    *ret = 0;
    if (!text)
        return 0;
    r = parse(agx_str_from(text), ret, err);
    if (r < 0 && r != -AGX_RESOURCE_EXHAUSTED)
        return agx_error_wrap(err, -AGX_INVALID_ARGUMENT, "%s%s: %s%s \"%s\"", field, name, field,
                              name, text);
    return r;
}

int agx_limits_parse(const struct agx_limit_texts *texts, const char *field, struct agx_limits *ret,
                     struct agx_error **err)
{
    int r;

    if ((r = parse_limit(agx_cpu_parse, texts->cpu, field, "cpu_limit", &ret->cpu_millicores,
                         err)) < 0 ||
        (r = parse_limit(agx_size_parse, texts->memory, field, "memory_limit", &ret->memory_bytes,
                         err)) < 0)
        return r;
    return parse_limit(agx_size_parse, texts->disk, field, "disk_limit", &ret->disk_bytes, err);
}

static int check_limits(const struct agx_spec *s, struct agx_error **err)
{
    struct agx_limits limits;
    char field[ROOM];
    int r = agx_limits_parse(&s->limits, "", &limits, err);

    for (size_t i = 0; r == 0 && i < s->companions_len; i++)
        r = agx_limits_parse(&s->companions[i].limits, companion_field(&s->companions[i], field),
                             &limits, err);
    return r;
}

static int check_tools(const struct agx_spec *s, bool whole, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->builtin_tools.len; i++) {
        const char *tool = s->builtin_tools.items[i];
        const struct agx_words before = { s->builtin_tools.items, i };

        if (!tool[0])
            return invalid(err, "builtin resource id is required");
        if (agx_words_has(&before, tool))
            return invalid(err, "duplicate builtin resource \"%s\"", tool);
        r = agx_tool_check(tool, whole, err);
    }
    return r;
}

/* Our own checks come last, so that the others keep the order that clients expect. */
static int check_network(const struct agx_spec *s, struct agx_error **err)
{
    if (s->network < 0 || s->network >= AGX_NETWORK_COUNT)
        return invalid(err, "network must be nat, none or egress, got %" PRId32, s->network);
    if (s->egress.len > 0 && s->network != AGX_NETWORK_EGRESS)
        return invalid(err, "egress entries need network egress");
    if (s->ports_len > 0 && s->network == AGX_NETWORK_NONE)
        return invalid(err, "ports need a network, and network is none");
    if (s->egress.len > AGX_SPEC_ITEMS_MAX)
        return invalid(err, "egress has more than %d entries", AGX_SPEC_ITEMS_MAX);
    for (size_t i = 0; i < s->egress.len; i++) {
        struct agx_egress e;
        int r = agx_egress_parse(agx_str_from(s->egress.items[i]), &e, err);

        if (r < 0)
            return r;
    }
    return 0;
}

int agx_spec_accept(struct agx_spec *s, const struct agx_spec_host *host, struct agx_error **err)
{
    int r;

    if ((r = check_scalars(s, err)) < 0 || (r = check_mounts(s, host, err)) < 0 ||
        (r = check_copies(s, host, err)) < 0 || (r = check_ports(s, err)) < 0 ||
        (r = check_companions(s, host->any_companion_names, err)) < 0 ||
        (r = check_command(&s->command, "", err)) < 0 || (r = check_limits(s, err)) < 0 ||
        (r = check_tools(s, host->whole_tools, err)) < 0)
        return r;
    return check_network(s, err);
}

/*
 * config.c: parses values into struct agx_config; its row of the table checks each one.
 *
 * The file is a mapping of keys, and of sections that are mappings of keys. The parser refuses
 * duplicate keys, so every value is read at most once.
 */
#include "daemon/config_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "backend/net/subnets.h"
#include "base/banned.h"
#include "base/duration.h"
#include "base/size.h"
#include "core/yaml.h"

#define ALLOWED_SIZE 400 /* of the text that describes allowed values */
#define TEXT_MAX 200     /* of text quoted from the file in a message */

/* Where a value comes from: a node of a file, or the text of an option. */
struct value {
    const struct agx_yaml *y; /* NULL: an option */
    const struct agx_yaml_node *node;
    const char *name; /* of the file */
    struct agx_str text;
};

/* ---- numbers of different widths ---- */

uint64_t agx_config_number(const struct agx_config *c, const struct agx_config_key *k)
{
    const char *at = (const char *)c + k->offset;
    uint64_t n64;
    uint32_t n32;

    assert(k->width == 1 || k->width == sizeof(n32) || k->width == sizeof(n64));
    if (k->width == 1)
        return *(const bool *)at;
    if (k->width == sizeof(n32)) {
        memcpy(&n32, at, sizeof(n32));
        return n32;
    }
    memcpy(&n64, at, sizeof(n64));
    return n64;
}

static void set_number(struct agx_config *c, const struct agx_config_key *k, uint64_t n64)
{
    char *at = (char *)c + k->offset;
    uint32_t n32 = (uint32_t)n64;

    if (k->width == 1)
        *(bool *)at = n64 != 0;
    else if (k->width == sizeof(n32))
        memcpy(at, &n32, sizeof(n32));
    else
        memcpy(at, &n64, sizeof(n64));
}

/* ---- the description of allowed values ---- */

static void describe_range(const struct agx_config_key *k, char out[ALLOWED_SIZE])
{
    char a[AGX_DURATION_TEXT_SIZE], b[AGX_DURATION_TEXT_SIZE];

    if (k->kind == AGX_CONFIG_SPAN) {
        (void)agx_duration_format((int64_t)(k->min * k->unit_ns), a);
        (void)agx_duration_format((int64_t)(k->max * k->unit_ns), b);
        (void)snprintf(out, ALLOWED_SIZE, "a time such as 1m30s, from %s to %s", a, b);
    } else if (k->kind == AGX_CONFIG_SIZE) {
        (void)agx_size_format((int64_t)k->min, a);
        (void)agx_size_format((int64_t)k->max, b);
        (void)snprintf(out, ALLOWED_SIZE, "a size such as 64m, from %s to %s", a, b);
    } else {
        (void)snprintf(out, ALLOWED_SIZE, "a number from %" PRIu64 " to %" PRIu64, k->min, k->max);
    }
}

static void describe(const struct agx_config_key *k, char out[ALLOWED_SIZE])
{
    size_t at;

    switch (k->kind) {
    case AGX_CONFIG_FLAG:
        (void)snprintf(out, ALLOWED_SIZE, "true or false");
        break;
    case AGX_CONFIG_TEXT:
        (void)snprintf(out, ALLOWED_SIZE, "a text");
        break;
    case AGX_CONFIG_UIDS:
        (void)snprintf(out, ALLOWED_SIZE, "a list of user ids, at most %d", AGX_ALLOW_UIDS_MAX);
        break;
    case AGX_CONFIG_CHOICE:
        at = (size_t)snprintf(out, ALLOWED_SIZE, "one of");
        for (const char *const *w = k->words; *w && at < ALLOWED_SIZE; w++)
            at += (size_t)snprintf(out + at, ALLOWED_SIZE - at, "%s %s", w == k->words ? "" : ",",
                                   *w);
        break;
    default:
        describe_range(k, out);
    }
}

/* Prefixes a message with the value's file and line. */
static int at_place(const struct value *v, int r, struct agx_error **err)
{
    return v->y ? agx_error_wrap(err, r, "%s: line %u", v->name, v->node->line) : r;
}

static int config_refuse(const struct agx_config_key *k, const struct value *v,
                         struct agx_error **err)
{
    char allowed[ALLOWED_SIZE];
    int r;

    describe(k, allowed);
    if (v->node && v->node->kind != AGX_YAML_SCALAR)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is %s", k->name, allowed);
    else
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is '%.*s', but it must be %s", k->name,
                          (int)AGX_MIN(v->text.len, TEXT_MAX), v->text.len > 0 ? v->text.ptr : "",
                          allowed);
    return at_place(v, r, err);
}

/* ---- values ---- */

static bool parse_span(const struct agx_config_key *k, struct agx_str text, uint64_t *ret)
{
    int64_t ns;

    if (agx_duration_parse(text, &ns, NULL) < 0 || ns < 0)
        return false;
    *ret = (uint64_t)ns / k->unit_ns;
    return true;
}

static bool parse_size(struct agx_str text, uint64_t *ret)
{
    int64_t bytes;

    if (agx_size_parse(text, &bytes, NULL) < 0)
        return false;
    *ret = (uint64_t)bytes;
    return true;
}

static bool parse_flag(struct agx_str text, uint64_t *ret)
{
    *ret = agx_str_eq(text, AGX_STR("true"));
    return *ret || agx_str_eq(text, AGX_STR("false"));
}

static bool parse_choice(const struct agx_config_key *k, struct agx_str text, uint64_t *ret)
{
    for (uint64_t i = 0; k->words[i]; i++) {
        if (agx_str_eq(text, agx_str_from(k->words[i]))) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool parse_number(const struct agx_config_key *k, struct agx_str text, uint64_t *ret)
{
    switch (k->kind) {
    case AGX_CONFIG_FLAG:
        return parse_flag(text, ret);
    case AGX_CONFIG_SIZE:
        return parse_size(text, ret);
    case AGX_CONFIG_SPAN:
        return parse_span(k, text, ret);
    case AGX_CONFIG_CHOICE:
        return parse_choice(k, text, ret);
    default:
        return agx_parse_u64(text, k->max, ret);
    }
}

static int set_text(struct agx_config *c, const struct agx_config_key *k, struct agx_str text,
                    struct agx_error **err)
{
    char **at = (char **)(void *)((char *)c + k->offset), *copy = agx_str_dup(text);

    if (!copy)
        return agx_error_errno(err, ENOMEM, "keep '%s'", k->name);
    free(*at);
    *at = copy;
    return 0;
}

static int read_uids(struct agx_config *c, const struct agx_config_key *k, const struct value *v,
                     struct agx_error **err)
{
    struct agx_config_uids *uids = (void *)((char *)c + k->offset);
    uint64_t id;

    if (!v->node || v->node->kind != AGX_YAML_SEQUENCE)
        return config_refuse(k, v, err);
    uids->len = 0;
    for (uint32_t at = v->node->first; at; at = v->y->nodes[at].next) {
        struct value item = { .y = v->y, .node = agx_yaml_node(v->y, at), .name = v->name };

        if (item.node->kind != AGX_YAML_SCALAR || uids->len == AGX_ALLOW_UIDS_MAX)
            return config_refuse(k, v, err);
        item.text = agx_yaml_text(v->y, item.node);
        if (!agx_parse_u64(item.text, UINT32_MAX - 1, &id)) /* the highest number means "no user" */
            return config_refuse(k, &item, err);
        uids->ids[uids->len++] = (uint32_t)id;
    }
    return 0;
}

static int set_value(struct agx_config *c, const struct agx_config_key *k, const struct value *v,
                     struct agx_error **err)
{
    uint64_t n;

    if (k->kind == AGX_CONFIG_UIDS)
        return read_uids(c, k, v, err);
    if (v->node && (v->node->kind != AGX_YAML_SCALAR || agx_yaml_is_null(v->y, v->node)))
        return config_refuse(k, v, err);
    if (k->kind == AGX_CONFIG_TEXT)
        return set_text(c, k, v->text, err);
    if (!parse_number(k, v->text, &n) || n < k->min || n > k->max)
        return config_refuse(k, v, err);
    set_number(c, k, n);
    return 0;
}

/* ---- keys ---- */

/* The key "section.name", or with an empty section "name". */
static const struct agx_config_key *find_key(struct agx_str section, struct agx_str name)
{
    if (agx_str_find(name, '.') < name.len) /* the file nssets its keys */
        return NULL;
    for (size_t i = 0; i < agx_config_keys_len; i++) {
        struct agx_str key = agx_str_from(agx_config_keys[i].name);
        size_t front = section.len > 0 ? section.len + 1 : 0;

        if (key.len == front + name.len && agx_str_starts(key, section) &&
            (front == 0 || key.ptr[section.len] == '.') &&
            agx_str_eq(agx_str_skip(key, front), name))
            return &agx_config_keys[i];
    }
    return NULL;
}

static bool is_section(struct agx_str name)
{
    for (size_t i = 0; i < agx_config_keys_len; i++) {
        struct agx_str key = agx_str_from(agx_config_keys[i].name);

        if (agx_str_starts(key, name) && key.len > name.len && key.ptr[name.len] == '.')
            return true;
    }
    return false;
}

/* Lists the keys of a section, or all names at the top level. */
static void list_names(struct agx_str section, struct agx_buf *out)
{
    struct agx_str last = { 0 };

    for (size_t i = 0; i < agx_config_keys_len; i++) {
        struct agx_str rest = agx_str_from(agx_config_keys[i].name), part;

        if (section.len > 0 && (!agx_str_split(&rest, '.', &part) || !agx_str_eq(part, section)))
            continue;
        if (!agx_str_split(&rest, '.', &part) || agx_str_eq(part, last))
            continue;
        (void)!agx_buf_printf(out, "%s%.*s", out->len > 0 ? ", " : "", AGX_STR_ARG(part));
        last = part;
    }
}

static int refuse_key(const struct value *key, struct agx_str section, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf names = AGX_BUF_INIT(1000);
    int r;

    list_names(section, &names);
    r = agx_error_set(err, AGX_INVALID_ARGUMENT, "there is no key '%.*s%s%.*s'; there are %.*s",
                      AGX_STR_ARG(section), section.len > 0 ? "." : "",
                      (int)AGX_MIN(key->text.len, TEXT_MAX), key->text.ptr,
                      AGX_STR_ARG(agx_buf_peek(&names)));
    return at_place(key, r, err);
}

/* ---- files ---- */

struct reader {
    struct agx_config *c;
    const struct agx_yaml *y;
    const char *name;
    struct agx_error **err;
};

static struct value value_at(const struct reader *r, uint32_t at)
{
    struct value v = { .y = r->y, .node = agx_yaml_node(r->y, at), .name = r->name };

    if (v.node->kind == AGX_YAML_SCALAR)
        v.text = agx_yaml_text(r->y, v.node);
    return v;
}

static int read_mapping(struct reader *r, const struct value *mapping, struct agx_str section);

static int read_pair(struct reader *r, const struct value *key, const struct value *value,
                     struct agx_str section)
{
    const struct agx_config_key *k = find_key(section, key->text);

    if (k)
        return set_value(r->c, k, value, r->err);
    if (section.len > 0 || !is_section(key->text))
        return refuse_key(key, section, r->err);
    if (agx_yaml_is_null(r->y, value->node)) /* a section whose keys are commented out */
        return 0;
    return read_mapping(r, value, key->text);
}

/* Reads the whole file or a section; sections do not nsset. */
static int read_mapping(struct reader *r, const struct value *mapping, struct agx_str section)
{
    int rc = 0;

    if (mapping->node->kind != AGX_YAML_MAPPING) {
        rc = section.len > 0
                 ? agx_error_set(r->err, AGX_INVALID_ARGUMENT, "'%.*s' must be keys with values",
                                 AGX_STR_ARG(section))
                 : agx_error_set(r->err, AGX_INVALID_ARGUMENT, "the file must be keys with values");
        return at_place(mapping, rc, r->err);
    }
    for (uint32_t at = mapping->node->first; rc == 0 && at;) {
        uint32_t second = r->y->nodes[at].next;
        struct value key = value_at(r, at), value = value_at(r, second);

        rc = read_pair(r, &key, &value, section);
        at = r->y->nodes[second].next;
    }
    return rc;
}

/* True for a file of only blanks and comments. */
static bool is_empty(struct agx_str text)
{
    struct agx_str line;

    while (agx_str_split(&text, '\n', &line)) {
        line = agx_str_trim(line);
        if (line.len > 0 && line.ptr[0] != '#' && line.ptr[0] != '\r')
            return false;
    }
    return true;
}

int agx_config_read(struct agx_config *c, struct agx_str yaml, const char *name,
                    struct agx_error **err)
{
    struct agx_yaml y = { 0 };
    struct reader r = { .c = c, .y = &y, .name = name, .err = err };
    struct value root;
    int rc;

    if (is_empty(yaml))
        return 0;
    rc = agx_yaml_parse(&y, yaml, AGX_CONFIG_NODES_MAX, err);
    if (rc < 0)
        return agx_error_wrap(err, rc, "%s", name);
    root = value_at(&r, AGX_YAML_ROOT);
    if (!agx_yaml_is_null(&y, root.node))
        rc = read_mapping(&r, &root, AGX_STR(""));
    agx_yaml_done(&y);
    return rc;
}

int agx_config_set(struct agx_config *c, const char *key, const char *value, struct agx_error **err)
{
    const struct agx_config_key *k = find_key(AGX_STR(""), agx_str_from(key));
    struct value v = { .text = agx_str_from(value) };

    assert(k); /* callers pass constant key names */
    return set_value(c, k, &v, err);
}

/* Checks the pool the way the backend will split it. */
static int check_pool(const struct agx_config_docker *d, struct agx_error **err)
{
    struct agx_subnets subnets;
    struct agx_subnet pool;
    int r = agx_subnet_parse(agx_str_from(d->pool ? d->pool : AGX_SUBNETS_POOL), &pool, err);

    if (r < 0)
        return agx_error_wrap(err, r, "'docker.pool'");
    r = agx_subnets_init(&subnets, &pool, d->pool_prefix, 0, err);
    return r < 0 ? agx_error_wrap(err, r, "'docker.pool' and 'docker.pool_prefix'") : 0;
}

int agx_config_check(const struct agx_config *c, struct agx_error **err)
{
    if (c->store.map_bytes > c->store.map_max)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'store.map_size' must not be more than 'store.map_max'");
    if (c->manager.watch.first_retry_ms > c->manager.watch.max_retry_ms)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'crash.first_retry' must not be more than 'crash.max_retry'");
    if (c->manager.retry_first_ms > c->manager.retry_max_ms)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'retry.first' must not be more than 'retry.max'");
    if (c->shutdown_grace_ms >= c->shutdown_limit_ms)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'shutdown.grace' must be less than 'shutdown.limit'");
    if (c->docker.init && c->docker.init[0] && c->docker.init[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'docker.init' must be an absolute path");
    if (c->native.init && c->native.init[0] && c->native.init[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'native.init' must be an absolute path");
    return check_pool(&c->docker, err);
}

void agx_config_done(struct agx_config *c)
{
    if (!c)
        return;
    free(c->backend);
    free(c->docker.pool);
    free(c->docker.init);
    free(c->images.insecure_registries);
    free(c->native.pool);
    free(c->native.init);
    c->backend = c->docker.pool = c->docker.init = c->images.insecure_registries = NULL;
    c->native.pool = c->native.init = NULL;
}

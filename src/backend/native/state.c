/* state.c: the record of a sandbox as JSON. */
#include "backend/native/state.h"

#include "base/limits.h"
#include "core/json_optional.h"

#include "base/banned.h"

#define VERSION 1
#define RECORD_MAX (1U << 20)

int agx_native_state_init(struct agx_native_state *s, const char *sandbox_id, size_t n_parts,
                          struct agx_error **err)
{
    int r;

    *s = (struct agx_native_state){ 0 };
    s->parts = calloc(n_parts, sizeof(*s->parts));
    if (!s->parts)
        return agx_error_no_memory(err);
    s->n_parts = n_parts;
    r = agx_text_set(&s->sandbox_id, sandbox_id, err);
    if (r < 0)
        agx_native_state_done(s);
    return r;
}

void agx_native_state_done(struct agx_native_state *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_parts; i++) {
        free(s->parts[i].image);
        free(s->parts[i].user);
        free(s->parts[i].cwd);
        free(s->parts[i].dns);
    }
    free(s->parts);
    free(s->sandbox_id);
    free(s->interface);
    free(s->forwards);
    agx_words_done(&s->egress);
    agx_words_done(&s->hosts);
    agx_words_done(&s->sources);
    *s = (struct agx_native_state){ 0 };
}

static int copy_part(struct agx_native_part_state *to, const struct agx_native_part_state *from,
                     struct agx_error **err)
{
    int r;

    *to = (struct agx_native_part_state){
        .init = from->init, .names = from->names, .id_base = from->id_base, .oom = from->oom
    };
    if ((r = agx_text_set(&to->image, from->image, err)) < 0 ||
        (r = agx_text_set(&to->user, from->user, err)) < 0 ||
        (r = agx_text_set(&to->cwd, from->cwd, err)) < 0)
        return r;
    return agx_text_set(&to->dns, from->dns, err);
}

int agx_native_state_set_ports(struct agx_native_state *s, const struct agx_port *ports, size_t n,
                               struct agx_error **err)
{
    struct agx_port *copy = n > 0 ? calloc(n, sizeof(*copy)) : NULL;

    if (n > 0 && !copy)
        return agx_error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        copy[i] = ports[i];
    free(s->forwards);
    s->forwards = copy;
    s->n_forwards = n;
    return 0;
}

static int copy_rest(struct agx_native_state *to, const struct agx_native_state *from,
                     struct agx_error **err)
{
    int r;

    to->made = from->made;
    to->network = from->network;
    to->subnet = from->subnet;
    to->ports = from->ports;
    if ((r = agx_text_set(&to->interface, from->interface, err)) < 0 ||
        (r = agx_words_copy(&to->egress, &from->egress, err)) < 0 ||
        (r = agx_words_copy(&to->hosts, &from->hosts, err)) < 0 ||
        (r = agx_words_copy(&to->sources, &from->sources, err)) < 0 ||
        (r = agx_native_state_set_ports(to, from->forwards, from->n_forwards, err)) < 0)
        return r;
    for (size_t i = 0; r == 0 && i < from->n_parts; i++)
        r = copy_part(&to->parts[i], &from->parts[i], err);
    return r;
}

int agx_native_state_copy(struct agx_native_state *to, const struct agx_native_state *from,
                          struct agx_error **err)
{
    int r = agx_native_state_init(to, from->sandbox_id, from->n_parts, err);

    if (r == 0)
        r = copy_rest(to, from, err);
    if (r < 0)
        agx_native_state_done(to);
    return r;
}

/* ---- writing ---- */

static int set_text(json_t *object, const char *key, const char *text)
{
    return text ? json_object_set_new(object, key, json_string(text)) : 0;
}

static int set_words(json_t *object, const char *key, const struct agx_words *words)
{
    json_t *list;
    int bad = 0;

    if (words->len == 0)
        return 0;
    list = json_array();
    for (size_t i = 0; i < words->len; i++)
        bad |= json_array_append_new(list, json_string(words->items[i]));
    return bad | json_object_set_new(object, key, list);
}

static int set_proc(json_t *object, const char *key, const struct agx_native_proc *p)
{
    if (p->pid == 0)
        return 0;
    return json_object_set_new(object, key,
                               json_pack("{s:i, s:I, s:s}", "pid", (int)p->pid, "start",
                                         (json_int_t)p->start, "boot", p->boot));
}

static int set_ports(json_t *object, const struct agx_native_state *s)
{
    json_t *list;
    int bad = 0;

    if (s->n_forwards == 0)
        return 0;
    list = json_array();
    for (size_t i = 0; i < s->n_forwards; i++)
        bad |= json_array_append_new(
            list, json_pack("{s:i, s:i, s:i}", "inside", (int)s->forwards[i].container_port, "host",
                            (int)s->forwards[i].host_port, "protocol", s->forwards[i].protocol));
    return bad | json_object_set_new(object, "forwards", list);
}

static json_t *part_new(const struct agx_native_part_state *p)
{
    json_t *object = json_object();
    int bad = set_text(object, "image", p->image);

    bad |= set_text(object, "user", p->user);
    bad |= set_text(object, "cwd", p->cwd);
    bad |= set_proc(object, "init", &p->init);
    bad |= set_proc(object, "names", &p->names);
    bad |= set_text(object, "dns", p->dns);
    bad |= json_object_set_new(object, "id_base", json_integer(p->id_base));
    bad |= json_object_set_new(object, "oom", json_boolean(p->oom));
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int set_parts(json_t *object, const struct agx_native_state *s)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < s->n_parts; i++)
        bad |= json_array_append_new(list, part_new(&s->parts[i]));
    return bad | json_object_set_new(object, "parts", list);
}

int agx_native_state_print(const struct agx_native_state *s, struct agx_buf *out,
                           struct agx_error **err)
{
    _cleanup_json_ json_t *object = json_object();
    char subnet[AGX_SUBNET_TEXT];
    int bad = json_object_set_new(object, "version", json_integer(VERSION));

    bad |= set_text(object, "sandbox", s->sandbox_id);
    bad |= json_object_set_new(object, "made", json_boolean(s->made));
    bad |= json_object_set_new(object, "network", json_integer(s->network));
    bad |= set_text(object, "interface", s->interface);
    if (s->interface)
        bad |= set_text(object, "subnet", agx_subnet_format(&s->subnet, subnet));
    bad |= set_words(object, "egress", &s->egress);
    bad |= set_words(object, "hosts", &s->hosts);
    bad |= set_words(object, "sources", &s->sources);
    bad |= set_proc(object, "ports", &s->ports);
    bad |= set_ports(object, s);
    bad |= set_parts(object, s);
    return bad ? agx_error_no_memory(err) : agx_json_write(object, out, err);
}

/* ---- reading ---- */

static int get_proc(const json_t *object, const char *key, struct agx_native_proc *ret,
                    struct agx_error **err)
{
    int64_t pid, start;
    struct agx_str boot;
    json_t *proc;
    int r;

    if (!agx_json_has(object, key))
        return 0;
    if ((r = agx_json_get_object(object, key, &proc, err)) < 0 ||
        (r = agx_json_get_int(proc, "pid", 2, INT32_MAX, &pid, err)) < 0 ||
        (r = agx_json_get_int(proc, "start", 0, INT64_MAX, &start, err)) < 0 ||
        (r = agx_json_get_str(proc, "boot", &boot, err)) < 0)
        return r;
    ret->pid = (pid_t)pid;
    ret->start = (uint64_t)start;
    (void)snprintf(ret->boot, sizeof(ret->boot), "%s", boot.ptr);
    return 0;
}

static int get_port(const json_t *object, struct agx_port *ret, struct agx_error **err)
{
    int64_t inside, host, protocol;
    int r;

    if ((r = agx_json_get_int(object, "inside", 1, UINT16_MAX, &inside, err)) < 0 ||
        (r = agx_json_get_int(object, "host", 1, UINT16_MAX, &host, err)) < 0 ||
        (r = agx_json_get_int(object, "protocol", 0, AGX_PROTOCOL_COUNT - 1, &protocol, err)) < 0)
        return r;
    *ret = (struct agx_port){ (uint32_t)inside, (uint32_t)host, (int32_t)protocol };
    return 0;
}

static int get_ports(const json_t *object, struct agx_native_state *s, struct agx_error **err)
{
    struct agx_port ports[AGX_SPEC_ITEMS_MAX];
    json_t *list = NULL;
    int r =
        agx_json_has(object, "forwards") ? agx_json_get_array(object, "forwards", &list, err) : 0;
    const size_t n = json_array_size(list);

    if (r == 0 && n > AGX_SPEC_ITEMS_MAX)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "'forwards' has too many ports");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = get_port(json_array_get(list, i), &ports[i], err);
    return r < 0 ? r : agx_native_state_set_ports(s, ports, n, err);
}

static int get_part(const json_t *object, struct agx_native_part_state *ret, struct agx_error **err)
{
    int64_t base;
    int r;

    if ((r = agx_json_optional_text(object, "image", &ret->image, err)) < 0 ||
        (r = agx_json_optional_text(object, "user", &ret->user, err)) < 0 ||
        (r = agx_json_optional_text(object, "cwd", &ret->cwd, err)) < 0 ||
        (r = get_proc(object, "init", &ret->init, err)) < 0 ||
        (r = get_proc(object, "names", &ret->names, err)) < 0 ||
        (r = agx_json_optional_text(object, "dns", &ret->dns, err)) < 0 ||
        (r = agx_json_get_int(object, "id_base", 0, UINT32_MAX, &base, err)) < 0)
        return r;
    ret->id_base = (uint32_t)base;
    return agx_json_get_bool(object, "oom", &ret->oom, err);
}

static int get_network(const json_t *object, struct agx_native_state *s, struct agx_error **err)
{
    struct agx_str subnet;
    int64_t network;
    int r = agx_json_get_int(object, "network", 0, AGX_NETWORK_COUNT - 1, &network, err);

    if (r < 0)
        return r;
    s->network = (int32_t)network;
    r = agx_json_optional_text(object, "interface", &s->interface, err);
    if (r < 0 || !s->interface)
        return r;
    r = agx_json_get_str(object, "subnet", &subnet, err);
    return r < 0 ? r : agx_subnet_parse(subnet, &s->subnet, err);
}

static int get_all(const json_t *object, json_t *parts, struct agx_native_state *s,
                   struct agx_error **err)
{
    int r;

    if ((r = agx_json_get_bool(object, "made", &s->made, err)) < 0 ||
        (r = get_network(object, s, err)) < 0 ||
        (r = agx_json_optional_words(object, "egress", &s->egress, err)) < 0 ||
        (r = agx_json_optional_words(object, "hosts", &s->hosts, err)) < 0 ||
        (r = agx_json_optional_words(object, "sources", &s->sources, err)) < 0 ||
        (r = get_proc(object, "ports", &s->ports, err)) < 0 || (r = get_ports(object, s, err)) < 0)
        return r;
    for (size_t i = 0; r == 0 && i < s->n_parts; i++)
        r = get_part(json_array_get(parts, i), &s->parts[i], err);
    return r;
}

/* The sandbox of the record, and its number of parts. */
static int get_head(const json_t *object, const char *sandbox_id, json_t **ret_parts,
                    struct agx_error **err)
{
    struct agx_str id;
    int64_t version;
    size_t n;
    int r;

    if ((r = agx_json_get_int(object, "version", VERSION, VERSION, &version, err)) < 0 ||
        (r = agx_json_get_str(object, "sandbox", &id, err)) < 0 ||
        (r = agx_json_get_array(object, "parts", ret_parts, err)) < 0)
        return r;
    n = json_array_size(*ret_parts);
    if (strcmp(id.ptr, sandbox_id) != 0 || n == 0 || n > AGX_SPEC_ITEMS_MAX + 1)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "it is not a record of '%s'", sandbox_id);
    return 0;
}

int agx_native_state_parse(struct agx_native_state *ret, const char *sandbox_id,
                           struct agx_str text, struct agx_error **err)
{
    _cleanup_json_ json_t *object = NULL;
    struct agx_native_state s;
    json_t *parts = NULL;
    int r;

    if ((r = agx_json_parse(text, RECORD_MAX, AGX_DEPTH_MAX, &object, err)) < 0 ||
        (r = get_head(object, sandbox_id, &parts, err)) < 0 ||
        (r = agx_native_state_init(&s, sandbox_id, json_array_size(parts), err)) < 0)
        return r;
    r = get_all(object, parts, &s, err);
    if (r < 0) {
        agx_native_state_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

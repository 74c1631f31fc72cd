/* inventory.c: parses the engine's lists. */
#include "backend/docker/inventory.h"

#include "base/banned.h"

static const char *const statuses[AGX_DOCKER_STATUS_COUNT] = {
    [AGX_DOCKER_CREATED] = "created",   [AGX_DOCKER_RUNNING] = "running",
    [AGX_DOCKER_PAUSED] = "paused",     [AGX_DOCKER_RESTARTING] = "restarting",
    [AGX_DOCKER_REMOVING] = "removing", [AGX_DOCKER_EXITED] = "exited",
    [AGX_DOCKER_DEAD] = "dead",
};

enum agx_docker_status agx_docker_status_parse(const char *text)
{
    for (size_t i = 0; text && i < AGX_ARRAY_LEN(statuses); i++) {
        if (strcmp(text, statuses[i]) == 0)
            return (enum agx_docker_status)i;
    }
    return AGX_DOCKER_EXITED; /* unknown to us, from a newer engine: not running in our sense */
}

enum agx_seen agx_docker_status_seen(enum agx_docker_status s, bool oom_killed)
{
    switch (s) {
    case AGX_DOCKER_RUNNING:
        return AGX_SEEN_RUNNING;
    case AGX_DOCKER_PAUSED:
        return AGX_SEEN_PAUSED;
    default:
        return oom_killed ? AGX_SEEN_OOM : AGX_SEEN_EXITED;
    }
}

char *agx_docker_inventory_filters(const struct agx_docker *d, const char *sandbox_id)
{
    _cleanup_json_ json_t *labels = json_array();
    _cleanup_json_ json_t *filters = NULL;
    int bad = json_array_append_new(labels,
                                    json_sprintf("%s=%s", AGX_DOCKER_LABEL_INSTANCE, d->instance));

    if (sandbox_id)
        bad |= json_array_append_new(labels,
                                     json_sprintf("%s=%s", AGX_DOCKER_LABEL_SANDBOX, sandbox_id));
    filters = json_pack("{s:O}", "label", labels);
    return bad || !filters ? NULL : json_dumps(filters, JSON_COMPACT);
}

int agx_docker_inventory_ask(struct agx_op *op, const char *sandbox_id, bool networks,
                             agx_docker_answered_fn answered, struct agx_error **err)
{
    _cleanup_free_ char *filters = agx_docker_inventory_filters(agx_docker_by(op), sandbox_id);
    struct agx_docker_query q = { .request = { .method = "GET" }, .answered = answered };
    int r;

    if (!filters)
        return agx_error_no_memory(err);
    q.request.what = "list containers";
    q.path = agx_docker_path("/containers/json?all=1&filters=%s", filters);
    r = agx_docker_ask(op, &q, err);
    if (r < 0 || !networks)
        return r;
    q.request.what = "list networks";
    q.path = agx_docker_path("/networks?filters=%s", filters);
    return agx_docker_ask(op, &q, err);
}

static int add_one(struct agx_docker_inventory *c, const struct agx_docker *d, const json_t *entry,
                   struct agx_error **err)
{
    const char *id = json_string_value(json_object_get(entry, "Id"));
    const char *mode =
        json_string_value(json_object_get(json_object_get(entry, "HostConfig"), "NetworkMode"));
    const json_t *nets = json_object_get(json_object_get(entry, "NetworkSettings"), "Networks");
    const json_t *net = mode ? json_object_get(nets, mode) : NULL;
    struct agx_docker_found *f;
    struct agx_docker_tag tag;
    int r;

    if (!id || !agx_docker_labels_read(&d->maker, json_object_get(entry, "Labels"), &tag))
        return 0;
    r = agx_text_grow((void **)&c->items, c->len, sizeof(*c->items), err);
    if (r < 0)
        return r;
    f = &c->items[c->len];
    *f = (struct agx_docker_found){ .component = tag.component,
                                    .companion = tag.companion,
                                    .held = tag.component == AGX_DOCKER_PRIMARY && tag.held };
    if (tag.component != AGX_DOCKER_NETWORK) {
        f->status = agx_docker_status_parse(json_string_value(json_object_get(entry, "State")));
        f->seen = agx_docker_status_seen(f->status, false);
    }
    r = agx_text_set(&f->id, id, err);
    if (r == 0)
        r = agx_text_set(&f->sandbox_id, tag.sandbox_id, err);
    if (r == 0)
        r = agx_text_set(&f->network, mode, err);
    if (r == 0)
        r = agx_text_set(&f->network_id, json_string_value(json_object_get(net, "NetworkID")), err);
    c->len++; /* even if incomplete: it is freed with the others */
    return r;
}

int agx_docker_inventory_add(struct agx_docker_inventory *c, const struct agx_docker *d,
                             const json_t *list, struct agx_error **err)
{
    const json_t *entry;
    size_t i;
    int r = 0;

    if (!json_is_array(list))
        return agx_error_set(err, AGX_DATA_LOSS, "the engine's answer is not a list");
    json_array_foreach(list, i, entry)
    {
        if (r == 0)
            r = add_one(c, d, entry, err);
    }
    return r;
}

const struct agx_docker_found *agx_docker_inventory_primary(const struct agx_docker_inventory *c)
{
    for (size_t i = 0; i < c->len; i++) {
        if (c->items[i].component == AGX_DOCKER_PRIMARY)
            return &c->items[i];
    }
    return NULL;
}

void agx_docker_inventory_done(struct agx_docker_inventory *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->len; i++) {
        free(c->items[i].id);
        free(c->items[i].sandbox_id);
        free(c->items[i].network);
        free(c->items[i].network_id);
    }
    free(c->items);
    *c = (struct agx_docker_inventory){ 0 };
}

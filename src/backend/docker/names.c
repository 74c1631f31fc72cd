/* names.c: names and labels, ours and those of agents-sandbox. */
#include "backend/docker/names.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"
#include "base/limits.h"
#include "core/ident.h"

#define PREFIX "io.agentix."
#define LABEL_COMPONENT PREFIX "component"
#define LABEL_COMPANION PREFIX "companion"
#define LABEL_COMPANION_INDEX PREFIX "companion-index"
#define LABEL_EXEC_USER PREFIX "exec-user"
#define LABEL_CONTROL PREFIX "control"
#define LABEL_OWNER PREFIX "owner"
#define LABEL_EGRESS PREFIX "egress"

/* Of agents-sandbox. */
#define PEER_PREFIX "io.github.1996fanrui.agents-sandbox."

static const char *const components[AGX_DOCKER_COMPONENT_COUNT] = {
    [AGX_DOCKER_NETWORK] = "network",
    [AGX_DOCKER_PRIMARY] = "primary",
    [AGX_DOCKER_COMPANION] = "companion",
};

static const char *const controls[AGX_DOCKER_CONTROL_COUNT] = {
    [AGX_DOCKER_CONTROL_AUTO] = "auto",
    [AGX_DOCKER_CONTROL_PIDFD] = "pidfd",
    [AGX_DOCKER_CONTROL_STDIO] = "stdio",
    [AGX_DOCKER_CONTROL_ENGINE] = "engine",
};

const char *agx_docker_control_mode_name(enum agx_docker_control c)
{
    assert(c < AGX_DOCKER_CONTROL_COUNT);
    return controls[c];
}

/* ---- names ---- */

/* Names of agents-sandbox: these characters become "-", all others stay. */
static void clean_as_peer(char *name)
{
    for (; *name; name++) {
        if (strchr("/\\: .", *name))
            *name = '-';
    }
}

/* The characters that engines accept in a name, except the dot, which separates our parts. True:
 * nothing was changed. */
static bool clean(char *name)
{
    bool same = true;

    for (; *name; name++) {
        bool ok = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                  (*name >= '0' && *name <= '9') || *name == '_' || *name == '-';

        if (!ok)
            *name = '-';
        same = same && ok;
    }
    return same;
}

/* An owned string, or NULL without memory. */
AGX_PRINTF(1, 2) static char *print(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
}

/* Ids have no dot: "agentix-web.db" cannot be the name of a sandbox "web.db". A companion whose
 * name had to be changed gets its index behind it, because two could become equal. */
static char *name_companion(bool compat, const char *id, const char *name, size_t place)
{
    _cleanup_free_ char *part = strdup(name);

    if (!part)
        return NULL;
    if (compat) {
        clean_as_peer(part);
        return print("agbox-cc-%s-%s", id, part);
    }
    return clean(part) ? print("agentix-%s.%s", id, part)
                       : print("agentix-%s.%s.%zu", id, part, place);
}

static bool fill_names(struct agx_docker_names *n, bool compat, const struct agx_sandbox *sandbox)
{
    const struct agx_spec *s = &sandbox->spec;

    /* An id is valid in both: core/ident.h. */
    n->network = print(compat ? "agbox-net-%s" : "agentix-%s", sandbox->id);
    n->primary = print(compat ? "agbox-primary-%s" : "agentix-%s", sandbox->id);
    n->companions = calloc(s->companions_len + 1, sizeof(*n->companions));
    if (!n->network || !n->primary || !n->companions)
        return false;
    for (size_t i = 0; i < s->companions_len; i++) {
        n->companions[i] = name_companion(compat, sandbox->id, agx_text(s->companions[i].name), i);
        if (!n->companions[i])
            return false;
        n->companions_len++;
    }
    return true;
}

int agx_docker_names_init(struct agx_docker_names *n, const struct agx_docker_maker *m,
                          const struct agx_sandbox *sandbox, struct agx_error **err)
{
    *n = (struct agx_docker_names){ 0 };
    if (fill_names(n, m->compat, sandbox))
        return 0;
    agx_docker_names_done(n);
    return agx_error_no_memory(err);
}

void agx_docker_names_done(struct agx_docker_names *n)
{
    if (!n)
        return;
    free(n->network);
    free(n->primary);
    for (size_t i = 0; i < n->companions_len; i++)
        free(n->companions[i]);
    free(n->companions);
    *n = (struct agx_docker_names){ 0 };
}

/* ---- labels ---- */

static int names_put(json_t *labels, const char *prefix, const char *key, const char *value)
{
    _cleanup_free_ char *whole = print("%s%s", prefix, key);

    return whole ? json_object_set_new(labels, whole, json_string(value)) : -1;
}

static int put_ours(json_t *labels, const struct agx_docker_maker *m,
                    const struct agx_docker_tag *tag)
{
    char place[24];
    int bad = names_put(labels, "", AGX_DOCKER_LABEL_INSTANCE, m->instance);

    bad |= names_put(labels, "", AGX_DOCKER_LABEL_SANDBOX, tag->sandbox_id);
    bad |= names_put(labels, "", LABEL_COMPONENT, components[tag->component]);
    if (tag->component == AGX_DOCKER_COMPANION) {
        (void)snprintf(place, sizeof(place), "%zu", tag->companion);
        bad |= names_put(labels, "", LABEL_COMPANION_INDEX, place);
    }
    if (tag->egress)
        bad |= names_put(labels, "", LABEL_EGRESS, tag->egress);
    if (tag->component == AGX_DOCKER_PRIMARY) {
        bad |= names_put(labels, "", LABEL_EXEC_USER, tag->exec_user);
        bad |= names_put(labels, "", LABEL_CONTROL, agx_docker_control_mode_name(tag->control));
        (void)snprintf(place, sizeof(place), "%" PRIu32, tag->owner);
        if (tag->held)
            bad |= names_put(labels, "", LABEL_OWNER, place);
    }
    return bad;
}

static int put_peers(json_t *labels, const struct agx_docker_tag *tag)
{
    bool companion = tag->component == AGX_DOCKER_COMPANION;
    int bad = names_put(labels, PEER_PREFIX, "sandbox-id", tag->sandbox_id);

    /* Its networks have the same label as its primaries. */
    bad |= names_put(labels, PEER_PREFIX, "component", companion ? "companion" : "primary");
    if (!companion)
        bad |= names_put(labels, PEER_PREFIX, "profile", "default");
    return bad;
}

int agx_docker_labels_new(const struct agx_docker_maker *m, const struct agx_docker_tag *tag,
                          const struct agx_spec *spec, json_t **ret_labels, struct agx_error **err)
{
    _cleanup_json_ json_t *labels = json_object();
    int bad = put_ours(labels, m, tag);

    if (m->compat)
        bad |= put_peers(labels, tag);
    if (tag->component == AGX_DOCKER_COMPANION) {
        const char *name = agx_text(spec->companions[tag->companion].name);

        bad |= names_put(labels, "", LABEL_COMPANION, name);
        if (m->compat)
            bad |= names_put(labels, PEER_PREFIX, "companion-container-name", name);
    }
    for (size_t i = 0; i < spec->labels.len; i++) {
        const struct agx_pair *p = &spec->labels.items[i];

        bad |=
            names_put(labels, m->compat ? PEER_PREFIX "user." : PREFIX "user.", p->key, p->value);
    }
    if (bad)
        return agx_error_no_memory(err);
    *ret_labels = AGX_TAKE_PTR(labels);
    return 0;
}

/* ---- reading ---- */

static const char *names_get(const json_t *labels, const char *key)
{
    return agx_text(json_string_value(json_object_get(labels, key)));
}

/* The index of a word in a list; `len`: not found. */
static size_t names_find(const char *const *words, size_t len, const char *word)
{
    size_t i = 0;

    while (i < len && strcmp(words[i], word) != 0)
        i++;
    return i;
}

bool agx_docker_labels_read(const struct agx_docker_maker *m, const json_t *labels,
                            struct agx_docker_tag *ret)
{
    size_t component =
        names_find(components, AGX_ARRAY_LEN(components), names_get(labels, LABEL_COMPONENT));
    size_t control =
        names_find(controls, AGX_ARRAY_LEN(controls), names_get(labels, LABEL_CONTROL));
    uint64_t place = 0;

    if (strcmp(names_get(labels, AGX_DOCKER_LABEL_INSTANCE), m->instance) != 0 ||
        component == AGX_ARRAY_LEN(components))
        return false;
    *ret = (struct agx_docker_tag){
        .sandbox_id = names_get(labels, AGX_DOCKER_LABEL_SANDBOX),
        .component = (enum agx_docker_component)component,
        .egress = json_string_value(json_object_get(labels, LABEL_EGRESS)),
        .exec_user = names_get(labels, LABEL_EXEC_USER),
    };
    if (agx_ident_check("sandbox_id", agx_str_from(ret->sandbox_id), NULL) < 0)
        return false;
    if (component == AGX_DOCKER_PRIMARY) {
        ret->control = (enum agx_docker_control)control;
        ret->held = agx_parse_u64(agx_str_from(names_get(labels, LABEL_OWNER)), UINT32_MAX, &place);
        ret->owner = (uint32_t)place;
        return control < AGX_ARRAY_LEN(controls) && ret->exec_user[0] != '\0';
    }
    if (component == AGX_DOCKER_COMPANION &&
        !agx_parse_u64(agx_str_from(names_get(labels, LABEL_COMPANION_INDEX)),
                       AGX_SPEC_ITEMS_MAX - 1, &place))
        return false;
    ret->companion = (size_t)place;
    return true;
}

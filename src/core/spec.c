/* spec.c: makes, copies and merges specs. spec_check.c validates them. */
#include "core/spec.h"

#include "base/banned.h"
#include "base/limits.h"
#include "core/spec_internal.h"

#define SECOND_NS INT64_C(1000000000)

static void limits_done(struct agx_limit_texts *l)
{
    free(l->cpu);
    free(l->memory);
    free(l->disk);
    *l = (struct agx_limit_texts){ 0 };
}

void agx_healthcheck_init(struct agx_healthcheck *h)
{
    *h = (struct agx_healthcheck){ .interval_ns = AGX_NS_UNSET,
                                   .timeout_ns = AGX_NS_UNSET,
                                   .start_period_ns = AGX_NS_UNSET,
                                   .start_interval_ns = AGX_NS_UNSET };
}

static void mount_done(struct agx_mount *m)
{
    free(m->source);
    free(m->target);
}

static void copy_done(struct agx_copy *c)
{
    free(c->source);
    free(c->target);
    agx_words_done(&c->exclude_patterns);
}

void agx_companion_done(struct agx_companion *c)
{
    free(c->name);
    free(c->image);
    agx_pairs_done(&c->envs);
    agx_words_done(&c->healthcheck.test);
    agx_words_done(&c->post_start_on_primary);
    agx_words_done(&c->command);
    limits_done(&c->limits);
}

void agx_spec_init(struct agx_spec *s)
{
    *s = (struct agx_spec){ .idle_ttl_ns = AGX_NS_UNSET };
}

void agx_spec_done(struct agx_spec *s)
{
    if (!s)
        return;
    free(s->image);
    for (size_t i = 0; i < s->mounts_len; i++)
        mount_done(&s->mounts[i]);
    free(s->mounts);
    for (size_t i = 0; i < s->copies_len; i++)
        copy_done(&s->copies[i]);
    free(s->copies);
    free(s->ports);
    for (size_t i = 0; i < s->companions_len; i++)
        agx_companion_done(&s->companions[i]);
    free(s->companions);
    agx_words_done(&s->builtin_tools);
    agx_pairs_done(&s->labels);
    agx_pairs_done(&s->envs);
    agx_words_done(&s->command);
    limits_done(&s->limits);
    free(s->gpus);
    agx_words_done(&s->egress);
    agx_spec_init(s);
}

static int spec_add(void **items, size_t *len, size_t size, const char *what,
                    struct agx_error **err)
{
    int r;

    if (*len >= AGX_SPEC_ITEMS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s has more than %d entries", what,
                             AGX_SPEC_ITEMS_MAX);
    r = agx_text_grow(items, *len, size, err);
    if (r < 0)
        return r;
    memset((char *)*items + *len * size, 0, size);
    (*len)++;
    return 0;
}

bool agx_spec_needs_suid_guard(const struct agx_spec *s)
{
    for (size_t i = 0; i < s->mounts_len; i++) {
        if (s->mounts[i].writable && s->mounts[i].suid != AGX_SUID_ALLOW)
            return true;
    }
    return false;
}

int agx_spec_add_mount(struct agx_spec *s, struct agx_mount **ret, struct agx_error **err)
{
    int r = spec_add((void **)&s->mounts, &s->mounts_len, sizeof(**ret), "mounts", err);

    if (r < 0)
        return r;
    *ret = &s->mounts[s->mounts_len - 1];
    return 0;
}

int agx_spec_add_copy(struct agx_spec *s, struct agx_copy **ret, struct agx_error **err)
{
    int r = spec_add((void **)&s->copies, &s->copies_len, sizeof(**ret), "copies", err);

    if (r < 0)
        return r;
    *ret = &s->copies[s->copies_len - 1];
    return 0;
}

int agx_spec_add_port(struct agx_spec *s, struct agx_port **ret, struct agx_error **err)
{
    int r = spec_add((void **)&s->ports, &s->ports_len, sizeof(**ret), "ports", err);

    if (r < 0)
        return r;
    *ret = &s->ports[s->ports_len - 1];
    return 0;
}

int agx_spec_add_companion(struct agx_spec *s, struct agx_companion **ret, struct agx_error **err)
{
    int r = spec_add((void **)&s->companions, &s->companions_len, sizeof(**ret),
                     "companion_containers", err);

    if (r < 0)
        return r;
    *ret = &s->companions[s->companions_len - 1];
    agx_healthcheck_init(&(*ret)->healthcheck);
    return 0;
}

/* A set value replaces; an absent one has no effect. */
static int override(char **slot, const char *value, struct agx_error **err)
{
    return value ? agx_text_set(slot, value, err) : 0;
}

static int override_limits(struct agx_limit_texts *to, const struct agx_limit_texts *from,
                           struct agx_error **err)
{
    int r;

    if ((r = override(&to->cpu, from->cpu, err)) < 0 ||
        (r = override(&to->memory, from->memory, err)) < 0)
        return r;
    return override(&to->disk, from->disk, err);
}

static int override_words(struct agx_words *to, const struct agx_words *from,
                          struct agx_error **err)
{
    if (from->len == 0)
        return 0;
    agx_words_done(to);
    return agx_words_copy(to, from, err);
}

int agx_companion_copy(struct agx_companion *to, const struct agx_companion *from,
                       struct agx_error **err)
{
    int r;

    to->healthcheck = from->healthcheck;
    to->healthcheck.test = (struct agx_words){ 0 };
    if ((r = agx_text_set(&to->name, from->name, err)) < 0 ||
        (r = agx_text_set(&to->image, from->image, err)) < 0 ||
        (r = agx_pairs_merge(&to->envs, &from->envs, err)) < 0 ||
        (r = agx_words_copy(&to->post_start_on_primary, &from->post_start_on_primary, err)) < 0 ||
        (r = agx_words_copy(&to->command, &from->command, err)) < 0 ||
        (r = override_limits(&to->limits, &from->limits, err)) < 0)
        return r;
    return agx_words_copy(&to->healthcheck.test, &from->healthcheck.test, err);
}

static int append_companion(struct agx_spec *s, const struct agx_companion *from,
                            struct agx_error **err)
{
    struct agx_companion *c = NULL;
    int r = agx_spec_add_companion(s, &c, err);

    return r < 0 ? r : agx_companion_copy(c, from, err);
}

static int append_lists(struct agx_spec *s, const struct agx_spec *from, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < from->mounts_len; i++) {
        struct agx_mount *m = NULL;

        if ((r = agx_spec_add_mount(s, &m, err)) < 0 ||
            (r = agx_text_set(&m->source, from->mounts[i].source, err)) < 0 ||
            (r = agx_text_set(&m->target, from->mounts[i].target, err)) < 0)
            return r;
        m->writable = from->mounts[i].writable;
        m->suid = from->mounts[i].suid;
    }
    for (size_t i = 0; r == 0 && i < from->copies_len; i++) {
        struct agx_copy *c = NULL;

        if ((r = agx_spec_add_copy(s, &c, err)) < 0 ||
            (r = agx_text_set(&c->source, from->copies[i].source, err)) < 0 ||
            (r = agx_text_set(&c->target, from->copies[i].target, err)) < 0)
            return r;
        r = agx_words_copy(&c->exclude_patterns, &from->copies[i].exclude_patterns, err);
    }
    for (size_t i = 0; r == 0 && i < from->ports_len; i++) {
        struct agx_port *p = NULL;

        if ((r = agx_spec_add_port(s, &p, err)) == 0)
            *p = from->ports[i];
    }
    for (size_t i = 0; r == 0 && i < from->companions_len; i++)
        r = append_companion(s, &from->companions[i], err);
    return r;
}

static int append_words(struct agx_words *to, const struct agx_words *from, bool once,
                        struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < from->len; i++)
        if (!once || !agx_words_has(to, from->items[i]))
            r = agx_words_add(to, agx_str_from(from->items[i]), err);
    return r;
}

/* Everything except builtin_tools, where copying and merging differ. */
static int lay_over(struct agx_spec *to, const struct agx_spec *from, struct agx_error **err)
{
    int r;

    if ((r = override(&to->image, from->image, err)) < 0 || (r = append_lists(to, from, err)) < 0 ||
        (r = agx_pairs_merge(&to->labels, &from->labels, err)) < 0 ||
        (r = agx_pairs_merge(&to->envs, &from->envs, err)) < 0 ||
        (r = override_words(&to->command, &from->command, err)) < 0 ||
        (r = override_limits(&to->limits, &from->limits, err)) < 0 ||
        (r = override(&to->gpus, from->gpus, err)) < 0 ||
        (r = append_words(&to->egress, &from->egress, false, err)) < 0)
        return r;
    if (from->idle_ttl_ns != AGX_NS_UNSET)
        to->idle_ttl_ns = from->idle_ttl_ns;
    if (from->network != AGX_NETWORK_NAT)
        to->network = from->network;
    return 0;
}

int agx_spec_copy(struct agx_spec *to, const struct agx_spec *from, struct agx_error **err)
{
    struct agx_spec copy;
    int r;

    agx_spec_init(&copy);
    r = lay_over(&copy, from, err);
    if (r == 0)
        r = append_words(&copy.builtin_tools, &from->builtin_tools, false, err);
    if (r == 0)
        *to = copy;
    else
        agx_spec_done(&copy);
    return r;
}

int agx_spec_merge(struct agx_spec *base, const struct agx_spec *over, struct agx_error **err)
{
    struct agx_words tools = { 0 };
    int r = lay_over(base, over, err);

    /* Removes duplicates, also those within the base. */
    if (r == 0 && (r = append_words(&tools, &base->builtin_tools, true, err)) == 0)
        r = append_words(&tools, &over->builtin_tools, true, err);
    if (r < 0) {
        agx_words_done(&tools);
        return r;
    }
    agx_words_done(&base->builtin_tools);
    base->builtin_tools = tools;
    return 0;
}

const char *agx_protocol_name(enum agx_protocol p)
{
    static const char *const names[AGX_PROTOCOL_COUNT] = { "tcp", "udp", "sctp" };

    return names[p];
}

static int64_t or_default(int64_t ns, int64_t fallback)
{
    return ns != AGX_NS_UNSET && ns > 0 ? ns : fallback;
}

int64_t agx_healthcheck_budget_ns(const struct agx_healthcheck *h)
{
    const int64_t cap = 300 * SECOND_NS;
    int64_t interval = AGX_MIN(or_default(h->interval_ns, 30 * SECOND_NS), cap);
    int64_t timeout = AGX_MIN(or_default(h->timeout_ns, 30 * SECOND_NS), cap);
    int64_t start = AGX_MIN(or_default(h->start_period_ns, 0), cap);
    int64_t start_interval = AGX_MIN(or_default(h->start_interval_ns, 5 * SECOND_NS), cap);
    int64_t retries = h->retries > 0 ? AGX_MIN((int64_t)h->retries, 300) : 3;
    int64_t total = AGX_MAX(interval, timeout) * (retries + 1);

    /* No term exceeds the cap, so no sum here overflows. */
    if (start > 0)
        total += start + AGX_MAX(start_interval, timeout);
    return AGX_MIN(total, cap);
}

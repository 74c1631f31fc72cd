/*
 * firewall_state.c: see firewall_state.h. Sets of elements are sorted lists of words. What is in
 * flight is a copy, because `wanted` may change meanwhile.
 */
#include "backend/net/firewall_state.h"

#include "base/mem.h"

#include <stdio.h>

#include "base/banned.h"

struct member {
    struct agx_firewall_part part;
    char *bridge; /* NULL: to be removed */
};

static const struct agx_words none;

static void part_done(struct agx_firewall_part *p)
{
    agx_words_done(&p->wanted);
    agx_words_done(&p->flight);
    agx_words_done(&p->applied);
}

static void member_free(struct member *m)
{
    part_done(&m->part);
    free(m->bridge);
    free(m);
}

static void move_words(struct agx_words *to, struct agx_words *take)
{
    agx_words_done(to);
    *to = *take;
    *take = (struct agx_words){ 0 };
}

static int check_bridge(const struct agx_firewall_state *s, const struct agx_firewall_member *m,
                        struct agx_error **err)
{
    struct agx_str id;
    void *value;

    for (size_t at = 0; agx_map_next(&s->members, &at, &id, &value);) {
        const struct member *other = value;

        if (other->bridge && m->bridge && strcmp(other->bridge, m->bridge) == 0 &&
            !agx_str_eq(id, agx_str_from(m->sandbox_id)))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "the bridge '%s' already belongs to sandbox '%.*s'", m->bridge,
                                 AGX_STR_ARG(id));
    }
    return 0;
}

int agx_firewall_state_set(struct agx_firewall_state *s, const struct agx_firewall_member *m,
                           struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words wanted = { 0 };
    _cleanup_free_ char *bridge = NULL;
    struct member *known = agx_map_get(&s->members, agx_str_from(m->sandbox_id));
    int r = check_bridge(s, m, err);

    if (r == 0)
        r = agx_firewall_text_member(m, &wanted, err);
    if (r < 0)
        return r;
    bridge = agx_str_dup(agx_str_from(m->bridge));
    if (!bridge)
        return agx_error_no_memory(err);
    if (!known) {
        known = agx_new(struct member);
        r = agx_map_put(&s->members, agx_str_from(m->sandbox_id), known, NULL);
        if (r < 0) {
            member_free(known);
            return agx_error_no_memory(err);
        }
    }
    move_words(&known->part.wanted, &wanted);
    known->part.dirty = true;
    free(known->bridge);
    known->bridge = AGX_TAKE_PTR(bridge);
    return 0;
}

static int part_text(struct agx_firewall_state *s, struct agx_firewall_part *p, bool deletes,
                     struct agx_buf *out)
{
    const struct agx_words *from = s->flying_whole ? &none : &p->applied;

    if (!s->flying_whole && !p->dirty)
        return 0;
    return deletes ? agx_firewall_text_delete(out, s->table, from, &p->wanted)
                   : agx_firewall_text_add(out, s->table, from, &p->wanted);
}

static int parts_text(struct agx_firewall_state *s, bool deletes, struct agx_buf *out)
{
    int r = part_text(s, &s->host, deletes, out);
    void *value;

    for (size_t at = 0; r == 0 && agx_map_next(&s->members, &at, NULL, &value);)
        r = part_text(s, &((struct member *)value)->part, deletes, out);
    return r;
}

bool agx_firewall_state_any(const struct agx_firewall_state *s)
{
    void *value;

    for (size_t at = 0; agx_map_next(&s->members, &at, NULL, &value);) {
        if (((struct member *)value)->bridge)
            return true;
    }
    return false;
}

/* Undoes a script that was not applied: its changes become part of the next one. */
static void call_back(struct agx_firewall_state *s)
{
    void *value;

    s->whole = s->whole || s->flying_whole;
    s->host.dirty = s->host.dirty || s->host.flying;
    for (size_t at = 0; agx_map_next(&s->members, &at, NULL, &value);) {
        struct agx_firewall_part *p = &((struct member *)value)->part;

        p->dirty = p->dirty || p->flying;
    }
}

static int take_off(struct agx_firewall_part *p, struct agx_error **err)
{
    int r;

    if (!p->dirty)
        return 0;
    agx_words_done(&p->flight);
    r = agx_words_copy(&p->flight, &p->wanted, err);
    p->flying = r == 0;
    p->dirty = r < 0;
    return r;
}

static void land(struct agx_firewall_part *p)
{
    if (!p->flying)
        return;
    move_words(&p->applied, &p->flight);
    p->flying = false;
}

/* The script in `out` will make the kernel equal to what is wanted now. */
int agx_firewall_state_script(struct agx_firewall_state *s, struct agx_buf *out,
                              struct agx_error **err)
{
    int r = 0;
    void *value;

    call_back(s);
    s->flying_some = agx_firewall_state_any(s);
    s->flying_whole = s->whole || !s->flying_some;
    s->whole = false; /* set later, it means the next script */
    if (s->flying_whole)
        r = agx_firewall_text_drop(out, s->table);
    if (r == 0 && s->flying_whole && s->flying_some)
        r = agx_firewall_text_rules(out, s->table, s->lan_blocked, s->routed);
    if (r == 0 && s->flying_some)
        r = parts_text(s, true, out);
    if (r == 0 && s->flying_some)
        r = parts_text(s, false, out);
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the packet filter's text is too long");
    r = take_off(&s->host, err);
    for (size_t at = 0; r == 0 && agx_map_next(&s->members, &at, NULL, &value);)
        r = take_off(&((struct member *)value)->part, err);
    return r;
}

static struct member *find_gone(const struct agx_firewall_state *s, struct agx_str *ret_id)
{
    void *value;

    for (size_t at = 0; agx_map_next(&s->members, &at, ret_id, &value);) {
        struct member *m = value;

        if (!m->bridge && m->part.applied.len == 0)
            return m;
    }
    return NULL;
}

/* The kernel now has what was in flight. */
void agx_firewall_state_landed(struct agx_firewall_state *s)
{
    struct member *gone;
    struct agx_str id;
    void *value;

    s->whole = s->whole || !s->flying_some;
    s->flying_whole = false;
    land(&s->host);
    for (size_t at = 0; agx_map_next(&s->members, &at, NULL, &value);)
        land(&((struct member *)value)->part);
    while ((gone = find_gone(s, &id))) {
        (void)agx_map_remove(&s->members, id);
        member_free(gone);
    }
}

void agx_firewall_state_remove(struct agx_firewall_state *s, const char *sandbox_id)
{
    struct member *m = agx_map_get(&s->members, agx_str_from(sandbox_id));

    if (!m)
        return;
    agx_words_done(&m->part.wanted);
    m->part.dirty = true;
    free(m->bridge);
    m->bridge = NULL;
}

bool agx_firewall_state_set_host(struct agx_firewall_state *s, struct agx_words *take_words)
{
    bool other = !agx_words_eq(take_words, &s->host.wanted);

    move_words(&s->host.wanted, take_words);
    s->host.dirty = true;
    return other;
}

void agx_firewall_state_init(struct agx_firewall_state *s, const char *instance, bool lan_blocked,
                             struct agx_siphash_key seed)
{
    *s = (struct agx_firewall_state){ .lan_blocked = lan_blocked, .whole = true };
    (void)snprintf(s->table, sizeof(s->table), "agentix-%.8s", instance);
    agx_map_init(&s->members, seed);
}

void agx_firewall_state_done(struct agx_firewall_state *s)
{
    void *value;

    for (size_t at = 0; agx_map_next(&s->members, &at, NULL, &value);)
        member_free(value);
    agx_map_done(&s->members);
    part_done(&s->host);
}

/* rule.c: parses the script of the fake world and applies it. */
#include "tests/fake/rule.h"

#include "base/duration.h"
#include "base/mem.h"
#include "base/number.h"

#include <fnmatch.h>

#include "base/banned.h"

#define LABEL "fake."
#define LAYERS_MAX 1000 /* of an image */

struct agx_fake_rule {
    char *verb, *pattern;
    bool counted;
    uint64_t left;
    char *actions; /* parsed before: cannot fail */
    struct agx_fake_rule *older;
};

struct agx_str agx_fake_word(struct agx_str *rest)
{
    struct agx_str word, s = agx_str_trim(*rest);

    word = (struct agx_str){ s.ptr, agx_str_find(s, ' ') };
    *rest = agx_str_trim(agx_str_skip(s, word.len));
    return word;
}

bool agx_fake_parse_ms(struct agx_str text, uint64_t *ret_ms)
{
    int64_t ns;
    double s;

    if (agx_parse_double(text, &s) && s >= 0 && s < 1e9) {
        *ret_ms = (uint64_t)(s * 1000);
        return true;
    }
    if (agx_duration_parse(text, &ns, NULL) < 0 || ns < 0)
        return false;
    *ret_ms = (uint64_t)ns / 1000000;
    return true;
}

void agx_fake_plan_done(struct agx_fake_plan *p)
{
    if (!p)
        return;
    free(p->message);
    free(p->companion_message);
    *p = (struct agx_fake_plan){ 0 };
}

static bool parse_code(struct agx_str word, enum agx_code *ret)
{
    for (int c = AGX_OK + 1; c <= AGX_UNAUTHENTICATED; c++) {
        if (agx_str_eq(word, agx_str_from(agx_code_name((enum agx_code)c)))) {
            *ret = (enum agx_code)c;
            return true;
        }
    }
    return false;
}

static char *dup_or_abort(struct agx_str s)
{
    char *z = agx_str_dup(s);

    if (!z)
        abort();
    return z;
}

static bool parse_death(struct agx_str word, struct agx_str rest, struct agx_fake_plan *p)
{
    if (agx_str_eq(word, AGX_STR("die")))
        p->dies_as = AGX_SEEN_EXITED;
    else if (agx_str_eq(word, AGX_STR("oom")))
        p->dies_as = AGX_SEEN_OOM;
    else if (agx_str_eq(word, AGX_STR("vanish")))
        p->dies_as = AGX_SEEN_MISSING;
    else
        return false;
    p->dies = true;
    return agx_fake_parse_ms(agx_fake_word(&rest), &p->dies_after_ms) && rest.len == 0;
}

static bool parse_action(struct agx_str text, struct agx_fake_plan *p)
{
    struct agx_str word = agx_fake_word(&text);

    if (agx_str_eq(word, AGX_STR("delay")))
        return agx_fake_parse_ms(text, &p->delay_ms);
    if (agx_str_eq(word, AGX_STR("pull")))
        return agx_parse_u64(text, LAYERS_MAX, &p->layers) && p->layers > 0;
    if (agx_str_eq(word, AGX_STR("hang"))) {
        p->way = AGX_FAKE_HANGS;
        return text.len == 0;
    }
    if (agx_str_eq(word, AGX_STR("hang-cancellable"))) {
        p->way = AGX_FAKE_HANGS_UNTIL_TOLD;
        return text.len == 0;
    }
    if (agx_str_eq(word, AGX_STR("fail")) && !p->message) {
        p->way = AGX_FAKE_FAILS;
        if (!parse_code(agx_fake_word(&text), &p->code))
            return false;
        p->message = dup_or_abort(text);
        return true;
    }
    if (agx_str_eq(word, AGX_STR("companion-fail")) && !p->companion_message) {
        p->has_companion = true;
        if (!agx_parse_u64(agx_fake_word(&text), AGX_SPEC_ITEMS_MAX, &p->companion))
            return false;
        p->companion_message = dup_or_abort(text);
        return true;
    }
    return parse_death(word, text, p);
}

int agx_fake_plan_parse(struct agx_str text, struct agx_fake_plan *ret, struct agx_error **err)
{
    struct agx_str part;

    *ret = (struct agx_fake_plan){ 0 };
    while (agx_str_split(&text, ';', &part)) {
        part = agx_str_trim(part);
        if (part.len > 0 && !parse_action(part, ret)) {
            agx_fake_plan_done(ret);
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%.*s' is no action of the fake world",
                                 AGX_STR_ARG(part));
        }
    }
    return 0;
}

static bool is_verb(struct agx_str word)
{
    static const char *const others[] = { "look", "use", "exec", "kill", "*" };

    for (int i = AGX_DO_NONE + 1; i < AGX_DO_COUNT; i++) {
        if (agx_str_eq(word, agx_str_from(agx_do_name((enum agx_do)i))))
            return true;
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++) {
        if (agx_str_eq(word, agx_str_from(others[i])))
            return true;
    }
    return false;
}

static struct agx_fake_rule *rule_free(struct agx_fake_rule *r)
{
    free(r->verb);
    free(r->pattern);
    free(r->actions);
    free(r);
    return NULL;
}

int agx_fake_rules_add(struct agx_fake_rules *r, struct agx_str line, struct agx_error **err)
{
    struct agx_str verb = agx_fake_word(&line), pattern = agx_fake_word(&line), rest = line, times;
    struct agx_fake_plan plan;
    struct agx_fake_rule *rule;
    uint64_t left = 0;
    int code;

    if (!is_verb(verb) || pattern.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "a rule begins with a verb and a pattern, not with '%.*s %.*s'",
                             AGX_STR_ARG(verb), AGX_STR_ARG(pattern));
    times = agx_fake_word(&rest);
    if (times.len > 1 && times.ptr[0] == 'x' &&
        agx_parse_u64(agx_str_skip(times, 1), UINT32_MAX, &left))
        line = rest;
    code = agx_fake_plan_parse(line, &plan, err);
    if (code < 0)
        return code;
    agx_fake_plan_done(&plan);
    rule = agx_new(struct agx_fake_rule);
    *rule = (struct agx_fake_rule){ .verb = dup_or_abort(verb),
                                    .pattern = dup_or_abort(pattern),
                                    .counted = left > 0,
                                    .left = left,
                                    .actions = dup_or_abort(line),
                                    .older = r->newest };
    r->newest = rule;
    return 0;
}

void agx_fake_rules_done(struct agx_fake_rules *r)
{
    struct agx_fake_rule *rule;

    while (r && (rule = r->newest)) {
        r->newest = rule->older;
        rule_free(rule);
    }
}

static bool fits(const struct agx_fake_rule *rule, const char *verb, const char *sandbox_id)
{
    if (rule->counted && rule->left == 0)
        return false;
    return (strcmp(rule->verb, "*") == 0 || strcmp(rule->verb, verb) == 0) &&
           fnmatch(rule->pattern, sandbox_id, 0) == 0;
}

void agx_fake_rules_find(struct agx_fake_rules *r, const struct agx_pairs *labels, const char *verb,
                         const char *sandbox_id, struct agx_fake_plan *ret)
{
    const char *text = NULL;
    char key[32];

    (void)snprintf(key, sizeof(key), LABEL "%s", verb);
    text = labels ? agx_pairs_get(labels, key) : NULL;
    for (struct agx_fake_rule *rule = r->newest; rule && !text; rule = rule->older) {
        if (!fits(rule, verb, sandbox_id))
            continue;
        rule->left -= rule->counted;
        text = rule->actions;
    }
    *ret = (struct agx_fake_plan){ 0 };
    if (text)
        (void)!agx_fake_plan_parse(agx_str_from(text), ret, NULL); /* it was checked before */
}

bool agx_fake_rule_is_label(const char *key)
{
    return strncmp(key, LABEL, strlen(LABEL)) == 0;
}

int agx_fake_rule_check_labels(const struct agx_pairs *labels, struct agx_words *warnings,
                               struct agx_error **err)
{
    const char *warning = agx_pairs_get(labels, LABEL "warn");
    int r = warning ? agx_words_add(warnings, agx_str_from(warning), err) : 0;

    for (size_t i = 0; r == 0 && i < labels->len; i++) {
        const char *key = labels->items[i].key, *value = labels->items[i].value;
        _cleanup_(agx_error_freep) struct agx_error *why = NULL;
        struct agx_fake_plan plan;
        char text[256];

        if (!agx_fake_rule_is_label(key) || strcmp(key, LABEL "warn") == 0)
            continue;
        if (strcmp(key, LABEL "check") == 0)
            return agx_error_set(err, AGX_FAILED_PRECONDITION, "labels[%s]: %s", key, value);
        if (!is_verb(agx_str_from(key + strlen(LABEL))))
            return agx_error_set(err, AGX_FAILED_PRECONDITION, "labels[%s]: no such verb", key);
        if (agx_fake_plan_parse(agx_str_from(value), &plan, &why) < 0)
            return agx_error_set(err, AGX_FAILED_PRECONDITION, "labels[%s]: %s", key,
                                 agx_error_format(why, text, sizeof(text)));
        agx_fake_plan_done(&plan);
    }
    return r;
}

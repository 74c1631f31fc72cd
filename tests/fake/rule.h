/*
 * rule.h: the script of the fake world: what a verb does to the sandboxes that a pattern names.
 *
 *     create *          delay 50ms
 *     create web-?      x2 fail UNAVAILABLE no room
 *     stop   stuck-*    hang
 *     create crash-*    delay 10ms; die 100ms
 *
 * A sandbox's labels may contain the same actions, without a pattern: `fake.create: delay 50ms`. A
 * label wins over the script; in the script the newest rule that matches wins.
 */
#ifndef AGX_TESTS_FAKE_RULE_H
#define AGX_TESTS_FAKE_RULE_H

#include "core/pairs.h"
#include "core/reconcile.h"

enum agx_fake_way {
    AGX_FAKE_GOES,
    AGX_FAKE_FAILS,
    AGX_FAKE_HANGS,            /* for ever, even if it is cancelled */
    AGX_FAKE_HANGS_UNTIL_TOLD, /* for ever, or until it is cancelled */
};

/* What happens to one request. */
struct agx_fake_plan {
    uint64_t delay_ms;
    uint64_t layers; /* of an image that is pulled during the delay; 0: none */
    enum agx_fake_way way;
    enum agx_code code; /* of FAILS */
    char *message;
    bool dies; /* so long after the success, the main process... */
    uint64_t dies_after_ms;
    enum agx_seen dies_as; /* ...ends in this way */
    bool has_companion;    /* this companion does not become ready */
    uint64_t companion;
    char *companion_message;
};

/* "delay 50ms; fail UNAVAILABLE no room". -AGX_INVALID_ARGUMENT says what is wrong. */
int agx_fake_plan_parse(struct agx_str text, struct agx_fake_plan *ret,
                        struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_fake_plan_done(struct agx_fake_plan *p);

struct agx_fake_rule;

struct agx_fake_rules {
    struct agx_fake_rule *newest;
};

/* One line: VERB PATTERN [xN] ACTION[; ACTION...]. With xN it applies to N requests. Verbs: those
 * of agx_do_name(), look, use, exec, kill, or * for any. */
int agx_fake_rules_add(struct agx_fake_rules *r, struct agx_str line,
                       struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_fake_rules_done(struct agx_fake_rules *r);

/* Decides what happens to this request; the caller frees it with agx_fake_plan_done(). */
void agx_fake_rules_find(struct agx_fake_rules *r, const struct agx_pairs *labels, const char *verb,
                         const char *sandbox_id, struct agx_fake_plan *ret);

bool agx_fake_rule_is_label(const char *key);
/* -AGX_FAILED_PRECONDITION: one of the labels is invalid, or there is `fake.check`, whose value is
 * the message. The value of `fake.warn` is added to the warnings. */
int agx_fake_rule_check_labels(const struct agx_pairs *labels, struct agx_words *warnings,
                               struct agx_error **err) AGX_MUST_CHECK;

/* "50ms", or seconds as a plain number. */
bool agx_fake_parse_ms(struct agx_str text, uint64_t *ret_ms);

/* The next word of *rest, without the blanks around it; empty at the end. */
struct agx_str agx_fake_word(struct agx_str *rest);

#endif

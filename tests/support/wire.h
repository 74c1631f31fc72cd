/* wire.h: records with a value in every field, and their comparison field by field. */
#ifndef AGX_TESTS_WIRE_H
#define AGX_TESTS_WIRE_H

#include "base/buf.h"
#include "core/exec.h"
#include "tests/support/pairs.h"
#include "tests/support/test.h"

enum { WIRE_OUT_MAX = 1 << 20 };

#define WIRE_TRY(call)                                                                             \
    do {                                                                                           \
        int try_ = (call);                                                                         \
        if (try_ < 0)                                                                              \
            return try_;                                                                           \
    } while (0)

static inline int wire_words(struct agx_words *w, const char *a, const char *b)
{
    WIRE_TRY(agx_words_add(w, agx_str_from(a), NULL));
    return agx_words_add(w, agx_str_from(b), NULL);
}

static inline int wire_pairs(struct agx_pairs *p, const char *value)
{
    WIRE_TRY(agx_pairs_set(p, AGX_STR("key"), agx_str_from(value), NULL));
    WIRE_TRY(agx_pairs_set(p, AGX_STR("empty"), AGX_STR(""), NULL));
    return agx_pairs_set(p, AGX_STR("\xc3\xa4"), AGX_STR("\xe2\x82\xac"), NULL);
}

static inline int wire_limits(struct agx_limit_texts *l, const char *cpu)
{
    WIRE_TRY(agx_text_set(&l->cpu, cpu, NULL));
    WIRE_TRY(agx_text_set(&l->memory, "512m", NULL));
    return agx_text_set(&l->disk, "1.5 GiB", NULL);
}

static inline int wire_companion(struct agx_spec *s)
{
    struct agx_companion *c;

    WIRE_TRY(agx_spec_add_companion(s, &c, NULL));
    WIRE_TRY(agx_text_set(&c->name, "db", NULL));
    WIRE_TRY(agx_text_set(&c->image, "postgres:16", NULL));
    WIRE_TRY(wire_pairs(&c->envs, "secret"));
    c->healthcheck.set = true;
    WIRE_TRY(wire_words(&c->healthcheck.test, "CMD-SHELL", "pg_isready"));
    c->healthcheck.interval_ns = 1500000000;
    c->healthcheck.timeout_ns = 0;
    c->healthcheck.start_period_ns = -1500000000;
    c->healthcheck.retries = 7;
    WIRE_TRY(wire_words(&c->post_start_on_primary, "migrate", ""));
    WIRE_TRY(wire_words(&c->command, "postgres", "-F"));
    WIRE_TRY(wire_limits(&c->limits, "0.5"));
    WIRE_TRY(agx_spec_add_companion(s, &c, NULL));
    return agx_text_set(&c->name, "cache", NULL);
}

/* Sets every field of `s`, which is initialised. Negative without memory. */
static inline int wire_spec(struct agx_spec *s)
{
    struct agx_mount *mount;
    struct agx_copy *copy;
    struct agx_port *port;

    WIRE_TRY(agx_text_set(&s->image, "debian:12", NULL));
    WIRE_TRY(agx_spec_add_mount(s, &mount, NULL));
    WIRE_TRY(agx_text_set(&mount->source, "/srv/data", NULL));
    WIRE_TRY(agx_text_set(&mount->target, "/data", NULL));
    mount->writable = true;
    mount->suid = AGX_SUID_ALLOW;
    WIRE_TRY(agx_spec_add_copy(s, &copy, NULL));
    WIRE_TRY(agx_text_set(&copy->source, "~/code", NULL));
    WIRE_TRY(agx_text_set(&copy->target, "/workspace", NULL));
    WIRE_TRY(wire_words(&copy->exclude_patterns, "*.o", ".git"));
    WIRE_TRY(agx_spec_add_port(s, &port, NULL));
    *port = (struct agx_port){ 80, 8080, AGX_PROTOCOL_UDP };
    WIRE_TRY(wire_companion(s));
    WIRE_TRY(wire_words(&s->builtin_tools, "git", "uv"));
    WIRE_TRY(wire_pairs(&s->labels, "label"));
    WIRE_TRY(wire_pairs(&s->envs, "environment"));
    s->idle_ttl_ns = INT64_C(600) * 1000000000 + 1;
    WIRE_TRY(wire_words(&s->command, "sleep", "infinity"));
    WIRE_TRY(wire_limits(&s->limits, "2"));
    WIRE_TRY(agx_text_set(&s->gpus, "all", NULL));
    s->network = AGX_NETWORK_EGRESS;
    return wire_words(&s->egress, "10.0.0.0/8:443", "203.0.113.7");
}

static inline void wire_same_limits(const struct agx_limit_texts *a,
                                    const struct agx_limit_texts *b)
{
    ASSERT_CSTR(agx_text(a->cpu), agx_text(b->cpu));
    ASSERT_CSTR(agx_text(a->memory), agx_text(b->memory));
    ASSERT_CSTR(agx_text(a->disk), agx_text(b->disk));
}

static inline void wire_same_companion(const struct agx_companion *a, const struct agx_companion *b)
{
    ASSERT_CSTR(agx_text(a->name), agx_text(b->name));
    ASSERT_CSTR(agx_text(a->image), agx_text(b->image));
    ASSERT_TRUE(test_pairs_eq(&a->envs, &b->envs));
    ASSERT_INT(a->healthcheck.set, b->healthcheck.set);
    ASSERT_TRUE(agx_words_eq(&a->healthcheck.test, &b->healthcheck.test));
    ASSERT_INT(a->healthcheck.interval_ns, b->healthcheck.interval_ns);
    ASSERT_INT(a->healthcheck.timeout_ns, b->healthcheck.timeout_ns);
    ASSERT_INT(a->healthcheck.start_period_ns, b->healthcheck.start_period_ns);
    ASSERT_INT(a->healthcheck.start_interval_ns, b->healthcheck.start_interval_ns);
    ASSERT_UINT(a->healthcheck.retries, b->healthcheck.retries);
    ASSERT_TRUE(agx_words_eq(&a->post_start_on_primary, &b->post_start_on_primary));
    ASSERT_TRUE(agx_words_eq(&a->command, &b->command));
    wire_same_limits(&a->limits, &b->limits);
}

static inline void wire_same_files(const struct agx_spec *a, const struct agx_spec *b)
{
    ASSERT_UINT(a->mounts_len, b->mounts_len);
    for (size_t i = 0; i < a->mounts_len; i++) {
        ASSERT_CSTR(agx_text(a->mounts[i].source), agx_text(b->mounts[i].source));
        ASSERT_CSTR(agx_text(a->mounts[i].target), agx_text(b->mounts[i].target));
        ASSERT_INT(a->mounts[i].writable, b->mounts[i].writable);
        ASSERT_INT(a->mounts[i].suid, b->mounts[i].suid);
    }
    ASSERT_UINT(a->copies_len, b->copies_len);
    for (size_t i = 0; i < a->copies_len; i++) {
        ASSERT_CSTR(agx_text(a->copies[i].source), agx_text(b->copies[i].source));
        ASSERT_CSTR(agx_text(a->copies[i].target), agx_text(b->copies[i].target));
        ASSERT_TRUE(agx_words_eq(&a->copies[i].exclude_patterns, &b->copies[i].exclude_patterns));
    }
}

static inline void wire_same_spec(const struct agx_spec *a, const struct agx_spec *b)
{
    ASSERT_CSTR(agx_text(a->image), agx_text(b->image));
    wire_same_files(a, b);
    ASSERT_UINT(a->ports_len, b->ports_len);
    for (size_t i = 0; i < a->ports_len; i++) {
        ASSERT_UINT(a->ports[i].container_port, b->ports[i].container_port);
        ASSERT_UINT(a->ports[i].host_port, b->ports[i].host_port);
        ASSERT_INT(a->ports[i].protocol, b->ports[i].protocol);
    }
    ASSERT_UINT(a->companions_len, b->companions_len);
    for (size_t i = 0; i < a->companions_len; i++)
        wire_same_companion(&a->companions[i], &b->companions[i]);
    ASSERT_TRUE(agx_words_eq(&a->builtin_tools, &b->builtin_tools));
    ASSERT_TRUE(test_pairs_eq(&a->labels, &b->labels));
    ASSERT_TRUE(test_pairs_eq(&a->envs, &b->envs));
    ASSERT_INT(a->idle_ttl_ns, b->idle_ttl_ns);
    ASSERT_TRUE(agx_words_eq(&a->command, &b->command));
    wire_same_limits(&a->limits, &b->limits);
    ASSERT_CSTR(agx_text(a->gpus), agx_text(b->gpus));
    ASSERT_INT(a->network, b->network);
    ASSERT_TRUE(agx_words_eq(&a->egress, &b->egress));
}

/* Makes a sandbox that failed once, with a value in every field; zeroed before. */
static inline int wire_sandbox(struct agx_sandbox *sb)
{
    struct agx_spec spec;
    int r;

    agx_spec_init(&spec);
    r = wire_spec(&spec);
    if (r == 0)
        r = agx_sandbox_init(sb, "box-1", &spec, NULL);
    if (r < 0) {
        agx_spec_done(&spec);
        return r;
    }
    sb->owner_uid = 1000;
    sb->created = (struct agx_stamp){ 1700000000123456789, 5000000001, UINT64_MAX };
    sb->life.phase = AGX_PHASE_FAILED;
    sb->life.op = AGX_DO_HALT;
    sb->life.prepared = true;
    sb->life.cause = AGX_CAUSE_IDLE_TTL;
    sb->life.last_sequence = 12;
    sb->life.changed = (struct agx_stamp){ 1700000001000000000, 6, 7 };
    sb->life.idle_from = (struct agx_stamp){ -1, 8, 9 };
    if (sb->life.companions_len == 2 && sb->life.companions) {
        sb->life.companions[0] = AGX_COMPANION_FAILED;
        sb->life.companions[1] = AGX_COMPANION_READY;
    }
    WIRE_TRY(wire_words(&sb->warnings, "mind the gap", "and the step"));
    WIRE_TRY(agx_text_set(&sb->life.error_code, AGX_FAILED_OOM, NULL));
    return agx_text_set(&sb->life.error_message, "main process: out of memory", NULL);
}

/* Makes an exec that failed; zeroed before. */
static inline int wire_exec(struct agx_exec *e)
{
    WIRE_TRY(agx_exec_init(e, "exec-1", "box-1", NULL));
    WIRE_TRY(wire_words(&e->command, "make", ""));
    WIRE_TRY(agx_text_set(&e->cwd, "/workspace", NULL));
    WIRE_TRY(wire_pairs(&e->env_overrides, "override"));
    e->deadline_ns = 30000000000;
    e->created = (struct agx_stamp){ 1700000002000000003, 10, 11 };
    e->phase = AGX_EXEC_PHASE_ENDED;
    e->state = AGX_EXEC_FAILED;
    e->exit_code = -1;
    WIRE_TRY(agx_text_set(&e->error_code, AGX_FAILED_EXEC_RUN, NULL));
    return agx_text_set(&e->error_message, "exit code -1", NULL);
}

static inline void wire_same_exec(const struct agx_exec *a, const struct agx_exec *b)
{
    ASSERT_CSTR(agx_text(a->id), agx_text(b->id));
    ASSERT_CSTR(agx_text(a->sandbox_id), agx_text(b->sandbox_id));
    ASSERT_TRUE(agx_words_eq(&a->command, &b->command));
    ASSERT_CSTR(agx_text(a->cwd), agx_text(b->cwd));
    ASSERT_TRUE(test_pairs_eq(&a->env_overrides, &b->env_overrides));
    ASSERT_INT(a->deadline_ns, b->deadline_ns);
    ASSERT_INT(a->state, b->state);
    ASSERT_INT(a->exit_code, b->exit_code);
    ASSERT_CSTR(agx_text(a->error_code), agx_text(b->error_code));
    ASSERT_CSTR(agx_text(a->error_message), agx_text(b->error_message));
    ASSERT_INT(a->created.wall_ns, b->created.wall_ns);
}

/* Makes an event with every text that its type may have; zeroed before. */
static inline int wire_event(struct agx_event *e, enum agx_event_type type)
{
    enum agx_event_details details = agx_event_details(type);

    WIRE_TRY(agx_event_init(
        e,
        &(struct agx_event_text){
            .subject = details == AGX_EVENT_DETAILS_EXEC        ? "exec-1"
                       : details == AGX_EVENT_DETAILS_COMPANION ? "db"
                                                                : NULL,
            .reason = details == AGX_EVENT_DETAILS_PHASE ? "idle_ttl" : NULL,
            .error_code = details != AGX_EVENT_DETAILS_NONE ? "SOME_CODE" : NULL,
            .error_message = details != AGX_EVENT_DETAILS_NONE ? "some words" : NULL },
        NULL));
    e->sequence = 5;
    e->type = type;
    e->state = AGX_STATE_STOPPED;
    e->occurred_at_ns = 1700000003999999999;
    e->exit_code = details == AGX_EVENT_DETAILS_EXEC ? 3 : 0;
    return 0;
}

static inline void wire_same_event(const struct agx_event *a, const struct agx_event *b)
{
    ASSERT_UINT(a->sequence, b->sequence);
    ASSERT_INT(a->type, b->type);
    ASSERT_INT(a->state, b->state);
    ASSERT_INT(a->occurred_at_ns, b->occurred_at_ns);
    ASSERT_INT(a->exit_code, b->exit_code);
    ASSERT_CSTR(agx_text(a->subject), agx_text(b->subject));
    ASSERT_CSTR(agx_text(a->reason), agx_text(b->reason));
    ASSERT_CSTR(agx_text(a->error_code), agx_text(b->error_code));
    ASSERT_CSTR(agx_text(a->error_message), agx_text(b->error_message));
}

#endif

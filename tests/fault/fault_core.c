#include "core/exec.h"
#include "core/ignore.h"
#include "core/imageref.h"
#include "core/spec_yaml.h"
#include "tests/support/core.h"
#include "tests/support/fault.h"

static int look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    (void)user;
    (void)path;
    (void)err;
    *ret = AGX_PATH_DIRECTORY;
    return 0;
}

static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((r = (call)) < 0)                                                                      \
            return r;                                                                              \
    } while (0)

static int fill(struct agx_spec *s, struct agx_error **err)
{
    struct agx_companion *c = NULL;
    struct agx_mount *m = NULL;
    struct agx_copy *k = NULL;
    struct agx_port *p = NULL;
    int r;

    TRY(agx_text_set(&s->image, "debian", err));
    TRY(agx_spec_add_mount(s, &m, err));
    TRY(agx_text_set(&m->source, "~/a", err));
    TRY(agx_text_set(&m->target, "~/b", err));
    TRY(agx_spec_add_copy(s, &k, err));
    TRY(agx_text_set(&k->source, "/a", err));
    TRY(agx_text_set(&k->target, "/c", err));
    TRY(agx_words_add(&k->exclude_patterns, AGX_STR("*.o"), err));
    TRY(agx_spec_add_port(s, &p, err));
    *p = (struct agx_port){ 1, 2, 0 };
    TRY(agx_spec_add_companion(s, &c, err));
    TRY(agx_text_set(&c->name, "db", err));
    TRY(agx_text_set(&c->image, "redis", err));
    TRY(agx_pairs_set(&c->envs, AGX_STR("k"), AGX_STR("v"), err));
    c->healthcheck.set = true;
    TRY(agx_words_add(&c->healthcheck.test, AGX_STR("NONE"), err));
    TRY(agx_text_set(&c->limits.memory, "1g", err));
    TRY(agx_words_add(&s->builtin_tools, AGX_STR("uv"), err));
    TRY(agx_pairs_set(&s->labels, AGX_STR("b"), AGX_STR("1"), err));
    TRY(agx_pairs_set(&s->labels, AGX_STR("a"), AGX_STR("1"), err));
    TRY(agx_pairs_set(&s->labels, AGX_STR("a"), AGX_STR("2"), err));
    TRY(agx_words_add(&s->command, AGX_STR("sh"), err));
    return agx_text_set(&s->gpus, "all", err);
}

TEST(spec_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_spec s, copy;
        int r;

        agx_spec_init(&s);
        agx_spec_init(&copy);
        r = fill(&s, &err);
        if (r == 0)
            r = agx_spec_copy(&copy, &s, &err);
        if (r == 0)
            r = agx_spec_accept(&s, &host, &err);
        if (r == 0) {
            agx_spec_done(&s);
            agx_spec_init(&s);
            r = agx_spec_merge(&s, &copy, &err);
        }
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0, err != NULL);
        agx_spec_done(&s);
        agx_spec_done(&copy);
    }
}

/* Each step twice where memory failed: the first must have changed nothing. */
static void step(struct agx_sandbox *sb, struct agx_sandbox_input in)
{
    struct agx_life before = sb->life;
    struct agx_sandbox_output out;
    int r = agx_sandbox_step(sb, &in, &out, NULL);

    if (r < 0) {
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, r);
        ASSERT_INT(before.phase, sb->life.phase);
        ASSERT_INT(before.op, sb->life.op);
        ASSERT_INT(before.running, sb->life.running);
        ASSERT_UINT(before.last_sequence, sb->life.last_sequence);
        ASSERT_TRUE(before.error_code == sb->life.error_code);
        ASSERT_TRUE(before.error_message == sb->life.error_message);
        ASSERT_FALSE(out.has_event);
        ASSERT_FALSE(out.changed);
        ASSERT_OK(agx_sandbox_step(sb, &in, &out, NULL));
    }
    agx_event_done(&out.event);
}

static void exec_step(struct agx_exec *e, struct agx_sandbox *sb, enum agx_exec_on on)
{
    struct agx_exec_input in = { .on = on, .exit_code = 3 };
    struct agx_exec before = *e;
    uint64_t sequence = sb->life.last_sequence;
    struct agx_exec_output out;
    int r = agx_exec_step(e, sb, &in, &out, NULL);

    if (r < 0) {
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, r);
        ASSERT_INT(before.phase, e->phase);
        ASSERT_INT(before.running, e->running);
        ASSERT_INT(before.state, e->state);
        ASSERT_TRUE(before.error_message == e->error_message);
        ASSERT_UINT(sequence, sb->life.last_sequence);
        ASSERT_FALSE(out.has_event);
        ASSERT_OK(agx_exec_step(e, sb, &in, &out, NULL));
    }
    agx_event_done(&out.event);
}

TEST(sandbox_and_exec_steps_without_memory_change_nothing)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_sandbox sb = { 0 };
        struct agx_exec e = { 0 };
        struct agx_life copy = { 0 };
        struct agx_spec spec;

        agx_spec_init(&spec);
        if (fill(&spec, NULL) == 0 && agx_sandbox_init(&sb, "box1", &spec, NULL) == 0 &&
            agx_exec_init(&e, "exec1", "box1", NULL) == 0) {
            step(&sb, (struct agx_sandbox_input){ .on = AGX_ON_CREATE });
            step(&sb,
                 (struct agx_sandbox_input){ .on = AGX_ON_COMPANION_FAILED, .error_message = "m" });
            step(&sb, (struct agx_sandbox_input){ .on = AGX_ON_DONE, .op = AGX_DO_CREATE });
            exec_step(&e, &sb, AGX_EXEC_ON_CREATE);
            exec_step(&e, &sb, AGX_EXEC_ON_EXITED);
            step(&sb, (struct agx_sandbox_input){ .on = AGX_ON_STOP });
            step(&sb, (struct agx_sandbox_input){
                          .on = AGX_ON_FAILED, .op = AGX_DO_STOP, .error_message = "m" });
            if (agx_life_copy(&copy, &sb.life, NULL) == 0)
                agx_life_done(&copy);
            ASSERT_UINT(7, sb.life.last_sequence);
            ASSERT_CSTR("SANDBOX_STOP_FAILED", sb.life.error_code);
        }
        agx_spec_done(&spec);
        agx_exec_done(&e);
        agx_sandbox_done(&sb);
    }
}

TEST(event_copy_and_snapshot_without_memory_leave_nothing)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_event_text text = { "s", "r", "c", "m" };
        struct agx_event e = { .sequence = 1 }, copy = { 0 }, snapshot = { 0 };
        int r = agx_event_init(&e, &text, NULL);

        if (r == 0)
            r = agx_event_copy(&copy, &e, NULL);
        if (r == 0)
            r = agx_event_snapshot_exec(&snapshot, "exec1", 1, AGX_STATE_READY, 1, NULL);
        ASSERT_INT(r < 0, agx_fault_hit());
        agx_event_done(&e);
        agx_event_done(&copy);
        agx_event_done(&snapshot);
    }
}

TEST(spec_yaml_without_memory_is_resource_exhausted)
{
    static const char yaml[] = "image: &i x\n"
                               "mounts: [{source: /a, target: /b, writable: true}]\n"
                               "copies: [{source: /a, target: /c, exclude_patterns: [x, y]}]\n"
                               "ports: [{container_port: 1, host_port: 2}]\n"
                               "envs: &e {A: 1, B: 2}\n"
                               "labels: {<<: *e, C: 3}\n"
                               "companion_containers: {db: {image: *i, command: [a], envs: *e}}\n";

    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_spec s;
        int r = agx_spec_from_yaml(&s, agx_str_from(yaml), &err);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0, err != NULL);
        if (r == 0)
            agx_spec_done(&s);
    }
}

TEST(ignore_without_memory_is_resource_exhausted)
{
    char *items[] = { (char *)"*.o", (char *)"[a-z]", (char *)"[" };
    const struct agx_words globs = { items, 3 };

    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_ignore_freep) struct agx_ignore *a = NULL, *b = NULL;
        int r = agx_ignore_new_globs(&globs, &a, NULL);

        if (r == 0)
            r = agx_ignore_new_lines(AGX_STR("a\n!b/\n\n#\n/c/**\n"), &b, NULL);
        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, r);
    }
}

TEST(imageref_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_imageref r;
        int n = agx_imageref_parse(
            &r, AGX_STR("reg.io/x:1@sha256:0123456789abcdef0123456789abcdef"), &err);

        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, n);
        ASSERT_INT(n < 0, err != NULL);
        if (n == 0)
            agx_imageref_done(&r);
    }
}

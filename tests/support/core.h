/* core.h: a sandbox for tests of the rules, with an accepted spec and two companions. */
#ifndef AGX_TESTS_CORE_H
#define AGX_TESTS_CORE_H

#include "core/exec.h"
#include "tests/support/test.h"

static inline void test_spec(struct agx_spec *s)
{
    static const char *const names[] = { "cache", "db" };

    agx_spec_init(s);
    ASSERT_OK(agx_text_set(&s->image, "debian:12", NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        struct agx_companion *c = NULL;

        ASSERT_OK(agx_spec_add_companion(s, &c, NULL));
        ASSERT_OK(agx_text_set(&c->name, names[i], NULL));
        ASSERT_OK(agx_text_set(&c->image, "redis:7", NULL));
    }
}

static inline void test_sandbox(struct agx_sandbox *sb, const char *id)
{
    struct agx_spec spec;

    test_spec(&spec);
    ASSERT_OK(agx_sandbox_init(sb, id, &spec, NULL));
}

static inline void test_exec(struct agx_exec *e, const char *id, const char *sandbox_id)
{
    ASSERT_OK(agx_exec_init(e, id, sandbox_id, NULL));
    ASSERT_OK(agx_words_add(&e->command, AGX_STR("true"), NULL));
}

/* A stamp of one boot, whose clocks run together. */
static inline struct agx_stamp test_at(uint64_t seconds)
{
    return (struct agx_stamp){ .wall_ns = (int64_t)((1000000 + seconds) * 1000000000),
                               .mono_ns = seconds * 1000000000,
                               .boot = 1 };
}

#endif

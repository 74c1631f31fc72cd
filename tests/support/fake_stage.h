/* fake_stage.h: a fake world (fake.h) with a backend on a loop, and a sandbox that has a companion.
 */
#ifndef AGX_TESTS_FAKE_STAGE_H
#define AGX_TESTS_FAKE_STAGE_H

#include "tests/support/fake.h"

struct test_stage {
    struct test_fake world;
    struct agx_backend *b;
    struct agx_sandbox sb;
    unsigned n_news; /* events of all sandboxes */
    char news_of[AGX_IDENT_MAX + 1];
};

static inline void test_stage_news(void *user, const char *sandbox_id)
{
    struct test_stage *s = user;

    s->n_news++;
    (void)snprintf(s->news_of, sizeof(s->news_of), "%s", sandbox_id ? sandbox_id : "*");
}

static inline void test_stage_sandbox(struct agx_sandbox *sb, const char *id, const char *label,
                                      const char *value)
{
    struct agx_companion *c = NULL;
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "fake:1", NULL));
    ASSERT_OK(agx_spec_add_companion(&spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, "cache", NULL));
    if (label)
        ASSERT_OK(agx_pairs_set(&spec.labels, agx_str_from(label), agx_str_from(value), NULL));
    ASSERT_OK(agx_sandbox_init(sb, id, &spec, NULL));
}

static inline void test_stage_open(struct test_stage *s)
{
    *s = (struct test_stage){ .world = test_fake_make() };
    s->b = test_fake_open(&s->world, test_loop_open());
    s->b->news = test_stage_news;
    s->b->news_user = s;
    test_stage_sandbox(&s->sb, "box-1", NULL, NULL);
}

static inline void test_stage_close(struct test_stage *s)
{
    struct agx_loop *l = s->b->loop;

    test_backend_close(s->b);
    agx_sandbox_done(&s->sb);
    test_loop_close(l);
    test_fake_remove(&s->world);
}

static inline void test_stage_begin(struct test_stage *s, struct test_command *c, const char *id,
                                    const char *word, const char *argument)
{
    test_command_init(c, id, &s->sb);
    ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(word), NULL));
    if (argument)
        ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(argument), NULL));
    test_command_start(s->b, &s->sb, c, false, true);
}

#endif

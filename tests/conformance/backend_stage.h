/* backend_stage.h: set-up and clean-up of a backend's test: a loop, a world, a sandbox. */
#ifndef AGX_TESTS_CONFORMANCE_BACKEND_STAGE_H
#define AGX_TESTS_CONFORMANCE_BACKEND_STAGE_H

#include "tests/conformance/backend.h"
#include "tests/support/backend.h"

struct stage {
    struct agx_backend *b;
    struct agx_sandbox sb;
};

static inline void make_sandbox(struct agx_sandbox *sb, const char *id, size_t companions)
{
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, conformance_backend_image(), NULL));
    for (size_t i = 0; i < companions; i++) {
        struct agx_companion *c = NULL;

        ASSERT_OK(agx_spec_add_companion(&spec, &c, NULL));
        ASSERT_OK(agx_text_set(&c->name, i == 0 ? "cache" : "db", NULL));
        ASSERT_OK(agx_text_set(&c->image, conformance_backend_image(), NULL));
    }
    ASSERT_OK(agx_sandbox_init(sb, id, &spec, NULL));
}

static inline void open_stage(struct stage *s)
{
    conformance_backend_begin();
    s->b = conformance_backend_open(test_loop_open());
    make_sandbox(&s->sb, "conform-1", 0);
}

static inline struct agx_loop *close_backend(struct stage *s)
{
    struct agx_loop *l = s->b->loop;

    test_backend_close(s->b);
    conformance_backend_closed(l);
    return l;
}

static inline void reopen(struct stage *s)
{
    s->b = conformance_backend_open(close_backend(s));
}

static inline void close_stage(struct stage *s)
{
    struct agx_loop *l = s->b->loop;

    conformance_backend_release();
    test_backend_ok(s->b, &s->sb, AGX_DO_DELETE);
    test_backend_close(s->b);
    conformance_backend_closed(l);
    agx_sandbox_done(&s->sb);
    test_loop_close(l);
    conformance_backend_remove();
}

#endif

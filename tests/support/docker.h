/* docker.h: a sandbox and an image for tests of requests to a Docker Engine. */
#ifndef AGX_TESTS_DOCKER_H
#define AGX_TESTS_DOCKER_H

#include "backend/docker/create_body.h"
#include "tests/support/test.h"

#include <stdlib.h>

#define INSTANCE "9a5f0c3e-4b1d-4e7a-8c2f-0123456789ab"

static const struct agx_docker_maker ours = { INSTANCE, false };
static const struct agx_docker_maker compat = { INSTANCE, true };

static inline void word(struct agx_words *w, const char *text)
{
    ASSERT_OK(agx_words_add(w, agx_str_from(text), NULL));
}

static inline void pair(struct agx_pairs *p, const char *key, const char *value)
{
    ASSERT_OK(agx_pairs_set(p, agx_str_from(key), agx_str_from(value), NULL));
}

static inline struct agx_companion *companion(struct agx_spec *s, const char *name)
{
    struct agx_companion *c = NULL;

    ASSERT_OK(agx_spec_add_companion(s, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, name, NULL));
    ASSERT_OK(agx_text_set(&c->image, "redis:7", NULL));
    return c;
}

static inline void sandbox_init(struct agx_sandbox *sb, const char *id)
{
    struct agx_spec s;

    agx_spec_init(&s);
    ASSERT_OK(agx_text_set(&s.image, "debian:12", NULL));
    ASSERT_OK(agx_sandbox_init(sb, id, &s, NULL));
}

/* Parses JSON that is written with single quotes. */
static inline json_t *quoted(const char *text)
{
    char *copy = strdup(text);
    json_t *value;

    ASSERT_NOT_NULL(copy);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    value = json_loads(copy, JSON_DECODE_ANY, NULL);
    if (!value)
        FAIL("not JSON: %s", copy);
    free(copy);
    return value;
}

/* Asserts that the value at a path such as "HostConfig/Memory" is this JSON; "null": no value. */
static inline void expect(const json_t *body, const char *path, const char *want)
{
    _cleanup_json_ json_t *value = quoted(want);
    struct agx_str rest = agx_str_from(path), part;
    char *printable;

    while (agx_str_split(&rest, '/', &part)) {
        _cleanup_free_ char *key = agx_str_dup(part);

        body = json_object_get(body, key);
    }
    if (body ? json_equal(body, value) : json_is_null(value))
        return;
    printable = json_dumps(body, JSON_ENCODE_ANY);
    FAIL("%s is %s, expected %s", path, printable ? printable : "missing", want);
}

#endif

/* random.h: random choices; a printed seed repeats them on any machine. */
#ifndef AGX_TESTS_RANDOM_H
#define AGX_TESTS_RANDOM_H

#include "base/uuid.h"
#include "tests/support/test.h"

#include <stdlib.h>

struct test_random {
    uint64_t seed, state;
};

static inline uint64_t test_from_env(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    uint64_t n;

    return text && agx_parse_u64(agx_str_from(text), UINT64_MAX, &n) ? n : fallback;
}

/* Takes the seed from the environment if it has one, otherwise from the kernel. */
static inline void test_random_init(struct test_random *r, const char *env)
{
    ASSERT_OK(agx_random_bytes(&r->seed, sizeof(r->seed), NULL));
    r->seed = test_from_env(env, r->seed >> 1);
    r->state = r->seed | 1; /* xorshift never leaves zero */
}

/* xorshift64*: good enough for choices, and only arithmetic. */
static inline uint64_t test_random_below(struct test_random *r, uint64_t n)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (r->state * UINT64_C(2685821657736338717) >> 16) % n;
}

#endif

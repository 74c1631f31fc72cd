/*
 * fuzz_fake.c: any text as a script of the fake world, or any bytes as a message. An accepted rule
 * is found again without a fault; every field that was read from a message lies within it. The
 * first byte of the input chooses between the two.
 */
#include "tests/fake/msg.h"
#include "tests/fake/rule.h"
#include "tests/support/fuzz.h"

static void script(struct agx_str text)
{
    static const char *const verbs[] = { "create", "exec", "look" };
    struct agx_fake_rules rules = { 0 };
    struct agx_str line;

    while (agx_str_split(&text, '\n', &line))
        (void)!agx_fake_rules_add(&rules, line, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(verbs); i++) {
        struct agx_fake_plan plan;

        agx_fake_rules_find(&rules, NULL, verbs[i], "box-1", &plan);
        FUZZ_CHECK(plan.way != AGX_FAKE_FAILS || plan.message);
        agx_fake_plan_done(&plan);
    }
    agx_fake_rules_done(&rules);
}

static void message(struct agx_str bytes)
{
    struct agx_fake_in in;
    size_t used = 0;

    if (agx_fake_in_open(&in, bytes, &used) <= 0)
        return;
    FUZZ_CHECK(used <= bytes.len && used >= AGX_FAKE_HEADER_SIZE);
    FUZZ_CHECK(in.n_fds <= AGX_FAKE_FDS_MAX);
    while (!in.bad && in.rest.len > 0) {
        struct agx_str s = in.tag % 2 == 0 ? agx_fake_in_str(&in) : AGX_STR("");

        FUZZ_CHECK(s.len == 0 || (s.ptr >= bytes.ptr && s.ptr + s.len <= bytes.ptr + used));
        (void)agx_fake_in_count(&in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] % 2 == 0)
        script(agx_str_bytes(data + 1, size - 1));
    else
        message(agx_str_bytes(data + 1, size - 1));
    return 0;
}

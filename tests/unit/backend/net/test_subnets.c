#include "backend/net/subnets.h"
#include "base/limits_backend.h"
#include "tests/support/test.h"

static struct agx_subnet subnet(const char *text)
{
    struct agx_subnet s = { 0 };

    ASSERT_OK(agx_subnet_parse(agx_str_from(text), &s, NULL));
    return s;
}

static struct agx_subnets pool(const char *text, unsigned prefix, uint64_t start)
{
    struct agx_subnet range = subnet(text);
    struct agx_subnets s = { 0 };

    ASSERT_OK(agx_subnets_init(&s, &range, prefix, start, NULL));
    return s;
}

static void take(struct agx_subnet_list *list, const char *text)
{
    struct agx_subnet s = subnet(text);

    ASSERT_OK(agx_subnet_list_add(list, &s, NULL));
}

static void check_next(struct agx_subnets *s, struct agx_subnet_list *taken, const char *want)
{
    struct agx_subnet got = { 0 };
    char text[AGX_SUBNET_TEXT];

    ASSERT_OK(agx_subnets_next(s, taken, &got, NULL));
    ASSERT_CSTR(want, agx_subnet_format(&got, text));
}

TEST(subnets_next_goes_round_the_pool)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list none = { 0 };
    struct agx_subnets s = pool("10.213.0.0/26", 28, 2);

    check_next(&s, &none, "10.213.0.32/28");
    check_next(&s, &none, "10.213.0.48/28");
    check_next(&s, &none, "10.213.0.0/28"); /* a range that is free again comes last */
    check_next(&s, &none, "10.213.0.16/28");
    check_next(&s, &none, "10.213.0.32/28");
}

TEST(subnets_next_steps_over_what_is_taken_smaller_larger_and_outside)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list taken = { 0 };
    struct agx_subnets s = pool("10.213.0.0/24", 28, 0);

    take(&taken, "10.213.0.64/26"); /* four pieces */
    take(&taken, "10.213.0.17");    /* an address in the second */
    take(&taken, "10.214.0.0/16");
    take(&taken, "172.17.0.0/16");
    take(&taken, "fd00::/8");
    take(&taken, "10.213.0.0/28");
    check_next(&s, &taken, "10.213.0.32/28");
    check_next(&s, &taken, "10.213.0.48/28");
    check_next(&s, &taken, "10.213.0.128/28");
}

TEST(subnets_next_of_a_full_pool_is_resource_exhausted)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list taken = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_subnets s = pool("10.213.0.0/16", 28, 77);
    struct agx_subnet got = { .prefix = 99 };

    take(&taken, "10.0.0.0/8"); /* a route of the site's VPN covers all of it */
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_subnets_next(&s, &taken, &got, &err));
    ASSERT_MESSAGE(err, "10.213.0.0/16");
    ASSERT_MESSAGE(err, "4096");
    ASSERT_INT(99, got.prefix);
}

TEST(subnets_next_gives_every_piece_of_the_default_pool_once)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list taken = { 0 };
    struct agx_subnets s = pool(AGX_SUBNETS_POOL, AGX_SUBNETS_PREFIX, 4000);
    struct agx_subnet got;

    for (int i = 0; i < 4096; i++) {
        ASSERT_OK(agx_subnets_next(&s, &taken, &got, NULL));
        if (i % 64 == 0) { /* or the test takes a second to compare them all */
            for (size_t j = 0; j < taken.len; j++)
                ASSERT_FALSE(agx_subnet_overlaps(&got, &taken.items[j]));
        }
        ASSERT_OK(agx_subnet_list_add(&taken, &got, NULL));
    }
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_subnets_next(&s, &taken, &got, NULL));
}

TEST(subnets_work_for_ipv6_too)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list taken = { 0 };
    struct agx_subnets s = pool("fd12:3456:789a::/48", 64, UINT64_C(0x1fffe));

    take(&taken, "fd12:3456:789a:ffff::/64");
    check_next(&s, &taken, "fd12:3456:789a:fffe::/64");
    check_next(&s, &taken, "fd12:3456:789a::/64");
}

TEST(subnets_init_of_a_pool_that_cannot_be_cut_is_invalid)
{
    static const struct {
        const char *pool;
        unsigned prefix;
    } bad[] = {
        { "10.213.0.0/16", 15 }, { "10.213.0.0/16", 30 }, { "fd00::/8", 64 }, { "fd00::/96", 127 }
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_subnet range = subnet(bad[i].pool);
        struct agx_subnets s;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_subnets_init(&s, &range, bad[i].prefix, 0, &err));
        ASSERT_NOT_NULL(err);
    }
}

TEST(subnets_host_has_the_loopback_range_and_no_default_route)
{
    _cleanup_(agx_subnet_list_done) struct agx_subnet_list taken = { 0 };
    struct agx_subnet loopback = subnet("127.0.0.1");
    bool found = false;

    ASSERT_OK(agx_subnets_host(&taken, NULL));
    for (size_t i = 0; i < taken.len; i++) {
        ASSERT_TRUE(taken.items[i].prefix > 0);
        found = found || agx_subnet_contains(&taken.items[i], &loopback);
    }
    if (!found && taken.len == 0)
        SKIP("no interface is up here");
    ASSERT_TRUE(found);
}

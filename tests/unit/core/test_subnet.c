#include "core/subnet.h"
#include "tests/support/test.h"

static struct agx_subnet subnet(const char *text)
{
    struct agx_subnet s = { 0 };

    ASSERT_OK(agx_subnet_parse(agx_str_from(text), &s, NULL));
    return s;
}

static void check_format(const char *text, const char *want)
{
    struct agx_subnet s = subnet(text);
    char out[AGX_SUBNET_TEXT];

    ASSERT_CSTR(want, agx_subnet_format(&s, out));
    s = subnet(out);
    ASSERT_CSTR(want, agx_subnet_format(&s, out)); /* reads what it wrote */
}

TEST(subnet_format_writes_the_shortest_form)
{
    check_format("10.213.7.9/28", "10.213.7.0/28");
    check_format("255.255.255.255", "255.255.255.255/32");
    check_format("0.0.0.0/0", "0.0.0.0/0");
    check_format("::", "::/128");
    check_format("::1", "::1/128");
    check_format("1::", "1::/128");
    check_format("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1/128");
    check_format("1:0:2:0:3:0:4:0", "1:0:2:0:3:0:4:0/128");
    check_format("0:0:1::", "0:0:1::/128");
    check_format("2001:db8:1:2:3:4:5:6/33", "2001:db8::/33");
    check_format("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
}

TEST(subnet_parse_of_other_text_is_invalid_and_writes_nothing)
{
    static const char *const bad[] = { "",      "10.0.0.0/",  "10.0.0.0/33", "10.0.0/8",
                                       "::/x",  "::/129",     "1.2.3.4:80",  "example.org",
                                       "[::1]", "10.0.0.0/8 " };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_subnet s = { .prefix = 77 };

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_subnet_parse(agx_str_from(bad[i]), &s, &err));
        ASSERT_MESSAGE(err, bad[i]);
        ASSERT_INT(77, s.prefix);
    }
}

static bool overlap(const char *a, const char *b)
{
    struct agx_subnet x = subnet(a), y = subnet(b);

    ASSERT_INT(agx_subnet_overlaps(&x, &y), agx_subnet_overlaps(&y, &x));
    return agx_subnet_overlaps(&x, &y);
}

TEST(subnet_overlap_is_containment_within_one_family)
{
    struct agx_subnet outer = subnet("10.0.0.0/8"), inner = subnet("10.9.0.0/16");

    ASSERT_TRUE(agx_subnet_contains(&outer, &inner));
    ASSERT_FALSE(agx_subnet_contains(&inner, &outer));
    ASSERT_TRUE(agx_subnet_contains(&outer, &outer));
    ASSERT_TRUE(overlap("10.0.0.0/8", "10.9.0.0/16"));
    ASSERT_FALSE(overlap("10.0.0.0/9", "10.128.0.0/9"));
    ASSERT_TRUE(overlap("0.0.0.0/0", "203.0.113.9"));
    ASSERT_FALSE(overlap("0.0.0.0/0", "::/0"));
    ASSERT_TRUE(overlap("fd00::/8", "fd12:3456::/32"));
    ASSERT_FALSE(overlap("fd00:0:0:1::/64", "fd00:0:0:2::/64"));
}

TEST(subnet_is_public_only_where_the_internet_routes_all_of_it)
{
    static const char *const public[] = { "8.8.8.8", "1.1.1.0/24", "2606:4700::/32" };
    static const char *const other[] = { "0.0.0.0/0",     "10.1.2.3",    "172.31.255.255",
                                         "192.168.0.1",   "127.0.0.1",   "169.254.169.254",
                                         "100.64.0.1",    "224.0.0.1",   "255.255.255.255",
                                         "192.0.0.192",   "::1",         "::ffff:808:808",
                                         "fe80::1",       "fd00::1",     "ff02::1",
                                         "64:ff9b::1",    "2001:db8::1", "2002:a00:1::",
                                         "168.63.129.16", "8.0.0.0/5" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(public); i++) {
        struct agx_subnet s = subnet(public[i]);

        ASSERT_TRUE(agx_subnet_is_public(&s));
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(other); i++) {
        struct agx_subnet s = subnet(other[i]);

        if (agx_subnet_is_public(&s))
            FAIL("%s is taken for public", other[i]);
    }
}

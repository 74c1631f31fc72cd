#include "runtime/origin.h"
#include "tests/support/test.h"

static struct agx_authority host_of(const char *text)
{
    struct agx_authority a;

    ASSERT_TRUE(agx_authority_parse(agx_str_from(text), &a));
    return a;
}

static struct agx_origin origin_of(const char *text)
{
    struct agx_origin o;

    ASSERT_TRUE(agx_origin_parse(agx_str_from(text), &o));
    return o;
}

TEST(authority_is_taken_apart)
{
    struct agx_authority a = host_of("Example.org:8000");

    ASSERT_TRUE(agx_str_eq(a.host, AGX_STR("Example.org")));
    ASSERT_TRUE(!a.is_ipv6 && a.has_port && a.port == 8000);
    a = host_of("[::1]");
    ASSERT_TRUE(agx_str_eq(a.host, AGX_STR("::1")));
    ASSERT_TRUE(a.is_ipv6 && !a.has_port);
    a = host_of("h:");
    ASSERT_TRUE(agx_str_eq(a.host, AGX_STR("h")) && !a.has_port);
    a = host_of("h:0");
    ASSERT_TRUE(a.has_port && a.port == 0);
}

TEST(authority_that_is_not_one_host_is_refused)
{
    static const char *const bad[] = {
        "",       ":80",        "h:x",         "h:65536",  "h:-1",        "h:+1",       "h:80:80",
        "h 80",   "a,b",        "a/b",         "u@h",      "u:p@h",       "[::1",       "::1",
        "[::1]x", "[]",         "[127.0.0.1]", "[::1%lo]", "[::1]:x",     "h?q",        "h#f",
        "h\\x",   "h%41",       " h",          "h ",       "\xc3\xa9.de", "[[::1]]:80", "h\t:80",
        "*",      "[::1][::1]", "[fe80::1%1",  "h:8 0",
    };
    char longest[AGX_HOST_MAX + 2];
    struct agx_authority a;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        if (agx_authority_parse(agx_str_from(bad[i]), &a))
            FAIL("taken: '%s'", bad[i]);
    }
    ASSERT_TRUE(!agx_authority_parse(AGX_STR("a\0b"), &a));
    ASSERT_TRUE(!agx_authority_parse(AGX_STR("[::1\0]"), &a));
    memset(longest, 'a', sizeof(longest));
    ASSERT_TRUE(agx_authority_parse((struct agx_str){ longest, AGX_HOST_MAX }, &a));
    ASSERT_TRUE(!agx_authority_parse((struct agx_str){ longest, AGX_HOST_MAX + 1 }, &a));
}

TEST(authority_of_the_loopback_is_known_in_its_plain_forms_only)
{
    static const char *const loopback[] = {
        "localhost", "LocalHost:8000",    "127.0.0.1",  "127.0.0.1:80",       "127.255.255.254",
        "[::1]",     "[0:0:0:0:0:0:0:1]", "[::1]:8000", "[::FFFF:127.0.0.1]",
    };
    static const char *const other[] = {
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0.0.0.0",
        "126.0.0.1",
        "128.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "localhost.",
        "[::]",
        "[::2]",
        "[::ffff:10.0.0.1]",
        "xlocalhost",
        "127.0.0.1.",
        "[fe80::1]:8000",
        "[::127.0.0.1]",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(loopback); i++) {
        struct agx_authority a = host_of(loopback[i]);

        if (!agx_authority_is_loopback(&a))
            FAIL("not known: '%s'", loopback[i]);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(other); i++) {
        struct agx_authority a = host_of(other[i]);

        if (agx_authority_is_loopback(&a))
            FAIL("taken: '%s'", other[i]);
    }
}

TEST(authorities_are_the_same_in_any_case_and_any_form_of_an_address)
{
    struct agx_authority name = host_of("Dev.Example:1"), same = host_of("dev.example");
    struct agx_authority v6 = host_of("[2001:DB8::1]"), v6_long = host_of("[2001:db8:0:0::1]:9");
    struct agx_authority prefix = host_of("dev.exampl");

    ASSERT_TRUE(agx_authority_eq_host(&name, &same));
    ASSERT_TRUE(agx_authority_eq_host(&v6, &v6_long));
    ASSERT_TRUE(!agx_authority_eq_host(&name, &prefix));
    ASSERT_TRUE(!agx_authority_eq_host(&name, &v6));
}

TEST(origin_that_is_none_is_refused)
{
    static const char *const bad[] = {
        "",
        "http:/h",
        "http//h",
        "http:h",
        "://h",
        "http://",
        "http://h/",
        "http://h/p",
        "http://h?q",
        "http://u@h",
        "nul",
        "null ",
        "NULL",
        "http://a http://b",
        "http://a,http://b",
        "h t://h",
        "http://h:x",
        "http://[::1",
        "*",
        "http://*",
    };
    struct agx_origin o;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        if (agx_origin_parse(agx_str_from(bad[i]), &o))
            FAIL("taken: '%s'", bad[i]);
    }
}

TEST(origins_are_the_same_when_scheme_host_and_port_are)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        { "http://h", "http://h:80", true },
        { "https://h", "https://h:443", true },
        { "HTTP://H", "http://h", true },
        { "http://[::1]", "http://[0::1]:80", true },
        { "null", "null", true },
        { "app+x://id", "app+x://id", true },
        { "http://h", "https://h", false },
        { "http://h", "http://h:81", false },
        { "http://h:443", "https://h:443", false },
        { "http://h", "http://hh", false },
        { "http://h", "null", false },
        { "app://id", "app://id:80", false },
        { "http://127.0.0.1", "http://[::ffff:127.0.0.1]", false },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_origin a = origin_of(cases[i].a), b = origin_of(cases[i].b);

        if (agx_origin_eq(&a, &b) != cases[i].same || agx_origin_eq(&b, &a) != cases[i].same)
            FAIL("'%s' and '%s'", cases[i].a, cases[i].b);
    }
}

TEST(origin_is_the_servers_own_when_it_is_the_host_that_was_asked)
{
    static const struct {
        const char *origin, *host;
        bool own;
    } cases[] = {
        { "http://127.0.0.1:8000", "127.0.0.1:8000", true },
        { "http://LOCALHOST:8000", "localhost:8000", true },
        { "http://[::1]:8000", "[::1]:8000", true },
        { "http://h", "h", true },
        { "http://h", "h:80", true },
        { "http://h:80", "h", true },
        { "https://h", "h", true },
        { "https://h", "h:443", true },
        { "https://h:8443", "h:8443", true },
        { "http://evil.example", "127.0.0.1:8000", false },
        { "http://127.0.0.1:8001", "127.0.0.1:8000", false },
        { "http://127.0.0.1", "127.0.0.1:8000", false },
        { "http://localhost:8000", "127.0.0.1:8000", false },
        { "http://127.0.0.1:8000.evil.example", "127.0.0.1:8000", false },
        { "https://h", "h:80", false },
        { "app://h", "h", false },
        { "null", "h", false },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_authority host = host_of(cases[i].host);
        struct agx_origin o;

        if ((agx_origin_parse(agx_str_from(cases[i].origin), &o) && agx_origin_is_own(&o, &host)) !=
            cases[i].own)
            FAIL("'%s' of '%s'", cases[i].origin, cases[i].host);
    }
}

#include "image/weburl.h"
#include "tests/support/test.h"

static bool parse(struct agx_weburl *u, const char *text)
{
    return agx_weburl_parse(u, agx_str_from(text));
}

TEST(weburl_is_cut_into_its_parts)
{
    struct agx_weburl u;

    ASSERT_TRUE(parse(&u, "https://reg.example:5000/v2/x?a=b"));
    ASSERT_TRUE(u.is_tls);
    ASSERT_STR(AGX_STR("reg.example:5000"), u.server);
    ASSERT_STR(AGX_STR("reg.example"), u.host);
    ASSERT_STR(AGX_STR("/v2/x?a=b"), u.rest);
    ASSERT_TRUE(parse(&u, "http://[::1]:80?q"));
    ASSERT_FALSE(u.is_tls);
    ASSERT_STR(AGX_STR("[::1]"), u.host);
    ASSERT_STR(AGX_STR("?q"), u.rest);
    ASSERT_TRUE(parse(&u, "http://h"));
    ASSERT_STR(AGX_STR(""), u.rest);
}

TEST(weburl_that_is_anything_else_is_refused)
{
    static const char *const bad[] = { "",
                                       "ftp://h/",
                                       "file:///etc/passwd",
                                       "https://",
                                       "https:///x",
                                       "https://user:secret@h/",
                                       "https://user@h/",
                                       "https://h:port/",
                                       "https://h:70000/",
                                       "https://h:1:2/",
                                       "https://[::1/",
                                       "https://[]/",
                                       "https://h/a b",
                                       "https://h/a\r\nX: y",
                                       "https://h/#part",
                                       "https://h\\@evil/",
                                       "https://\xc3\xa4.example/",
                                       "HTTPS://h/" };
    struct agx_weburl u;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        if (parse(&u, bad[i]))
            FAIL("taken: %s", bad[i]);
    ASSERT_FALSE(agx_weburl_parse(&u, AGX_STR("https://h/\0x")));
}

TEST(weburl_knows_the_hosts_of_this_machine)
{
    ASSERT_TRUE(agx_weburl_is_loopback(AGX_STR("localhost")));
    ASSERT_TRUE(agx_weburl_is_loopback(AGX_STR("127.0.0.1")));
    ASSERT_TRUE(agx_weburl_is_loopback(AGX_STR("127.1.2.3")));
    ASSERT_TRUE(agx_weburl_is_loopback(AGX_STR("[::1]")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("127.0.0.1.example")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("127.example.com.de")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("127.0.0.256")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("localhost.example")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("128.0.0.1")));
    ASSERT_FALSE(agx_weburl_is_loopback(AGX_STR("")));
}

static void check_resolve(const char *want, const char *location)
{
    struct agx_weburl from;
    char *got;

    ASSERT_TRUE(parse(&from, "https://a.example:1/v2/x"));
    got = agx_weburl_resolve(&from, agx_str_from(location));
    if (want)
        ASSERT_CSTR(want, got);
    else
        ASSERT_NULL(got);
    free(got);
}

TEST(weburl_of_a_redirect_is_resolved)
{
    check_resolve("http://b/c", "http://b/c");
    check_resolve("https://b/c?d", "//b/c?d");
    check_resolve("https://a.example:1/c", "/c");
    check_resolve(NULL, "c");
    check_resolve(NULL, "");
    check_resolve(NULL, "file:///etc/passwd");
    check_resolve(NULL, "//");
}

TEST(weburl_escapes_what_a_query_cannot_have)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100), small = AGX_BUF_INIT(4);

    ASSERT_OK(agx_weburl_escape(&out, AGX_STR("repository:a/b:pull~-_.&=?\0\xff")));
    ASSERT_STR(AGX_STR("repository%3Aa%2Fb%3Apull~-_.%26%3D%3F%00%FF"), agx_buf_peek(&out));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_weburl_escape(&small, AGX_STR("a&b")));
}

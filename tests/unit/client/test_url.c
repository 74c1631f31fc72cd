#include "client/url.h"
#include "tests/support/test.h"

static void expect(const char *text, const char *path, const char *host, const char *port,
                   const char *authority)
{
    struct agx_url u;

    ASSERT_OK(agx_url_parse(text, &u, NULL));
    ASSERT_CSTR(path, u.path);
    ASSERT_CSTR(host, u.host);
    ASSERT_CSTR(port, u.port);
    ASSERT_CSTR(authority, u.authority);
    agx_url_done(&u);
}

TEST(url_of_a_socket_or_a_host_is_taken_apart)
{
    expect("unix:///run/a b.sock", "/run/a b.sock", NULL, NULL, "localhost");
    expect("http://host:8000", NULL, "host", "8000", "host:8000");
    expect("http://127.0.0.1:1/", NULL, "127.0.0.1", "1", "127.0.0.1:1");
    expect("http://example.org", NULL, "example.org", "80", "example.org");
    expect("http://[::1]:8000", NULL, "::1", "8000", "[::1]:8000");
}

TEST(url_with_https_is_unimplemented_and_says_so)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_url u;

    ASSERT_CODE(AGX_UNIMPLEMENTED, agx_url_parse("https://host", &u, &err));
    ASSERT_MESSAGE(err, "https is not supported");
}

TEST(url_of_another_form_is_refused)
{
    static const char *const bad[] = {
        "",
        "host:8000",
        "/run/a.sock",
        "unix://relative",
        "ftp://host",
        "http://",
        "http://:80",
        "http://host:",
        "http://host:0",
        "http://host:65536",
        "http://host:1x",
        "http://host:80/path",
        "http://user@host",
        "http://ho st",
        "http://[::1",
        "http://[::1]80",
        "http://a\r\nb",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_url u;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_url_parse(bad[i], &u, &err));
        ASSERT_MESSAGE(err, "unix:///path or http://host:port");
    }
}

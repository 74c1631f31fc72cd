#include "core/egress.h"
#include "tests/support/test.h"

#include <stdio.h>

static void check(const char *text, bool ipv6, const uint8_t *address, int prefix, int port)
{
    struct agx_egress e;

    ASSERT_OK(agx_egress_parse(agx_str_from(text), &e, NULL));
    ASSERT_INT(ipv6, e.to.ipv6);
    ASSERT_STR(agx_str_bytes(address, ipv6 ? 16 : 4), agx_str_bytes(e.to.address, ipv6 ? 16 : 4));
    ASSERT_INT(prefix, e.to.prefix);
    ASSERT_INT(port, e.port);
}

TEST(egress_parse_reads_addresses_networks_and_ports)
{
    check("203.0.113.7", false, (uint8_t[]){ 203, 0, 113, 7 }, 32, 0);
    check("203.0.113.7:443", false, (uint8_t[]){ 203, 0, 113, 7 }, 32, 443);
    check("10.1.2.3/8:65535", false, (uint8_t[]){ 10, 0, 0, 0 }, 8, 65535);
    check("0.0.0.0/0", false, (uint8_t[]){ 0, 0, 0, 0 }, 0, 0);
    check("192.168.255.255/17", false, (uint8_t[]){ 192, 168, 128, 0 }, 17, 0);
    check("::", true, (uint8_t[16]){ 0 }, 128, 0);
    check("::1", true, (uint8_t[16]){ [15] = 1 }, 128, 0);
    check("2001:db8::/32", true, (uint8_t[16]){ 0x20, 0x01, 0x0d, 0xb8 }, 32, 0);
    check("[2001:DB8::1]:443", true, (uint8_t[16]){ 0x20, 0x01, 0x0d, 0xb8, [15] = 1 }, 128, 443);
    check("[fe80::/10]", true, (uint8_t[16]){ 0xfe, 0x80 }, 10, 0);
    check("1:2:3:4:5:6:7:8", true, (uint8_t[16]){ 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8 },
          128, 0);
    check("1:2:3:4:5:6:7::", true, (uint8_t[16]){ 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7 }, 128,
          0);
}

TEST(egress_parse_reads_names_with_and_without_a_port)
{
    static const struct {
        const char *text, *name;
        int port;
    } good[] = {
        { "pypi.org", "pypi.org", 0 },
        { "files.PythonHosted.org:443", "files.PythonHosted.org", 443 },
        { "_srv.a-b.xn--p1ai:1", "_srv.a-b.xn--p1ai", 1 },
        { "1.2.3.com", "1.2.3.com", 0 },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++) {
        struct agx_egress e;

        ASSERT_OK(agx_egress_parse(agx_str_from(good[i].text), &e, NULL));
        ASSERT_STR(agx_str_from(good[i].name), e.name);
        ASSERT_INT(good[i].port, e.port);
    }
}

TEST(egress_parse_takes_names_and_labels_up_to_what_the_dns_allows)
{
    char text[300], long_label[80];
    struct agx_egress e;

    memset(long_label, 'a', sizeof(long_label));
    (void)snprintf(text, sizeof(text), "%.63s.%.63s.%.63s.%.61s", long_label, long_label,
                   long_label, long_label);
    ASSERT_OK(agx_egress_parse(agx_str_from(text), &e, NULL));
    (void)snprintf(text, sizeof(text), "%.63s.%.63s.%.63s.%.62s", long_label, long_label,
                   long_label, long_label);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_egress_parse(agx_str_from(text), &e, NULL));
    (void)snprintf(text, sizeof(text), "%.64s.org", long_label);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_egress_parse(agx_str_from(text), &e, NULL));
}

TEST(egress_parse_of_other_text_is_invalid)
{
    static const char *const bad[] = {
        "",
        "localhost",
        "*.example.org",
        "example.org.",
        ".example.org",
        "example..org",
        "-a.org",
        "a-.org",
        "[example.org]:443",
        "example.org/24",
        "example.org:",
        "example.org:http",
        "https://example.org",
        "ex ample.org",
        "1.2.3.x4:1:2",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "1.2.3.04",
        "1.2.3.4/",
        "1.2.3.4/33",
        "1.2.3.4:0",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:65536",
        "1.2.3.4/8/8",
        " 1.2.3.4",
        "1.2.3.4/-1",
        "[1.2.3.4",
        "[::1]443",
        "[::1]:",
        "::1/129",
        ":::",
        "1::2::3",
        "12345::",
        "1:2:3:4:5:6:7",
        "g::",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        ":1:2:3:4:5:6:7",
        "/8",
        ":443",
        "[]",
        "[]:1",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_egress e = { .port = 7 };

        if (agx_egress_parse(agx_str_from(bad[i]), &e, &err) != -AGX_INVALID_ARGUMENT)
            FAIL("'%s' was taken", bad[i]);
        ASSERT_MESSAGE(err, "egress entry");
        ASSERT_INT(7, e.port);
    }
}

/* origin.c: parses and compares hosts and origins. */
#include "runtime/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/banned.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443 };

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Only letters, digits and characters of `extra`; not empty. */
static bool consists_of(struct agx_str s, const char *extra)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_alnum(s.ptr[i]) && (s.ptr[i] == '\0' || !strchr(extra, s.ptr[i])))
            return false;
    }
    return s.len > 0;
}

/* Parses an address with inet_pton(), which needs a NUL. */
static bool read_address(int family, struct agx_str text, void *ret)
{
    char z[INET6_ADDRSTRLEN];

    if (text.len >= sizeof(z))
        return false;
    memcpy(z, text.ptr, text.len);
    z[text.len] = '\0';
    return strlen(z) == text.len && inet_pton(family, z, ret) == 1;
}

static bool split(struct agx_str text, struct agx_authority *a, struct agx_str *ret_rest)
{
    struct in6_addr address;
    size_t n;

    if (text.len > 0 && text.ptr[0] == '[') {
        n = agx_str_find(text, ']');
        if (n == text.len)
            return false;
        a->is_ipv6 = true;
        a->host = (struct agx_str){ text.ptr + 1, n - 1 };
        *ret_rest = agx_str_skip(text, n + 1);
        return read_address(AF_INET6, a->host, &address);
    }
    n = agx_str_find(text, ':');
    a->host = (struct agx_str){ text.ptr, n };
    *ret_rest = agx_str_skip(text, n);
    return n <= AGX_HOST_MAX && consists_of(a->host, "-._");
}

bool agx_authority_parse(struct agx_str text, struct agx_authority *ret)
{
    struct agx_authority a = { .has_port = false };
    struct agx_str rest;
    uint64_t port = 0;

    if (!split(text, &a, &rest) || (rest.len > 0 && rest.ptr[0] != ':'))
        return false;
    /* "host:" is a host without a port (RFC 3986, 3.2.3). */
    a.has_port = rest.len > 1;
    if (a.has_port && !agx_parse_u64(agx_str_skip(rest, 1), UINT16_MAX, &port))
        return false;
    a.port = (uint16_t)port;
    *ret = a;
    return true;
}

static bool is_loopback4(const uint8_t *address)
{
    return address[0] == 127;
}

bool agx_authority_is_loopback(const struct agx_authority *a)
{
    uint8_t v4[4];
    struct in6_addr v6;

    if (!a->is_ipv6)
        return agx_str_eq_nocase(a->host, AGX_STR("localhost")) ||
               (read_address(AF_INET, a->host, v4) && is_loopback4(v4));
    return read_address(AF_INET6, a->host, &v6) &&
           (IN6_IS_ADDR_LOOPBACK(&v6) ||
            (IN6_IS_ADDR_V4MAPPED(&v6) && is_loopback4(v6.s6_addr + 12)));
}

bool agx_authority_eq_host(const struct agx_authority *a, const struct agx_authority *b)
{
    struct in6_addr x, y;

    if (a->is_ipv6 != b->is_ipv6)
        return false;
    if (!a->is_ipv6)
        return agx_str_eq_nocase(a->host, b->host);
    return read_address(AF_INET6, a->host, &x) && read_address(AF_INET6, b->host, &y) &&
           memcmp(&x, &y, sizeof(x)) == 0;
}

bool agx_origin_parse(struct agx_str text, struct agx_origin *ret)
{
    size_t n = agx_str_find(text, ':');
    struct agx_origin o = { .scheme = { text.ptr, n } };
    struct agx_str rest = agx_str_skip(text, n);

    if (agx_str_eq(text, AGX_STR("null"))) {
        *ret = (struct agx_origin){ .is_null = true };
        return true;
    }
    if (!consists_of(o.scheme, "+-.") || !agx_str_starts(rest, AGX_STR("://")) ||
        !agx_authority_parse(agx_str_skip(rest, 3), &o.at))
        return false;
    *ret = o;
    return true;
}

/* 0: none. */
static uint16_t port_of(const struct agx_origin *o)
{
    if (o->at.has_port)
        return o->at.port;
    if (agx_str_eq_nocase(o->scheme, AGX_STR("http")))
        return HTTP_PORT;
    return agx_str_eq_nocase(o->scheme, AGX_STR("https")) ? HTTPS_PORT : 0;
}

bool agx_origin_eq(const struct agx_origin *a, const struct agx_origin *b)
{
    if (a->is_null || b->is_null)
        return a->is_null && b->is_null;
    return agx_str_eq_nocase(a->scheme, b->scheme) && agx_authority_eq_host(&a->at, &b->at) &&
           port_of(a) == port_of(b);
}

bool agx_origin_is_own(const struct agx_origin *origin, const struct agx_authority *host)
{
    struct agx_origin own = { .scheme = origin->scheme, .at = *host };

    return !origin->is_null &&
           (agx_str_eq_nocase(origin->scheme, AGX_STR("http")) ||
            agx_str_eq_nocase(origin->scheme, AGX_STR("https"))) &&
           agx_origin_eq(origin, &own);
}

/*
 * fuzz_origin.c: an origin and a host, a line each. An accepted origin is equal to itself and to
 * the text made from its parts; equality does not depend on the order; a page counts as the
 * server's own only if host and origin name the same server.
 */
#include "runtime/origin.h"
#include "tests/support/fuzz.h"

static size_t write_authority(char *out, size_t size, const struct agx_authority *a)
{
    int n = snprintf(out, size, a->is_ipv6 ? "[%.*s]" : "%.*s", AGX_STR_ARG(a->host));

    if (a->has_port)
        n += snprintf(out + n, size - (size_t)n, ":%u", a->port);
    return (size_t)n;
}

static bool check_authority(struct agx_str text, struct agx_authority *a)
{
    char out[AGX_HOST_MAX + 16];
    struct agx_authority again;
    size_t n;

    if (!agx_authority_parse(text, a))
        return false;
    FUZZ_CHECK(a->host.len > 0 && a->host.len <= AGX_HOST_MAX);
    n = write_authority(out, sizeof(out), a);
    FUZZ_CHECK(agx_authority_parse((struct agx_str){ out, n }, &again));
    FUZZ_CHECK(agx_authority_eq_host(a, &again) && a->has_port == again.has_port &&
               a->port == again.port);
    FUZZ_CHECK(agx_authority_is_loopback(a) == agx_authority_is_loopback(&again));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str rest = agx_str_bytes(data, size), line = { NULL, 0 };
    struct agx_origin o, other;
    struct agx_authority host, copy;
    bool has_origin, has_host;

    (void)agx_str_split(&rest, '\n', &line);
    has_origin = agx_origin_parse(line, &o);
    has_host = check_authority(rest, &host);
    if (has_origin) {
        FUZZ_CHECK(agx_origin_eq(&o, &o));
        FUZZ_CHECK(o.is_null || check_authority(agx_str_skip(line, o.scheme.len + 3), &copy));
    }
    if (has_origin && agx_origin_parse(rest, &other))
        FUZZ_CHECK(agx_origin_eq(&o, &other) == agx_origin_eq(&other, &o));
    if (has_origin && has_host && agx_origin_is_own(&o, &host))
        FUZZ_CHECK(!o.is_null && agx_authority_eq_host(&o.at, &host));
    return 0;
}

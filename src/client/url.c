/* url.c: parses the two kinds of address. */
#include "client/url.h"

#include "base/banned.h"
#include "base/str.h"

static int url_bad(struct agx_error **err, const char *text, const char *why)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "address '%s': %s; write unix:///path or http://host:port", text, why);
}

/* Letters that a host name or an address can have; nothing that could end a header. */
static bool is_host(struct agx_str s)
{
    static const char extra[] = "-._:%";

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c != '\0' && strchr(extra, c))))
            return false;
    }
    return s.len > 0;
}

/* Cuts "host:port", "[address]:port" or either without a port. */
static bool split_authority(struct agx_str s, struct agx_str *ret_host, struct agx_str *ret_port)
{
    size_t n;

    if (s.len > 0 && s.ptr[0] == '[') {
        n = agx_str_find(s, ']');
        if (n == s.len)
            return false;
        *ret_host = (struct agx_str){ s.ptr + 1, n - 1 };
        s = agx_str_skip(s, n + 1);
    } else {
        n = agx_str_find(s, ':');
        *ret_host = (struct agx_str){ s.ptr, n };
        s = agx_str_skip(s, n);
    }
    *ret_port = AGX_STR("80");
    if (s.len == 0)
        return true;
    *ret_port = agx_str_skip(s, 1);
    return s.ptr[0] == ':';
}

static int parse_http(const char *text, struct agx_str rest, struct agx_url *ret,
                      struct agx_error **err)
{
    struct agx_str authority = { rest.ptr, agx_str_find(rest, '/') }, host, port;
    uint64_t number;

    rest = agx_str_skip(rest, authority.len);
    if (rest.len > 1)
        return url_bad(err, text, "a path has no meaning here");
    if (!split_authority(authority, &host, &port) || !is_host(host))
        return url_bad(err, text, "the host is invalid");
    if (!agx_parse_u64(port, 65535, &number) || number == 0)
        return url_bad(err, text, "the port is invalid");
    ret->host = agx_str_dup(host);
    ret->port = agx_str_dup(port);
    ret->authority = agx_str_dup(authority);
    return ret->host && ret->port && ret->authority ? 0 : agx_error_no_memory(err);
}

int agx_url_parse(const char *text, struct agx_url *ret, struct agx_error **err)
{
    struct agx_str s = agx_str_from(text);
    struct agx_url u = { NULL };
    int r;

    if (agx_str_starts(s, AGX_STR("unix:///"))) {
        u.path = agx_str_dup(agx_str_skip(s, sizeof("unix://") - 1));
        u.authority = agx_str_dup(AGX_STR("localhost"));
        r = u.path && u.authority ? 0 : agx_error_no_memory(err);
    } else if (agx_str_starts(s, AGX_STR("http://"))) {
        r = parse_http(text, agx_str_skip(s, sizeof("http://") - 1), &u, err);
    } else if (agx_str_starts(s, AGX_STR("https://"))) {
        r = agx_error_set(err, AGX_UNIMPLEMENTED,
                          "address '%s': https is not supported by the C library; use a tunnel, or "
                          "a client in another language",
                          text);
    } else {
        r = url_bad(err, text ? text : "", "unknown kind of address");
    }
    if (r < 0)
        agx_url_done(&u);
    else
        *ret = u;
    return r;
}

void agx_url_done(struct agx_url *u)
{
    free(u->path);
    free(u->host);
    free(u->port);
    free(u->authority);
    *u = (struct agx_url){ NULL };
}

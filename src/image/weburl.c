/* weburl.c: parses web addresses. */
#include "image/weburl.h"

#include <stdio.h>

#include "base/banned.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Characters of a host name, or of an IPv6 address between its brackets. */
static bool is_host(struct agx_str s, const char *also)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_word(s.ptr[i]) && !(s.ptr[i] && strchr(also, s.ptr[i])))
            return false;
    return s.len > 0;
}

static bool split_server(struct agx_weburl *u)
{
    struct agx_str s = u->server;
    size_t end = s.len > 0 && s.ptr[0] == '[' ? agx_str_find(s, ']') + 1 : agx_str_find(s, ':');
    struct agx_str port;
    uint64_t number;

    if (end > s.len)
        return false;
    u->host = (struct agx_str){ s.ptr, end };
    port = agx_str_skip(s, end);
    if (port.len > 0 &&
        (port.ptr[0] != ':' || !agx_parse_u64(agx_str_skip(port, 1), 65535, &number)))
        return false;
    if (end > 2 && s.ptr[0] == '[')
        return is_host((struct agx_str){ s.ptr + 1, end - 2 }, ":.");
    return is_host(u->host, ".-_");
}

bool agx_weburl_parse(struct agx_weburl *u, struct agx_str text)
{
    size_t end;

    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || strchr("\"#<>\\^`{|}", text.ptr[i]))
            return false;
    u->is_tls = agx_str_starts(text, AGX_STR("https://"));
    if (!u->is_tls && !agx_str_starts(text, AGX_STR("http://")))
        return false;
    text = agx_str_skip(text, u->is_tls ? strlen("https://") : strlen("http://"));
    end = AGX_MIN(agx_str_find(text, '/'), agx_str_find(text, '?'));
    u->server = (struct agx_str){ text.ptr, end };
    u->rest = agx_str_skip(text, end);
    return split_server(u);
}

bool agx_weburl_is_loopback(struct agx_str host)
{
    struct agx_str part;
    uint64_t number;
    size_t n = 0;

    if (agx_str_eq_nocase(host, AGX_STR("localhost")) || agx_str_eq(host, AGX_STR("[::1]")))
        return true;
    if (!agx_str_starts(host, AGX_STR("127.")))
        return false;
    for (; agx_str_split(&host, '.', &part); n++)
        if (!agx_parse_u64(part, 255, &number))
            return false;
    return n == 4;
}

char *agx_weburl_resolve(const struct agx_weburl *from, struct agx_str location)
{
    const char *scheme = from->is_tls ? "https:" : "http:";
    struct agx_weburl u;
    char *text = NULL;
    int n;

    if (agx_str_starts(location, AGX_STR("//")))
        n = asprintf(&text, "%s%.*s", scheme, AGX_STR_ARG(location));
    else if (agx_str_starts(location, AGX_STR("/")))
        n = asprintf(&text, "%s//%.*s%.*s", scheme, AGX_STR_ARG(from->server),
                     AGX_STR_ARG(location));
    else
        n = asprintf(&text, "%.*s", AGX_STR_ARG(location));
    if (n < 0)
        return NULL;
    if (agx_weburl_parse(&u, agx_str_from(text)))
        return text;
    free(text);
    return NULL;
}

int agx_weburl_escape(struct agx_buf *out, struct agx_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        int r = is_word(c) || (c && strchr("-._~", c))
                    ? agx_buf_push(out, (uint8_t)c)
                    : agx_buf_printf(out, "%%%02X", (unsigned char)c);

        if (r < 0)
            return r;
    }
    return 0;
}

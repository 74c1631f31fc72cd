/* egress.c: addresses by hand: the C library's reader brings the network's headers with it. */
#include "core/egress.h"

#include "base/banned.h"

static bool parse_ipv4(struct agx_str s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        struct agx_str part;
        uint64_t n;

        if (!agx_str_split(&s, '.', &part) || part.len > 3 || !agx_parse_u64(part, 255, &n))
            return false;
        if (part.len > 1 && part.ptr[0] == '0')
            return false; /* octal to some, decimal to others */
        out[i] = (uint8_t)n;
    }
    return s.ptr == NULL;
}

static bool parse_group(struct agx_str s, uint8_t out[2])
{
    unsigned n = 0;

    if (s.len == 0 || s.len > 4)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (c >= '0' && c <= '9')
            n = 16 * n + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = 16 * n + (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            n = 16 * n + (unsigned)(c - 'A') + 10;
        else
            return false;
    }
    out[0] = (uint8_t)(n >> 8);
    out[1] = (uint8_t)n;
    return true;
}

/* Groups with a colon between them; the number of bytes, or -1. */
static int parse_groups(struct agx_str s, uint8_t out[16])
{
    struct agx_str part;
    int n = 0;

    if (s.len == 0)
        return 0;
    while (agx_str_split(&s, ':', &part)) {
        if (n == 16 || !parse_group(part, out + n))
            return -1;
        n += 2;
    }
    return n;
}

static bool parse_ipv6(struct agx_str s, uint8_t out[16])
{
    uint8_t head[16] = { 0 }, tail[16] = { 0 };
    size_t gap = 0;
    int n, m;

    while (gap + 1 < s.len && (s.ptr[gap] != ':' || s.ptr[gap + 1] != ':'))
        gap++;
    memset(out, 0, 16);
    if (gap + 1 >= s.len) { /* no "::": all eight groups are there */
        n = parse_groups(s, head);
        memcpy(out, head, 16);
        return n == 16;
    }
    n = parse_groups((struct agx_str){ s.ptr, gap }, head);
    m = parse_groups(agx_str_skip(s, gap + 2), tail);
    if (n < 0 || m < 0 || n + m > 14)
        return false;
    memcpy(out, head, (size_t)n);
    memcpy(out + 16 - m, tail, (size_t)m);
    return true;
}

/* Cuts ":443" off the end. An IPv6 address with a port stands in brackets, or its last group would
 * be taken for one. */
static bool cut_port(struct agx_str *s, uint16_t *ret_port)
{
    size_t colon = agx_str_find(*s, ':');
    struct agx_str port;
    uint64_t n;

    *ret_port = 0;
    if (s->len > 0 && s->ptr[0] == '[') {
        size_t end = agx_str_find(*s, ']');

        if (end == s->len)
            return false;
        port = agx_str_skip(*s, end + 1);
        *s = (struct agx_str){ s->ptr + 1, end - 1 };
        if (port.len == 0)
            return true;
        if (port.ptr[0] != ':')
            return false;
        port = agx_str_skip(port, 1);
    } else if (colon == s->len ||
               agx_str_find(agx_str_skip(*s, colon + 1), ':') + colon + 1 < s->len) {
        return true; /* none, or many: an IPv6 address without a port */
    } else {
        port = agx_str_skip(*s, colon + 1);
        s->len = colon;
    }
    if (!agx_parse_u64(port, 65535, &n) || n == 0)
        return false;
    *ret_port = (uint16_t)n;
    return true;
}

static void mask(struct agx_egress *e)
{
    for (unsigned bit = e->prefix; bit < 128; bit++)
        e->address[bit / 8] &= (uint8_t) ~(0x80u >> (bit % 8));
}

int agx_egress_parse(struct agx_str text, struct agx_egress *ret, struct agx_error **err)
{
    struct agx_egress e = { 0 };
    struct agx_str s = text, address;
    uint64_t prefix;
    bool good = cut_port(&s, &e.port);

    (void)agx_str_split(&s, '/', &address);
    e.ipv6 = agx_str_find(address, ':') < address.len;
    prefix = e.ipv6 ? 128 : 32;
    good = good && (e.ipv6 ? parse_ipv6(address, e.address) : parse_ipv4(address, e.address));
    if (good && s.ptr)
        good = agx_parse_u64(s, prefix, &prefix);
    if (!good)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "egress entry '%.*s' is not an address or network with an optional "
                             "port, such as '10.0.0.0/8:443' or '[2001:db8::1]:443'",
                             AGX_STR_ARG(text));
    e.prefix = (uint8_t)prefix;
    mask(&e);
    *ret = e;
    return 0;
}

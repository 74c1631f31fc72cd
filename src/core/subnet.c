/* subnet.c: parses addresses itself, because libc's parser needs the network headers. */
#include "core/subnet.h"

#include <stdio.h>

#include "base/banned.h"

static bool parse_ipv4(struct agx_str s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        struct agx_str part;
        uint64_t n;

        if (!agx_str_split(&s, '.', &part) || part.len > 3 || !agx_parse_u64(part, 255, &n))
            return false;
        if (part.len > 1 && part.ptr[0] == '0')
            return false; /* ambiguous: octal or decimal */
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

/* Parses groups separated by colons; returns the number of bytes, or -1. */
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
    if (gap + 1 >= s.len) { /* no "::": all eight groups are given */
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

void agx_subnet_mask(struct agx_subnet *s)
{
    for (unsigned bit = s->prefix; bit < 128; bit++)
        s->address[bit / 8] &= (uint8_t) ~(0x80u >> (bit % 8));
}

int agx_subnet_parse(struct agx_str text, struct agx_subnet *ret, struct agx_error **err)
{
    struct agx_subnet s = { 0 };
    struct agx_str rest = text, address;
    uint64_t prefix;
    bool good;

    (void)agx_str_split(&rest, '/', &address);
    s.ipv6 = agx_str_find(address, ':') < address.len;
    prefix = s.ipv6 ? 128 : 32;
    good = s.ipv6 ? parse_ipv6(address, s.address) : parse_ipv4(address, s.address);
    if (good && rest.ptr)
        good = agx_parse_u64(rest, prefix, &prefix);
    if (!good)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'%.*s' is not an address or network such as '10.0.0.0/8' or "
                             "'2001:db8::/32'",
                             AGX_STR_ARG(text));
    s.prefix = (uint8_t)prefix;
    agx_subnet_mask(&s);
    *ret = s;
    return 0;
}

static unsigned group(const struct agx_subnet *s, unsigned i)
{
    return (unsigned)s->address[2 * i] << 8 | s->address[2 * i + 1];
}

/* The longest run of zero groups, at least two of them, is written as "::". */
static void find_gap(const struct agx_subnet *s, unsigned *ret_at, unsigned *ret_len)
{
    unsigned run = 0;

    *ret_at = 8;
    *ret_len = 1;
    for (unsigned i = 0; i < 8; i++) {
        run = group(s, i) == 0 ? run + 1 : 0;
        if (run > *ret_len) {
            *ret_at = i + 1 - run;
            *ret_len = run;
        }
    }
}

static void format_ipv6(const struct agx_subnet *s, char *out, size_t size)
{
    unsigned gap, gap_len;
    size_t used = 0;

    find_gap(s, &gap, &gap_len);
    for (unsigned i = 0; i < 8; i++) {
        if (i == gap) {
            used += (size_t)snprintf(out + used, size - used, "::");
            i += gap_len - 1;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%x",
                                 i > 0 && i != gap + gap_len ? ":" : "", group(s, i));
    }
    (void)snprintf(out + used, size - used, "/%u", s->prefix);
}

char *agx_subnet_format(const struct agx_subnet *s, char out[AGX_SUBNET_TEXT])
{
    const uint8_t *a = s->address;

    if (s->ipv6)
        format_ipv6(s, out, AGX_SUBNET_TEXT);
    else
        (void)snprintf(out, AGX_SUBNET_TEXT, "%u.%u.%u.%u/%u", a[0], a[1], a[2], a[3], s->prefix);
    return out;
}

bool agx_subnet_contains(const struct agx_subnet *outer, const struct agx_subnet *inner)
{
    struct agx_subnet cut = *inner;

    if (outer->ipv6 != inner->ipv6 || outer->prefix > inner->prefix)
        return false;
    cut.prefix = outer->prefix;
    agx_subnet_mask(&cut);
    return memcmp(cut.address, outer->address, sizeof(cut.address)) == 0;
}

bool agx_subnet_overlaps(const struct agx_subnet *a, const struct agx_subnet *b)
{
    return agx_subnet_contains(a, b) || agx_subnet_contains(b, a);
}

/* From the registries of special-purpose addresses. For IPv6 one range is public, and these are the
 * exceptions in it (and the IPv4 translation prefix, whose embedded address is checked instead). */
static const struct agx_subnet special[] = {
    { false, 8, { 0 } },
    { false, 8, { 10 } },
    { false, 10, { 100, 64 } },
    { false, 8, { 127 } },
    { false, 32, { 168, 63, 129, 16 } }, /* a cloud's internal services on a public address */
    { false, 16, { 169, 254 } },
    { false, 12, { 172, 16 } },
    { false, 24, { 192, 0, 0 } },
    { false, 24, { 192, 0, 2 } },
    { false, 16, { 192, 168 } },
    { false, 15, { 198, 18 } },
    { false, 24, { 198, 51, 100 } },
    { false, 24, { 203, 0, 113 } },
    { false, 3, { 224 } },
    { true, 32, { 0x20, 0x01, 0x00, 0x00 } },
    { true, 32, { 0x20, 0x01, 0x0d, 0xb8 } },
    { true, 16, { 0x20, 0x02 } },
};
static const struct agx_subnet global6 = { true, 3, { 0x20 } };

bool agx_subnet_is_public(const struct agx_subnet *s)
{
    if (s->ipv6 && !agx_subnet_contains(&global6, s))
        return false;
    for (size_t i = 0; i < AGX_ARRAY_LEN(special); i++) {
        if (agx_subnet_overlaps(&special[i], s))
            return false;
    }
    return true;
}

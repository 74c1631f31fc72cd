/* egress.c: an entry is a subnet or a name, with an optional port. */
#include "core/egress.h"

#include "base/banned.h"

/* DNS limit. */
enum { LABEL_MAX = 63 };

/* Cuts ":443" off the end. An IPv6 address with a port must be in brackets, or its last group would
 * be taken for the port. */
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

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_label(struct agx_str s)
{
    if (s.len == 0 || s.len > LABEL_MAX || s.ptr[0] == '-' || s.ptr[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!is_letter(c) && (c < '0' || c > '9') && c != '-' && c != '_')
            return false;
    }
    return true;
}

/* A name needs a dot, or a typo such as "all" would be a name; its last label begins with a letter,
 * or half an address would be one. */
static bool is_name(struct agx_str s)
{
    struct agx_str rest = s, label = { 0 };

    if (s.len > AGX_EGRESS_NAME_MAX || agx_str_find(s, '.') == s.len)
        return false;
    while (agx_str_split(&rest, '.', &label)) {
        if (!is_label(label))
            return false;
    }
    return is_letter(label.ptr[0]);
}

int agx_egress_parse(struct agx_str text, struct agx_egress *ret, struct agx_error **err)
{
    struct agx_egress e = { 0 };
    struct agx_str s = text;
    bool good = cut_port(&s, &e.port);

    if (good && text.len > 0 && text.ptr[0] != '[' && is_name(s))
        e.name = s;
    else
        good = good && agx_subnet_parse(s, &e.to, NULL) == 0;
    if (!good)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "egress entry '%.*s' is not an address, network or name with an "
                             "optional port, such as '10.0.0.0/8:443', '[2001:db8::1]:443' or "
                             "'example.org:443'",
                             AGX_STR_ARG(text));
    *ret = e;
    return 0;
}

/* config_print.c: the configuration as YAML, with each key's meaning as a comment above it. */
#include "daemon/config_internal.h"

#include <inttypes.h>

#include "base/banned.h"
#include "base/duration.h"
#include "base/size.h"
#include "base/utf8.h"

#define COLUMNS 96 /* of a comment, its indent not counted */

/* Prints a comment, wrapped at blanks. */
static int print_comment(struct agx_buf *out, const char *text, int indent)
{
    struct agx_str rest = agx_str_from(text);
    int r = 0;

    while (r == 0 && rest.len > 0) {
        size_t n = AGX_MIN(rest.len, (size_t)COLUMNS);

        while (n < rest.len && n > 0 && rest.ptr[n] != ' ')
            n--;
        r = agx_buf_printf(out, "%*s# %.*s\n", indent, "", (int)n, rest.ptr);
        rest = agx_str_trim(agx_str_skip(rest, n));
    }
    return r;
}

static int print_uids(const struct agx_config_uids *uids, struct agx_buf *out)
{
    int r = agx_buf_append(out, AGX_STR("["));

    for (size_t i = 0; r == 0 && i < uids->len; i++)
        r = agx_buf_printf(out, "%s%" PRIu32, i > 0 ? ", " : "", uids->ids[i]);
    return r < 0 ? r : agx_buf_append(out, AGX_STR("]"));
}

/* The first character of `s` (UTF-8), and its length in bytes. */
static uint32_t first_char(struct agx_str s, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t n = agx_utf8_sequence(s);
    uint32_t c = n < 2 ? p[0] : p[0] & (0xffu >> (n + 1));

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3fu);
    *ret_len = AGX_MAX(n, (size_t)1);
    return c;
}

/* May it stand unescaped in a quoted text? Not control characters, and not line separators. */
static bool is_printable(uint32_t c)
{
    return (c >= ' ' && c < 0x7f) ||
           (c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff);
}

static int print_text(struct agx_str text, struct agx_buf *out)
{
    int r = agx_buf_push(out, '"');
    size_t n;

    for (; r == 0 && text.len > 0; text = agx_str_skip(text, n)) {
        uint32_t c = first_char(text, &n);

        if (c == '"' || c == '\\')
            r = agx_buf_printf(out, "\\%c", (int)c);
        else if (is_printable(c))
            r = agx_buf_append(out, agx_str_bytes(text.ptr, n));
        else
            r = agx_buf_printf(out, "\\U%08" PRIx32, c);
    }
    return r < 0 ? r : agx_buf_push(out, '"');
}

static int print_value(const struct agx_config *c, const struct agx_config_key *k,
                       struct agx_buf *out)
{
    const void *at = (const char *)c + k->offset;
    const char *set;
    char text[AGX_DURATION_TEXT_SIZE];
    uint64_t n;

    if (k->kind == AGX_CONFIG_TEXT) {
        set = *(char *const *)at;
        return print_text(agx_str_from(set ? set : k->preset), out);
    }
    if (k->kind == AGX_CONFIG_UIDS)
        return print_uids(at, out);
    n = agx_config_number(c, k);
    switch (k->kind) {
    case AGX_CONFIG_FLAG:
        return agx_buf_append(out, n ? AGX_STR("true") : AGX_STR("false"));
    case AGX_CONFIG_CHOICE:
        return agx_buf_append(out, agx_str_from(k->words[n]));
    case AGX_CONFIG_SIZE:
        return agx_buf_append(out, agx_str_from(agx_size_format((int64_t)n, text)));
    case AGX_CONFIG_SPAN:
        return agx_buf_append(out,
                              agx_str_from(agx_duration_format((int64_t)(n * k->unit_ns), text)));
    default:
        return agx_buf_printf(out, "%" PRIu64, n);
    }
}

/* Prints the section's line if this key is its first. */
static int print_section(struct agx_str section, struct agx_str *last, struct agx_buf *out)
{
    if (agx_str_eq(section, *last))
        return 0;
    *last = section;
    return agx_buf_printf(out, "\n%.*s:\n", AGX_STR_ARG(section));
}

int agx_config_print(const struct agx_config *c, struct agx_buf *out)
{
    struct agx_str last = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < agx_config_keys_len; i++) {
        const struct agx_config_key *k = &agx_config_keys[i];
        struct agx_str name = agx_str_from(k->name), section = { 0 };
        size_t dot = agx_str_find(name, '.');
        int indent = 0;

        if (dot < name.len) {
            section = agx_str_bytes(name.ptr, dot);
            name = agx_str_skip(name, dot + 1);
            indent = 2;
        }
        r = print_section(section, &last, out);
        if (r == 0)
            r = print_comment(out, k->means, indent);
        if (r == 0)
            r = agx_buf_printf(out, "%*s%.*s: ", indent, "", AGX_STR_ARG(name));
        if (r == 0)
            r = print_value(c, k, out);
        if (r == 0)
            r = agx_buf_append(out, AGX_STR("\n"));
    }
    return r;
}

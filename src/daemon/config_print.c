/* config_print.c: the configuration as YAML, with what each key means above it. */
#include "daemon/config_internal.h"

#include <inttypes.h>

#include "base/duration.h"
#include "base/size.h"
#include "codec/json_text.h"
#include "base/banned.h"

#define COLUMNS 96 /* of a comment, its indent not counted */

/* A comment, broken at blanks. */
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

static int print_value(const struct agx_config *c, const struct agx_config_key *k,
                       struct agx_buf *out)
{
    const void *at = (const char *)c + k->offset;
    char text[AGX_DURATION_TEXT_SIZE];
    uint64_t n;

    /* What is quoted in JSON is quoted in YAML. */
    if (k->kind == AGX_CONFIG_TEXT)
        return agx_json_text_quote(out, agx_str_from(*(char *const *)at));
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

/* The section's line when it begins with this key. */
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

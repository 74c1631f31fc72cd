/*
 * yaml.c: builds nodes from libyaml's events.
 *
 * Invariants while building:
 *  (1) `open` holds the containers from the root to the one being filled;
 *  (2) the children of a container are linked in order; `last` is the newest;
 *  (3) an anchor is known from its own node on.
 */
#include "core/yaml.h"

#include "base/limits.h"
#include "base/number.h"
#include "base/utf8.h"
#include "core/text.h"

#include <assert.h>
#include <yaml.h>

#include "base/banned.h"

struct level {
    uint32_t node, last;
    size_t children;
};

struct anchor {
    char *name;
    uint32_t node;
};

struct builder {
    struct agx_yaml *y;
    size_t max_nodes;
    struct level open[AGX_DEPTH_MAX];
    size_t depth;
    struct anchor *anchors;
    size_t anchors_len;
    bool done; /* the document is complete */
};

static int yaml_bad(uint32_t line, const char *what, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "line %u: %s", line, what);
}

static uint32_t line_of(const yaml_event_t *e)
{
    return (uint32_t)e->start_mark.line + 1;
}

static int add_node(struct builder *b, struct agx_yaml_node node, uint32_t *ret,
                    struct agx_error **err)
{
    struct agx_yaml *y = b->y;
    struct level *l = b->depth > 0 ? &b->open[b->depth - 1] : NULL;
    uint32_t at;
    int r;

    if (y->len > b->max_nodes)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "more than %zu values", b->max_nodes);
    if (y->len == 0)
        y->len = 1; /* nodes[0] is unused: 0 means "no node" */
    r = agx_text_grow((void **)&y->nodes, y->len, sizeof(*y->nodes), err);
    if (r < 0)
        return r;
    if (y->len == 1)
        y->nodes[0] = (struct agx_yaml_node){ 0 };
    at = (uint32_t)y->len++;
    y->nodes[at] = node;
    if (l) {
        if (l->last)
            y->nodes[l->last].next = at;
        else
            y->nodes[l->node].first = at;
        l->last = at;
        l->children++;
    }
    *ret = at;
    return 0;
}

static int add_anchor(struct builder *b, const yaml_char_t *anchor, uint32_t node,
                      struct agx_error **err)
{
    char *name;
    int r;

    if (!anchor)
        return 0;
    if (b->anchors_len >= AGX_YAML_ANCHORS_MAX)
        return yaml_bad(b->y->nodes[node].line, "too many anchors", err);
    r = agx_text_grow((void **)&b->anchors, b->anchors_len, sizeof(*b->anchors), err);
    if (r < 0)
        return r;
    name = strdup((const char *)anchor);
    if (!name)
        return agx_error_no_memory(err);
    b->anchors[b->anchors_len++] = (struct anchor){ name, node };
    return 0;
}

static bool is_open(const struct builder *b, uint32_t node)
{
    for (size_t i = 0; i < b->depth; i++)
        if (b->open[i].node == node)
            return true;
    return false;
}

static int add_alias(struct builder *b, const yaml_event_t *e, struct agx_error **err)
{
    struct agx_yaml_node node = { .kind = AGX_YAML_ALIAS, .line = line_of(e) };
    const char *name = (const char *)e->data.alias.anchor;
    size_t i = b->anchors_len;
    uint32_t at;

    while (i > 0 && strcmp(b->anchors[i - 1].name, name) != 0)
        i--; /* the latest anchor of a name counts */
    if (i == 0)
        return yaml_bad(node.line, "unknown anchor", err);
    node.target = b->anchors[i - 1].node;
    if (is_open(b, node.target))
        return yaml_bad(node.line, "an anchor contains itself", err);
    return add_node(b, node, &at, err);
}

static int add_scalar(struct builder *b, const yaml_event_t *e, struct agx_error **err)
{
    const char *tag = (const char *)e->data.scalar.tag;
    struct agx_yaml_node node = { .kind = AGX_YAML_SCALAR,
                                  .line = line_of(e),
                                  .at = b->y->text.len,
                                  .len = e->data.scalar.length };
    struct agx_str text = agx_str_bytes(e->data.scalar.value, node.len);
    uint32_t at;
    int r;

    /* The tag "!!str" makes a string of a number or null. */
    node.plain =
        e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (!tag || strcmp(tag, YAML_STR_TAG) != 0);
    if (agx_str_find(text, '\0') < text.len)
        return yaml_bad(node.line, "a NUL character is not allowed", err);
    if (agx_buf_append(&b->y->text, text) < 0)
        return agx_error_no_memory(err);
    r = add_node(b, node, &at, err);
    return r < 0 ? r : add_anchor(b, e->data.scalar.anchor, at, err);
}

static int open_level(struct builder *b, enum agx_yaml_kind kind, const yaml_event_t *e,
                      const yaml_char_t *anchor, struct agx_error **err)
{
    struct agx_yaml_node node = { .kind = kind, .line = line_of(e) };
    uint32_t at = 0;
    int r;

    if (b->depth == AGX_DEPTH_MAX)
        return yaml_bad(node.line, "nested too deeply", err);
    r = add_node(b, node, &at, err);
    if (r < 0)
        return r;
    b->open[b->depth++] = (struct level){ .node = at };
    return add_anchor(b, anchor, at, err);
}

struct key {
    struct agx_str text;
    uint32_t line;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    size_t common = AGX_MIN(x->text.len, y->text.len);
    int order = common > 0 ? memcmp(x->text.ptr, y->text.ptr, common) : 0;

    return order != 0 ? order : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

static int check_keys(const struct agx_yaml *y, const struct level *l, struct agx_error **err)
{
    size_t count = l->children / 2, n = 0;
    _cleanup_free_ struct key *keys = count > 0 ? calloc(count, sizeof(*keys)) : NULL;

    assert(y->nodes); /* the mapping itself is a node */
    if (count > 0 && !keys)
        return agx_error_no_memory(err);
    for (uint32_t at = y->nodes[l->node].first; at && n < count;
         at = y->nodes[y->nodes[at].next].next) {
        const struct agx_yaml_node *k = agx_yaml_node(y, at);

        if (k->kind != AGX_YAML_SCALAR)
            return yaml_bad(y->nodes[at].line, "a mapping key must be a scalar", err);
        keys[n++] = (struct key){ agx_yaml_text(y, k), y->nodes[at].line };
    }
    if (n > 1)
        qsort(keys, n, sizeof(*keys), compare_keys);
    for (size_t i = 1; i < n; i++)
        if (agx_str_eq(keys[i - 1].text, keys[i].text))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "line %u: mapping key \"%.*s\" is already defined",
                                 AGX_MAX(keys[i - 1].line, keys[i].line),
                                 agx_text_cut(keys[i].text, 200), keys[i].text.ptr);
    return 0;
}

static int take_event(struct builder *b, const yaml_event_t *e, struct agx_error **err)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(b, e, err);
    case YAML_ALIAS_EVENT:
        return add_alias(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(b, AGX_YAML_SEQUENCE, e, e->data.sequence_start.anchor, err);
    case YAML_MAPPING_START_EVENT:
        return open_level(b, AGX_YAML_MAPPING, e, e->data.mapping_start.anchor, err);
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return 0;
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return check_keys(b->y, &b->open[b->depth], err);
    case YAML_DOCUMENT_END_EVENT:
        b->done = true;
        return 0;
    case YAML_STREAM_END_EVENT: /* no document: only comments */
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "EOF");
    default:
        return 0;
    }
}

/* Converts libyaml's error: problem and line. */
static int parser_error(const yaml_parser_t *parser, struct agx_error **err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return agx_error_no_memory(err);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "line %zu: %s", parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "not YAML");
}

static int yaml_parse(struct builder *b, struct agx_str bytes, struct agx_error **err)
{
    _cleanup_(yaml_parser_delete) yaml_parser_t parser;
    int r = 0;

    if (!yaml_parser_initialize(&parser))
        return agx_error_no_memory(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.ptr, bytes.len);
    while (r == 0 && !b->done) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event))
            return parser_error(&parser, err);
        r = take_event(b, &event, err);
        yaml_event_delete(&event);
    }
    return r;
}

/* Counts them before libyaml runs, anywhere in the text: libyaml knows more line ends than '\n',
 * and a file with that many in its strings is unlikely. */
static bool has_many_directives(struct agx_str bytes)
{
    static const char word[] = "%TAG";
    size_t n = 0;

    while (n <= AGX_YAML_DIRECTIVES_MAX) {
        const char *at = memmem(bytes.ptr, bytes.len, word, sizeof(word) - 1);

        if (!at)
            return false;
        bytes = agx_str_skip(bytes, (size_t)(at - bytes.ptr) + 1);
        n++;
    }
    return true;
}

int agx_yaml_parse(struct agx_yaml *y, struct agx_str bytes, size_t max_nodes,
                   struct agx_error **err)
{
    /* Escapes lengthen a text by at most a half: "\L" is two bytes and decodes to three. */
    struct agx_yaml made = { .text.max = 2 * bytes.len + 1 };
    struct builder b = { .y = &made, .max_nodes = max_nodes };
    int r;

    if (bytes.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "EOF");
    if (!agx_utf8_valid(bytes))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "not UTF-8");
    if (has_many_directives(bytes))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "too many directives");
    r = yaml_parse(&b, bytes, err);
    for (size_t i = 0; i < b.anchors_len; i++)
        free(b.anchors[i].name);
    free(b.anchors);
    if (r < 0)
        agx_yaml_done(&made);
    else
        *y = made;
    return r;
}

void agx_yaml_done(struct agx_yaml *y)
{
    if (!y)
        return;
    free(y->nodes);
    agx_buf_done(&y->text);
    *y = (struct agx_yaml){ 0 };
}

const struct agx_yaml_node *agx_yaml_node(const struct agx_yaml *y, uint32_t at)
{
    while (y->nodes[at].kind == AGX_YAML_ALIAS)
        at = y->nodes[at].target;
    return &y->nodes[at];
}

struct agx_str agx_yaml_text(const struct agx_yaml *y, const struct agx_yaml_node *n)
{
    return (struct agx_str){ n->len > 0 ? (const char *)y->text.data + n->at : "", n->len };
}

static bool is_word(struct agx_str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (agx_str_eq(s, agx_str_from(words[i])))
            return true;
    return false;
}

bool agx_yaml_is_null(const struct agx_yaml *y, const struct agx_yaml_node *n)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };

    return n->kind == AGX_YAML_SCALAR && n->plain &&
           is_word(agx_yaml_text(y, n), words, AGX_ARRAY_LEN(words));
}

bool agx_yaml_bool(const struct agx_yaml *y, const struct agx_yaml_node *n, bool *ret)
{
    static const char *const yes[] = { "true", "True", "TRUE", "y",  "Y", "yes",
                                       "Yes",  "YES",  "on",   "On", "ON" };
    static const char *const no[] = { "false", "False", "FALSE", "n",   "N",  "no",
                                      "No",    "NO",    "off",   "Off", "OFF" };

    if (n->kind != AGX_YAML_SCALAR || !n->plain)
        return false;
    *ret = is_word(agx_yaml_text(y, n), yes, AGX_ARRAY_LEN(yes));
    return *ret || is_word(agx_yaml_text(y, n), no, AGX_ARRAY_LEN(no));
}

static bool parse_radix(struct agx_str s, unsigned bits, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 99;

        if (digit >> bits || n > max >> bits)
            return false;
        n = n << bits | digit;
    }
    *ret = n;
    return n <= max;
}

bool agx_yaml_unsigned(const struct agx_yaml *y, const struct agx_yaml_node *n, uint64_t max,
                       uint64_t *ret)
{
    struct agx_str s = agx_yaml_text(y, n);
    double d;

    if (n->kind != AGX_YAML_SCALAR || !n->plain)
        return false;
    if (agx_str_starts(s, AGX_STR("0x")))
        return parse_radix(agx_str_skip(s, 2), 4, max, ret);
    if (agx_str_starts(s, AGX_STR("0o")))
        return parse_radix(agx_str_skip(s, 2), 3, max, ret);
    if (agx_str_starts(s, AGX_STR("0b")))
        return parse_radix(agx_str_skip(s, 2), 1, max, ret);
    if (agx_parse_u64(s, max, ret))
        return true;
    if (!agx_parse_double(s, &d) || !(d >= 0) || d >= (double)max + 1)
        return false;
    *ret = (uint64_t)d;
    return *ret <= max;
}

/*
 * ignore.c: patterns become tokens; matching tracks the set of possible positions in the path.
 *
 * For each token in turn, `at[k]` says whether the tokens so far can match the path's first k
 * bytes. One pass over the path moves the whole set past one token, so nothing is tried twice, and
 * a hostile pattern costs no more than a plain one of the same length.
 */
#include "core/ignore.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <limits.h>

#include "base/banned.h"

enum token_kind {
    BYTE,   /* itself */
    ONE,    /* a character but '/' */
    CLASS,  /* a character of a class, never '/' */
    STAR,   /* any characters but '/' */
    ABOVE,  /* nothing, or anything that ends in '/' */
    BELOW,  /* nothing, or '/' and anything */
    ACROSS, /* '/', or '/', something and '/' */
    REST,   /* anything */
};

struct token {
    uint8_t kind;
    char byte;
    struct agx_str class; /* between the brackets; in the pattern's text */
};

struct pattern {
    char *text;           /* owned: classes point into it */
    struct token *tokens; /* owned */
    size_t len;
    bool negated;
};

struct agx_ignore {
    struct pattern *items;
    size_t len;
    bool globs; /* also match the last component; ignore `is_dir` */
};

/* The positions in a path: [k] for "k bytes are matched". */
struct places {
    bool at[PATH_MAX + 1];
};

/* ---- characters and classes ---- */

/* Takes the first character; a byte that is not UTF-8 counts as one character. */
static uint32_t take_char(struct agx_str *s)
{
    static const uint8_t lead[] = { 0x7f, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t n = agx_utf8_sequence(*s);
    uint32_t c = (uint8_t)s->ptr[0];

    if (n == 0) {
        *s = agx_str_skip(*s, 1);
        return 0x110000 + c;
    }
    c &= lead[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((uint8_t)s->ptr[i] & 0x3f);
    *s = agx_str_skip(*s, n);
    return c;
}

/* One end of a range. A '-' that means itself is escaped. */
static bool take_bound(struct agx_str *s, uint32_t *ret)
{
    if (s->len == 0 || s->ptr[0] == '-')
        return false;
    if (s->ptr[0] == '\\') {
        *s = agx_str_skip(*s, 1);
        if (s->len == 0)
            return false;
    }
    *ret = take_char(s);
    return true;
}

/* "a" or "a-z" of a class. */
static bool take_range(struct agx_str *s, uint32_t *ret_low, uint32_t *ret_high)
{
    if (!take_bound(s, ret_low))
        return false;
    *ret_high = *ret_low;
    if (s->len == 0 || s->ptr[0] != '-')
        return true;
    *s = agx_str_skip(*s, 1);
    return take_bound(s, ret_high);
}

static bool is_negation(struct agx_str class)
{
    return class.len > 0 && class.ptr[0] == '^';
}

/* `class` was validated by scan_class(). */
static bool class_has(struct agx_str class, uint32_t c)
{
    bool negated = is_negation(class), found = false;
    uint32_t low = 0, high = 0;

    if (negated)
        class = agx_str_skip(class, 1);
    while (class.len > 0 && take_range(&class, &low, &high))
        found = found || (low <= c && c <= high);
    return found != negated;
}

/* `s` begins after the opening bracket: cuts off the class and its closing bracket. */
static bool scan_class(struct agx_str *s, struct agx_str *ret_class)
{
    struct agx_str rest = *s;
    uint32_t low, high;
    bool any = false;

    if (is_negation(rest))
        rest = agx_str_skip(rest, 1);
    while (rest.len > 0 && (rest.ptr[0] != ']' || !any)) {
        if (rest.ptr[0] == ']' || !take_range(&rest, &low, &high))
            return false;
        any = true;
    }
    if (rest.len == 0)
        return false;
    *ret_class = (struct agx_str){ s->ptr, s->len - rest.len };
    *s = agx_str_skip(rest, 1);
    return true;
}

/* ---- matching ---- */

static void step_char(const struct token *t, struct agx_str path, const struct places *from,
                      struct places *to)
{
    memset(to->at, 0, path.len + 1);
    for (size_t k = 0; k < path.len; k++) {
        struct agx_str rest = agx_str_skip(path, k);
        uint32_t c;

        if (!from->at[k] || (t->kind != BYTE && path.ptr[k] == '/'))
            continue;
        if (t->kind == BYTE) {
            to->at[k + 1] = path.ptr[k] == t->byte;
            continue;
        }
        c = take_char(&rest);
        if (t->kind == ONE || class_has(t->class, c))
            to->at[path.len - rest.len] = true;
    }
}

static void step_star(struct agx_str path, const struct places *from, struct places *to)
{
    bool on = false;

    for (size_t k = 0; k <= path.len; k++) {
        on = from->at[k] || (on && path.ptr[k - 1] != '/');
        to->at[k] = on;
    }
}

static void step_above(struct agx_str path, const struct places *from, struct places *to)
{
    bool before = false; /* an earlier position was possible */

    for (size_t k = 0; k <= path.len; k++) {
        to->at[k] = from->at[k] || (before && path.ptr[k - 1] == '/');
        before = before || from->at[k];
    }
}

static void step_below(struct agx_str path, const struct places *from, struct places *to)
{
    bool inside = false; /* a slash was passed at a possible position */

    for (size_t k = 0; k <= path.len; k++) {
        to->at[k] = from->at[k] || inside;
        inside = inside || (k < path.len && from->at[k] && path.ptr[k] == '/');
    }
}

static void step_across(struct agx_str path, const struct places *from, struct places *to)
{
    bool inside = false; /* the first slash, and at least one byte, were passed */

    to->at[0] = false;
    for (size_t k = 1; k <= path.len; k++) {
        bool slash = path.ptr[k - 1] == '/';

        to->at[k] = slash && (from->at[k - 1] || inside);
        inside = inside || (k >= 2 && from->at[k - 2] && path.ptr[k - 2] == '/');
    }
}

static void step_rest(struct agx_str path, const struct places *from, struct places *to)
{
    bool on = false;

    for (size_t k = 0; k <= path.len; k++)
        to->at[k] = on = on || from->at[k];
}

static void ignore_step(const struct token *t, struct agx_str path, const struct places *from,
                        struct places *to)
{
    switch (t->kind) {
    case STAR:
        step_star(path, from, to);
        return;
    case ABOVE:
        step_above(path, from, to);
        return;
    case BELOW:
        step_below(path, from, to);
        return;
    case ACROSS:
        step_across(path, from, to);
        return;
    case REST:
        step_rest(path, from, to);
        return;
    default:
        step_char(t, path, from, to);
    }
}

static bool pattern_matches(const struct pattern *p, struct agx_str path)
{
    struct places a, b, *from = &a, *to = &b;

    memset(from->at, 0, path.len + 1);
    from->at[0] = true;
    for (size_t i = 0; i < p->len; i++) {
        struct places *passed = to;

        ignore_step(&p->tokens[i], path, from, to);
        to = from;
        from = passed;
    }
    return from->at[path.len];
}

static struct agx_str last_component(struct agx_str path)
{
    size_t slash;

    while ((slash = agx_str_find(path, '/')) < path.len)
        path = agx_str_skip(path, slash + 1);
    return path;
}

bool agx_ignore_matches(const struct agx_ignore *i, struct agx_str path, bool is_dir)
{
    char text[PATH_MAX];
    bool matched = false;

    if (path.len == 0 || path.len >= sizeof(text))
        return false;
    memcpy(text, path.ptr, path.len);
    if (is_dir && !i->globs)
        text[path.len++] = '/'; /* so that "name/" names it */
    path.ptr = text;
    for (size_t k = 0; k < i->len; k++) {
        const struct pattern *p = &i->items[k];

        if (matched == !p->negated)
            continue; /* it would not change the result */
        if (pattern_matches(p, path) || (i->globs && pattern_matches(p, last_component(path))))
            matched = !p->negated;
    }
    return matched;
}

/* ---- reading patterns ---- */

static void pattern_done(struct pattern *p)
{
    free(p->tokens);
    free(p->text);
}

static void add_token(struct pattern *p, enum token_kind kind, char byte)
{
    p->tokens[p->len++] = (struct token){ .kind = (uint8_t)kind, .byte = byte };
}

/* Syntax of both dialects: `*`, classes, escapes and literal characters. */
static bool take_common(struct pattern *p, struct agx_str *rest)
{
    char c = rest->ptr[0];

    *rest = agx_str_skip(*rest, 1);
    if (c == '[') {
        add_token(p, CLASS, 0);
        return scan_class(rest, &p->tokens[p->len - 1].class);
    }
    if (c == '*') {
        add_token(p, STAR, 0);
        return true;
    }
    if (c == '\\') {
        if (rest->len == 0)
            return false;
        c = rest->ptr[0];
        *rest = agx_str_skip(*rest, 1);
    }
    add_token(p, BYTE, c);
    return true;
}

/* False when the pattern is malformed. */
static bool read_glob(struct pattern *p, struct agx_str rest)
{
    while (rest.len > 0) {
        if (rest.ptr[0] == '?') {
            add_token(p, ONE, 0);
            rest = agx_str_skip(rest, 1);
        } else if (!take_common(p, &rest)) {
            return false;
        }
    }
    return true;
}

static bool take_word(struct agx_str *rest, struct agx_str word)
{
    if (!agx_str_starts(*rest, word))
        return false;
    *rest = agx_str_skip(*rest, word.len);
    return true;
}

static bool read_line(struct pattern *p, struct agx_str rest)
{
    bool names_dir = rest.ptr[rest.len - 1] == '/';

    if (agx_str_starts(rest, AGX_STR("/**/")))
        rest = agx_str_skip(rest, 1);
    if (agx_str_starts(rest, AGX_STR("/")) && !agx_str_starts(rest, AGX_STR("/**")))
        rest = agx_str_skip(rest, 1);
    else
        add_token(p, ABOVE, 0);
    if (rest.len == 0)
        return false; /* "/" alone: the root is never matched */
    while (rest.len > 0) {
        if (take_word(&rest, AGX_STR("/**/")))
            add_token(p, ACROSS, 0);
        else if (take_word(&rest, AGX_STR("**/")))
            add_token(p, ABOVE, 0);
        else if (take_word(&rest, AGX_STR("/**")))
            add_token(p, BELOW, 0);
        else if (!take_common(p, &rest))
            return false;
    }
    add_token(p, names_dir ? REST : BELOW, 0);
    return true;
}

/* Adds a pattern, unless it is malformed. */
static int add_pattern(struct agx_ignore *i, struct agx_str text, bool negated,
                       struct agx_error **err)
{
    struct pattern p = { .text = agx_str_dup(text), .negated = negated };
    int r;

    /* A token takes a byte or more; a line has two besides. */
    p.tokens = calloc(text.len + 2, sizeof(*p.tokens));
    r = agx_text_grow((void **)&i->items, i->len, sizeof(p), err);
    if (!p.text || !p.tokens || r < 0) {
        pattern_done(&p);
        return r < 0 ? r : agx_error_no_memory(err);
    }
    text.ptr = p.text;
    if (i->globs ? read_glob(&p, text) : read_line(&p, text))
        i->items[i->len++] = p;
    else
        pattern_done(&p);
    return 0;
}

static int add_line(struct agx_ignore *i, struct agx_str line, struct agx_error **err)
{
    bool negated;

    while (line.len > 0 && (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == ' '))
        line.len--;
    if (line.len == 0 || line.ptr[0] == '#' || memchr(line.ptr, '\0', line.len))
        return 0;
    while (line.len > 0 && line.ptr[0] == ' ')
        line = agx_str_skip(line, 1);
    negated = take_word(&line, AGX_STR("!"));
    if (line.len == 0)
        return 0;
    if (i->len >= AGX_WORDS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "more than %d patterns", AGX_WORDS_MAX);
    return add_pattern(i, line, negated, err);
}

int agx_ignore_new_globs(const struct agx_words *globs, struct agx_ignore **ret_ignore,
                         struct agx_error **err)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = calloc(1, sizeof(*i));
    int r = 0;

    if (!i)
        return agx_error_no_memory(err);
    i->globs = true;
    for (size_t k = 0; r == 0 && k < globs->len; k++)
        if (*globs->items[k])
            r = add_pattern(i, agx_str_from(globs->items[k]), false, err);
    if (r == 0)
        *ret_ignore = AGX_TAKE_PTR(i);
    return r;
}

int agx_ignore_new_lines(struct agx_str content, struct agx_ignore **ret_ignore,
                         struct agx_error **err)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = calloc(1, sizeof(*i));
    struct agx_str line;
    int r = 0;

    if (!i)
        return agx_error_no_memory(err);
    while (r == 0 && agx_str_split(&content, '\n', &line))
        r = add_line(i, line, err);
    if (r == 0)
        *ret_ignore = AGX_TAKE_PTR(i);
    return r;
}

struct agx_ignore *agx_ignore_free(struct agx_ignore *i)
{
    if (!i)
        return NULL;
    for (size_t k = 0; k < i->len; k++)
        pattern_done(&i->items[k]);
    free(i->items);
    free(i);
    return NULL;
}

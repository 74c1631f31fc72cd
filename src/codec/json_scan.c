/*
 * json_scan.c: a pull scanner for JSON.
 *
 * `expect` says what the grammar allows at `at`:
 *
 *     VALUE         a value
 *     FIRST_VALUE   a value or ']'         after '['
 *     KEY           a key                  after ',' in an object
 *     FIRST_KEY     a key or '}'           after '{'
 *     AFTER         ',' or the container's end; at depth 0 the end of the text
 *
 * A key token includes its ':', so VALUE follows it. Nothing recurses: for each open container the
 * scanner remembers one bit, whether it is an object.
 */
#include "codec/json_scan.h"

#include "base/banned.h"
#include "base/macros.h"
#include "base/utf8.h"
#include "codec/json_text.h"

enum expect { VALUE, FIRST_VALUE, KEY, FIRST_KEY, AFTER };

void agx_json_scan_init(struct agx_json_scan *s, struct agx_str text, unsigned depth_max)
{
    *s = (struct agx_json_scan){
        .text = text,
        .depth_max = AGX_MIN(depth_max, (unsigned)AGX_JSON_SCAN_DEPTH_CEILING),
        .expect = VALUE,
    };
}

static int json_scan_malformed(const struct agx_json_scan *s, const char *what,
                               struct agx_error **err)
{
    if (s->at >= s->text.len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "malformed JSON: %s at its end", what);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "malformed JSON: %s at offset %zu", what,
                         s->at);
}

/* The next byte that is not blank, or -1 at the end. Does not take it. */
static int peek(struct agx_json_scan *s)
{
    for (; s->at < s->text.len; s->at++) {
        char c = s->text.ptr[s->at];

        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return (unsigned char)c;
    }
    return -1;
}

static bool inside_object(const struct agx_json_scan *s)
{
    unsigned top = s->depth - 1;

    return s->in_object[top / 64] >> (top % 64) & 1;
}

/* Takes the `n` bytes at `at` as a token of that kind. */
static int json_scan_take(struct agx_json_scan *s, enum agx_json_kind kind, size_t n,
                          struct agx_json_token *ret)
{
    *ret = (struct agx_json_token){ .kind = kind, .raw = { s->text.ptr + s->at, n } };
    s->at += n;
    s->expect = AFTER;
    return 0;
}

static int open_container(struct agx_json_scan *s, bool object, struct agx_json_token *ret,
                          struct agx_error **err)
{
    uint64_t bit = UINT64_C(1) << (s->depth % 64);

    if (s->depth >= s->depth_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "JSON is nested deeper than %u at offset %zu", s->depth_max, s->at);
    if (object)
        s->in_object[s->depth / 64] |= bit;
    else
        s->in_object[s->depth / 64] &= ~bit;
    s->depth++;
    (void)json_scan_take(s, object ? AGX_JSON_OBJECT : AGX_JSON_ARRAY, 1, ret);
    s->expect = object ? FIRST_KEY : FIRST_VALUE;
    return 0;
}

static int close_container(struct agx_json_scan *s, struct agx_json_token *ret)
{
    enum agx_json_kind kind = inside_object(s) ? AGX_JSON_OBJECT_END : AGX_JSON_ARRAY_END;

    s->depth--;
    return json_scan_take(s, kind, 1, ret);
}

static int scan_string(struct agx_json_scan *s, enum agx_json_kind kind, struct agx_json_token *ret,
                       struct agx_error **err)
{
    size_t start = s->at;
    bool escaped = false;
    unsigned char high = 0; /* all bytes or-ed: bit 7 means that UTF-8 must be checked */
    uint32_t c;

    for (s->at++;;) {
        size_t n = 1;
        unsigned char b;

        if (s->at >= s->text.len)
            return json_scan_malformed(s, "unfinished string", err);
        b = (unsigned char)s->text.ptr[s->at];
        if (b == '"')
            break;
        if (b < 0x20)
            return json_scan_malformed(s, "control character in a string", err);
        if (b == '\\') {
            escaped = true;
            n = agx_json_text_escape(agx_str_skip(s->text, s->at), &c);
            if (n == 0)
                return json_scan_malformed(s, "bad escape", err);
        }
        high |= b;
        s->at += n;
    }
    *ret = (struct agx_json_token){ kind, escaped, { s->text.ptr + start, s->at + 1 - start } };
    if (high & 0x80 && !agx_utf8_valid(ret->raw)) {
        s->at = start;
        return json_scan_malformed(s, "string is not UTF-8", err);
    }
    s->at++;
    s->expect = AFTER;
    return 0;
}

/* The number of digits at offset `at`. */
static size_t digits(const struct agx_json_scan *s, size_t at)
{
    size_t n = 0;

    while (at + n < s->text.len && s->text.ptr[at + n] >= '0' && s->text.ptr[at + n] <= '9')
        n++;
    return n;
}

static int scan_number(struct agx_json_scan *s, struct agx_json_token *ret, struct agx_error **err)
{
    const char *p = s->text.ptr;
    size_t i = s->at, end = s->text.len, n;

    if (p[i] == '-')
        i++;
    n = digits(s, i);
    if (n == 0 || (n > 1 && p[i] == '0'))
        return json_scan_malformed(s, "bad number", err);
    i += n;
    if (i < end && p[i] == '.') {
        n = digits(s, ++i);
        if (n == 0)
            return json_scan_malformed(s, "bad number", err);
        i += n;
    }
    if (i < end && (p[i] == 'e' || p[i] == 'E')) {
        i++;
        if (i < end && (p[i] == '+' || p[i] == '-'))
            i++;
        n = digits(s, i);
        if (n == 0)
            return json_scan_malformed(s, "bad number", err);
        i += n;
    }
    return json_scan_take(s, AGX_JSON_NUMBER, i - s->at, ret);
}

static int scan_word(struct agx_json_scan *s, struct agx_json_token *ret, struct agx_error **err)
{
    static const struct {
        struct agx_str word;
        enum agx_json_kind kind;
    } words[] = {
        { { "null", 4 }, AGX_JSON_NULL },
        { { "true", 4 }, AGX_JSON_TRUE },
        { { "false", 5 }, AGX_JSON_FALSE },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(words); i++) {
        if (agx_str_starts(agx_str_skip(s->text, s->at), words[i].word))
            return json_scan_take(s, words[i].kind, words[i].word.len, ret);
    }
    return json_scan_malformed(s, "value expected", err);
}

static int scan_any_value(struct agx_json_scan *s, int c, struct agx_json_token *ret,
                          struct agx_error **err)
{
    if (c == '"')
        return scan_string(s, AGX_JSON_STRING, ret, err);
    if (c == '{' || c == '[')
        return open_container(s, c == '{', ret, err);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s, ret, err);
    return scan_word(s, ret, err);
}

static int scan_key(struct agx_json_scan *s, int c, struct agx_json_token *ret,
                    struct agx_error **err)
{
    int r;

    if (c != '"')
        return json_scan_malformed(s, "key expected", err);
    r = scan_string(s, AGX_JSON_KEY, ret, err);
    if (r < 0)
        return r;
    if (peek(s) != ':')
        return json_scan_malformed(s, "':' expected", err);
    s->at++;
    s->expect = VALUE;
    return 0;
}

/* Takes the comma that must follow a value. 1: `expect` says what comes next; 0: no comma. */
static int take_comma(struct agx_json_scan *s, int c)
{
    if (c != ',' || s->depth == 0)
        return 0;
    s->at++;
    s->expect = inside_object(s) ? KEY : VALUE;
    return 1;
}

int agx_json_scan_next(struct agx_json_scan *s, struct agx_json_token *ret, struct agx_error **err)
{
    int c = peek(s);

    if (s->expect == AFTER) {
        if (s->depth == 0)
            return c < 0 ? json_scan_take(s, AGX_JSON_END, 0, ret)
                         : json_scan_malformed(s, "more than one value", err);
        if (c == (inside_object(s) ? '}' : ']'))
            return close_container(s, ret);
        if (!take_comma(s, c))
            return json_scan_malformed(s, "',' or the end of the container expected", err);
        c = peek(s);
    } else if ((s->expect == FIRST_VALUE && c == ']') || (s->expect == FIRST_KEY && c == '}')) {
        return close_container(s, ret);
    }
    if (s->expect == KEY || s->expect == FIRST_KEY)
        return scan_key(s, c, ret, err);
    return scan_any_value(s, c, ret, err);
}

int agx_json_scan_value(struct agx_json_scan *s, struct agx_json_token *ret, struct agx_error **err)
{
    unsigned depth = s->depth;
    struct agx_json_token t;
    int r = agx_json_scan_next(s, ret, err);

    while (r == 0 && s->depth > depth)
        r = agx_json_scan_next(s, &t, err);
    if (r < 0)
        return r;
    if (ret->kind == AGX_JSON_ARRAY || ret->kind == AGX_JSON_OBJECT)
        ret->raw.len = (size_t)(s->text.ptr + s->at - ret->raw.ptr);
    return 0;
}

int agx_json_scan_whole(struct agx_str text, unsigned depth_max, struct agx_json_token *ret,
                        struct agx_error **err)
{
    struct agx_json_scan s;
    struct agx_json_token value = { 0 }, end = { 0 };
    int r;

    agx_json_scan_init(&s, text, depth_max);
    r = agx_json_scan_value(&s, &value, err);
    if (r == 0)
        r = agx_json_scan_next(&s, &end, err);
    if (r == 0)
        *ret = value;
    return r;
}

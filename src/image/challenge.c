/*
 * challenge.c: parses WWW-Authenticate (RFC 9110, 11.6.1): schemes, each with parameters, all
 * separated by commas. A word before '=' is a parameter of the preceding scheme; any other begins a
 * scheme.
 */
#include "image/challenge.h"

#include "base/buf.h"
#include "base/limits.h"

#include "base/banned.h"

void agx_challenge_done(struct agx_challenge *c)
{
    if (!c)
        return;
    free(c->realm);
    free(c->service);
    free(c->scope);
    *c = (struct agx_challenge){ 0 };
}

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~/", c)); /* '/': not in tokens, but in old secrets */
}

static struct agx_str take_token(struct agx_str *rest)
{
    struct agx_str word = { rest->ptr, 0 };

    while (word.len < rest->len && is_token(rest->ptr[word.len]))
        word.len++;
    *rest = agx_str_skip(*rest, word.len);
    return word;
}

static void skip(struct agx_str *rest, const char *any)
{
    while (rest->len > 0 && rest->ptr[0] && strchr(any, rest->ptr[0]))
        *rest = agx_str_skip(*rest, 1);
}

/* A quoted string; its opening quote is at the front. */
static int take_quoted(struct agx_str *rest, struct agx_buf *value)
{
    for (size_t i = 1; i < rest->len; i++) {
        char c = rest->ptr[i];

        if (c == '"') {
            *rest = agx_str_skip(*rest, i + 1);
            return 0;
        }
        if (c == '\\' && ++i < rest->len)
            c = rest->ptr[i];
        if ((unsigned char)c < ' ' || c == 0x7f)
            return -AGX_DATA_LOSS;
        if (agx_buf_push(value, (uint8_t)c) < 0)
            return -AGX_RESOURCE_EXHAUSTED;
    }
    return -AGX_DATA_LOSS;
}

static int challenge_keep(struct agx_challenge *c, struct agx_str name, struct agx_buf *value)
{
    char **slot = agx_str_eq_nocase(name, AGX_STR("realm"))     ? &c->realm
                  : agx_str_eq_nocase(name, AGX_STR("service")) ? &c->service
                  : agx_str_eq_nocase(name, AGX_STR("scope"))   ? &c->scope
                                                                : NULL;

    if (!slot || *slot)
        return 0;
    *slot = agx_buf_take_cstr(value);
    return *slot ? 0 : -AGX_RESOURCE_EXHAUSTED;
}

/* The value behind '='; `wanted`: it belongs to the challenge that we use. */
static int take_parameter(struct agx_challenge *c, struct agx_str name, struct agx_str *rest,
                          bool wanted)
{
    _cleanup_buf_ struct agx_buf value = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);
    int r;

    *rest = agx_str_skip(*rest, 1);
    skip(rest, " \t");
    if (rest->len > 0 && rest->ptr[0] == '"') {
        r = take_quoted(rest, &value);
    } else {
        r = agx_buf_append(&value, take_token(rest));
        skip(rest, "="); /* the end of an unnamed secret in base64 */
    }
    return r == 0 && wanted ? challenge_keep(c, name, &value) : r;
}

static enum agx_challenge_kind kind_of(struct agx_str scheme)
{
    if (agx_str_eq_nocase(scheme, AGX_STR("bearer")))
        return AGX_CHALLENGE_BEARER;
    if (agx_str_eq_nocase(scheme, AGX_STR("basic")))
        return AGX_CHALLENGE_BASIC;
    return AGX_CHALLENGE_NONE;
}

static int challenge_parse(struct agx_challenge *c, struct agx_str rest)
{
    bool has_scheme = false, wanted = false;
    int r;

    for (;;) {
        struct agx_str word;

        skip(&rest, " \t,");
        if (rest.len == 0)
            return has_scheme ? 0 : -AGX_DATA_LOSS;
        word = take_token(&rest);
        if (word.len == 0)
            return -AGX_DATA_LOSS;
        skip(&rest, " \t");
        if (rest.len > 0 && rest.ptr[0] == '=') {
            r = has_scheme ? take_parameter(c, word, &rest, wanted) : -AGX_DATA_LOSS;
            if (r < 0)
                return r;
            continue;
        }
        has_scheme = true;
        wanted = kind_of(word) == AGX_CHALLENGE_BEARER && c->kind != AGX_CHALLENGE_BEARER;
        if (kind_of(word) > c->kind)
            c->kind = kind_of(word);
    }
}

int agx_challenge_parse(struct agx_challenge *c, struct agx_str text, struct agx_error **err)
{
    int r;

    *c = (struct agx_challenge){ 0 };
    r = challenge_parse(c, text);
    if (r == 0)
        return 0;
    agx_challenge_done(c);
    return agx_error_set(err, (enum agx_code) - r, "its WWW-Authenticate header is malformed%s",
                         r == -AGX_RESOURCE_EXHAUSTED ? ": out of memory" : "");
}

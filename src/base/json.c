/* json.c: jansson behind limits and our errors. */
#include "base/json.h"

#include "base/banned.h"

#include <errno.h>
#include <inttypes.h>

/* Offset of the first bracket nested deeper than `max`, or text.len. Skips strings. */
static size_t find_too_deep(struct agx_str text, unsigned max)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (in_string) {
            if (c == '\\')
                i++; /* an escaped character does not end the string */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (depth++ == max)
                return i;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return text.len;
}

/* Our own texts, because jansson's messages quote the document. */
static const char *what_is_wrong(enum json_error_code code)
{
    switch (code) {
    case json_error_invalid_utf8:
        return "text that is not UTF-8";
    case json_error_premature_end_of_input:
        return "the end of the text";
    case json_error_end_of_input_expected:
        return "more than one value";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a NUL in a string";
    case json_error_duplicate_key:
        return "a member for the second time";
    case json_error_numeric_overflow:
        return "a number that is too large";
    default:
        return "a syntax error";
    }
}

int agx_json_parse(struct agx_str text, size_t max_bytes, unsigned max_depth, json_t **ret_value,
                   struct agx_error **err)
{
    json_error_t e = { 0 };
    json_t *value;
    size_t deep;

    if (text.len > max_bytes)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "JSON of %zu bytes is longer than %zu",
                             text.len, max_bytes);
    /* jansson's own limit is too high for the stack of a small thread. */
    deep = find_too_deep(text, max_depth);
    if (deep < text.len)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "JSON is nested deeper than %u at byte %zu", max_depth, deep);
    errno = 0;
    value = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                       &e);
    if (value) {
        *ret_value = value;
        return 0;
    }
    /* When an allocation fails, jansson may report nothing or blame the text. */
    if (errno == ENOMEM || json_error_code(&e) == json_error_out_of_memory || !e.text[0])
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "out of memory for JSON of %zu bytes",
                             text.len);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "JSON has %s at byte %d",
                         what_is_wrong(json_error_code(&e)), e.position);
}

static int json_append(const char *bytes, size_t n, void *user)
{
    return agx_buf_append(user, agx_str_bytes(bytes, n)) < 0 ? -1 : 0;
}

int agx_json_write(const json_t *value, struct agx_buf *out, struct agx_error **err)
{
    size_t start = out->len;

    if (json_dump_callback(value, json_append, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
        return 0;
    out->len = start;
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no room for JSON in %zu bytes",
                         out->max - start);
}

static const char *type_name(const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a fraction", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };

    return names[json_typeof(v)];
}

bool agx_json_has(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return v && !json_is_null(v);
}

static int wrong_type(const char *key, const json_t *v, const char *want, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "member '%s' is %s, expected %s", key,
                         type_name(v), want);
}

/* A member of any type, borrowed; NULL and *err (always AGX_INVALID_ARGUMENT) if missing. */
static json_t *json_get(const json_t *object, const char *key, struct agx_error **err)
{
    json_t *v = json_object_get(object, key);

    if (!json_is_object(object))
        (void)agx_error_set(err, AGX_INVALID_ARGUMENT, "expected an object with member '%s'", key);
    else if (!v)
        (void)agx_error_set(err, AGX_INVALID_ARGUMENT, "member '%s' is missing", key);
    return v;
}

int agx_json_get_str(const json_t *object, const char *key, struct agx_str *ret,
                     struct agx_error **err)
{
    json_t *v = json_get(object, key, err);

    if (!v)
        return -AGX_INVALID_ARGUMENT;
    if (!json_is_string(v))
        return wrong_type(key, v, "a string", err);
    *ret = agx_str_bytes(json_string_value(v), json_string_length(v));
    return 0;
}

int agx_json_get_bool(const json_t *object, const char *key, bool *ret, struct agx_error **err)
{
    json_t *v = json_get(object, key, err);

    if (!v)
        return -AGX_INVALID_ARGUMENT;
    if (!json_is_boolean(v))
        return wrong_type(key, v, "a boolean", err);
    *ret = json_is_true(v);
    return 0;
}

int agx_json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *ret,
                     struct agx_error **err)
{
    json_t *v = json_get(object, key, err);
    json_int_t n;

    if (!v)
        return -AGX_INVALID_ARGUMENT;
    if (!json_is_integer(v))
        return wrong_type(key, v, "a whole number", err);
    n = json_integer_value(v);
    if (n < min || n > max)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "member '%s' is %" PRId64 ", expected %" PRId64 " to %" PRId64, key,
                             (int64_t)n, min, max);
    *ret = n;
    return 0;
}

int agx_json_get_object(const json_t *object, const char *key, json_t **ret, struct agx_error **err)
{
    json_t *v = json_get(object, key, err);

    if (!v)
        return -AGX_INVALID_ARGUMENT;
    if (!json_is_object(v))
        return wrong_type(key, v, "an object", err);
    *ret = v;
    return 0;
}

int agx_json_get_array(const json_t *object, const char *key, json_t **ret, struct agx_error **err)
{
    json_t *v = json_get(object, key, err);

    if (!v)
        return -AGX_INVALID_ARGUMENT;
    if (!json_is_array(v))
        return wrong_type(key, v, "an array", err);
    *ret = v;
    return 0;
}

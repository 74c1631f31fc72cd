/*
 * json_scan.h: reads a JSON text (RFC 8259) token by token, without a tree and without memory of
 * its own.
 *
 * The scanner checks the whole grammar and two things more: strings are valid UTF-8 without half
 * surrogate pairs, and nesting has a limit. Tokens are views of the text.
 *
 *     agx_json_scan_init(&s, AGX_STR("[\"name\",{\"a\":1}]"), AGX_DEPTH_MAX);
 *     agx_json_scan_next(&s, &t, err);      ARRAY, "["
 *     agx_json_scan_value(&s, &t, err);     STRING, "\"name\""
 *     agx_json_scan_value(&s, &t, err);     OBJECT, "{\"a\":1}": stepped over as a whole
 *     agx_json_scan_value(&s, &t, err);     ARRAY_END
 *     agx_json_scan_next(&s, &t, err);      END: nothing but blanks follows
 */
#ifndef AGX_CODEC_JSON_SCAN_H
#define AGX_CODEC_JSON_SCAN_H

#include "base/error.h"
#include "base/str.h"

/* The largest depth limit; higher ones are reduced to it. One bit for each open container. */
enum { AGX_JSON_SCAN_DEPTH_CEILING = 1024 };

enum agx_json_kind {
    AGX_JSON_END, /* of the text */
    AGX_JSON_NULL,
    AGX_JSON_TRUE,
    AGX_JSON_FALSE,
    AGX_JSON_NUMBER,
    AGX_JSON_STRING,
    AGX_JSON_KEY, /* of an object's member; its value is the next token */
    AGX_JSON_ARRAY,
    AGX_JSON_ARRAY_END,
    AGX_JSON_OBJECT,
    AGX_JSON_OBJECT_END,
};

struct agx_json_token {
    enum agx_json_kind kind;
    bool escaped;       /* a string or key with a backslash in it */
    struct agx_str raw; /* as in the text, strings with their quotes */
};

struct agx_json_scan {
    struct agx_str text;
    size_t at;      /* offset of the next byte to read */
    unsigned depth; /* open containers */
    unsigned depth_max;
    uint8_t expect;                                       /* what may come next; see json_scan.c */
    uint64_t in_object[AGX_JSON_SCAN_DEPTH_CEILING / 64]; /* bit set: that container is an object */
};

void agx_json_scan_init(struct agx_json_scan *s, struct agx_str text, unsigned depth_max);

/*
 * The next token. -AGX_INVALID_ARGUMENT with the offset for malformed text,
 * -AGX_RESOURCE_EXHAUSTED for too deep nesting; the scanner must not be used after either.
 */
int agx_json_scan_next(struct agx_json_scan *s, struct agx_json_token *ret,
                       struct agx_error **err) AGX_MUST_CHECK;

/* The same, but an array or object is stepped over: `raw` is all of it, both brackets included. */
int agx_json_scan_value(struct agx_json_scan *s, struct agx_json_token *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Checks that `text` is one JSON value with only blanks around it, and returns that value. */
int agx_json_scan_whole(struct agx_str text, unsigned depth_max, struct agx_json_token *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

/* The content of a string or key between its quotes, escapes untouched (see json_text.h). */
static inline struct agx_str agx_json_token_inner(const struct agx_json_token *t)
{
    return (struct agx_str){ t->raw.ptr + 1, t->raw.len - 2 };
}

#endif

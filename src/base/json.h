/*
 * json.h: strict JSON parsing into trees: one value and nothing after it, no duplicate member,
 * valid UTF-8, no NUL in strings, within limits. The trees are jansson's; this module adds limits,
 * errors and buffers.
 *
 * Read members of foreign documents with agx_json_get_*: their errors name the member and the
 * expected type. The object may be any value: if it is not an object, the error says so.
 *
 * Link with dep_json; the rest of base needs no library.
 */
#ifndef AGX_BASE_JSON_H
#define AGX_BASE_JSON_H

#include "base/buf.h"

#include <jansson.h>

/*
 * The caller owns *ret_value (json_decref). -AGX_INVALID_ARGUMENT with the offset for text that is
 * not JSON; -AGX_RESOURCE_EXHAUSTED for more than `max_bytes` or `max_depth` (AGX_JSON_MAX and
 * AGX_DEPTH_MAX unless there is a reason) and without memory. Errors never quote the text, which
 * may hold secrets.
 */
int agx_json_parse(struct agx_str text, size_t max_bytes, unsigned max_depth, json_t **ret_value,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Appends the value without blanks, members in order. On failure `out` is unchanged. */
int agx_json_write(const json_t *value, struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

/* True if the member exists and is not null. */
bool agx_json_has(const json_t *object, const char *key);

/*
 * Read a required member: -AGX_INVALID_ARGUMENT if it is missing or of another type. The result is
 * borrowed from the object.
 */
int agx_json_get_str(const json_t *object, const char *key, struct agx_str *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
int agx_json_get_bool(const json_t *object, const char *key, bool *ret,
                      struct agx_error **err) AGX_MUST_CHECK;
/* A whole number from `min` to `max`. */
int agx_json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
int agx_json_get_object(const json_t *object, const char *key, json_t **ret,
                        struct agx_error **err) AGX_MUST_CHECK;
int agx_json_get_array(const json_t *object, const char *key, json_t **ret,
                       struct agx_error **err) AGX_MUST_CHECK;

static inline void agx_json_decrefp(json_t **value)
{
    json_decref(*value);
}

#define _cleanup_json_ _cleanup_(agx_json_decrefp)

#endif

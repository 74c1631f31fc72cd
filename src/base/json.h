/*
 * json.h: JSON trees, strictly: one value and nothing behind it, no member twice, valid UTF-8, no
 * NUL in strings, within limits. The tree is jansson's; what follows adds limits, errors and
 * buffers.
 *
 * Members that come from outside are taken out with agx_json_get_*: each names the member and the
 * type it should have had when it fails. The object may be any value: an error says so.
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

/* Appends the value without blanks, members in their order. On failure `out` is as before. */
int agx_json_write(const json_t *value, struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

/* There is such a member and it is not null. */
bool agx_json_has(const json_t *object, const char *key);

/*
 * A member that must be there: -AGX_INVALID_ARGUMENT where it is missing or of another type. What
 * is returned is borrowed from the object.
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

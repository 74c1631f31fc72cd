/*
 * json_optional.h: optional fields of JSON objects, as owned strings. A missing or null field
 * leaves *ret unchanged. -AGX_INVALID_ARGUMENT for a field of another type, with its name.
 *
 * Link with dep_json; the rest of core needs no library for it.
 */
#ifndef AGX_CORE_JSON_OPTIONAL_H
#define AGX_CORE_JSON_OPTIONAL_H

#include "base/json.h"
#include "core/text.h"

int agx_json_optional_text(const json_t *object, const char *key, char **ret,
                           struct agx_error **err) AGX_MUST_CHECK;
/* Appends to the list; after a failure it has the strings before the bad one. */
int agx_json_optional_words(const json_t *object, const char *key, struct agx_words *ret,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * member.h: members of JSON objects that may be missing, or null, as strings of our own. What is
 * missing leaves *ret as it is. -AGX_INVALID_ARGUMENT names a member of another type.
 *
 * Link with dep_json; the rest of core needs no library for it.
 */
#ifndef AGX_CORE_MEMBER_H
#define AGX_CORE_MEMBER_H

#include "base/json.h"
#include "core/text.h"

int agx_member_text(const json_t *object, const char *key, char **ret,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Adds to the list, also what comes before a failure. */
int agx_member_words(const json_t *object, const char *key, struct agx_words *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

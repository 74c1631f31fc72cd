/* json_optional.c: copies strings out of JSON objects. */
#include "core/json_optional.h"

#include "base/banned.h"

int agx_json_optional_text(const json_t *object, const char *key, char **ret,
                           struct agx_error **err)
{
    struct agx_str text;
    int r;

    if (!agx_json_has(object, key))
        return 0;
    r = agx_json_get_str(object, key, &text, err);
    return r < 0 ? r : agx_text_set(ret, text.ptr, err);
}

int agx_json_optional_words(const json_t *object, const char *key, struct agx_words *ret,
                            struct agx_error **err)
{
    json_t *list = NULL;
    int r;

    if (!agx_json_has(object, key))
        return 0;
    r = agx_json_get_array(object, key, &list, err);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *word = json_array_get(list, i);

        if (!json_is_string(word))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "member '%s' has a value that is not a string", key);
        r = agx_words_add(ret, agx_str_from(json_string_value(word)), err);
    }
    return r;
}

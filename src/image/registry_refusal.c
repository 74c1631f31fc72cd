/* registry_refusal.c: error messages of a registry. */
#include "base/json.h"
#include "core/text.h"
#include "image/registry_internal.h"

#include "base/banned.h"

static enum agx_code code_of(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return AGX_PERMISSION_DENIED;
    case 404:
        return AGX_NOT_FOUND;
    case 408:
        return AGX_DEADLINE_EXCEEDED;
    case 429:
        return AGX_RESOURCE_EXHAUSTED;
    default:
        return status >= 500 ? AGX_UNAVAILABLE : AGX_DATA_LOSS;
    }
}

/* Its own message: {"errors": [{"code": "DENIED", "message": "..."}]}, or {"details": "..."} of a
 * token server. Borrowed from `doc`. */
static const char *words_of(const json_t *doc)
{
    const json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
    const char *words = json_string_value(json_object_get(first, "message"));

    if (!words || !*words)
        words = json_string_value(json_object_get(first, "code"));
    if (!words || !*words)
        words = json_string_value(json_object_get(doc, "details"));
    return words;
}

int registry_refusal(struct agx_error **err, const char *who, unsigned status, struct agx_str body)
{
    _cleanup_json_ json_t *doc = NULL;
    struct agx_str words;

    (void)!agx_json_parse(body, AGX_JSON_MAX, AGX_DEPTH_MAX, &doc, NULL);
    words = agx_text_printable(agx_str_from(words_of(doc)), AGX_FAILURE_TEXT_MAX);
    return agx_error_set(err, code_of(status), "%s answers %u%s%.*s", who, status,
                         words.len > 0 ? ": " : "", AGX_STR_ARG(words));
}

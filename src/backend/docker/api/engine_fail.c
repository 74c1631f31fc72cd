/* engine_fail.c: helpful messages for failures between us and the engine. */
#include "backend/docker/api/engine_internal.h"
#include "core/text.h"

#include "base/banned.h"

/* The engine's own message; if the answer is not JSON, as from proxies, its text, cut. */
static struct agx_str words_of(struct agx_str body, const json_t *json)
{
    const json_t *message = json_object_get(json, "message");
    struct agx_str words = { json_string_value(message), json_string_length(message) };

    if (!words.ptr || words.len == 0)
        words = body;
    words.len = agx_str_find(words, '\0');
    while (words.len > 0 && strchr("\r\n ", words.ptr[words.len - 1]))
        words.len--;
    words.len = (size_t)agx_text_cut(words, AGX_FAILURE_TEXT_MAX);
    return words;
}

static enum agx_code code_of(unsigned status)
{
    switch (status) {
    case 400:
        return AGX_INVALID_ARGUMENT;
    case 401:
        return AGX_UNAUTHENTICATED;
    case 403:
        return AGX_PERMISSION_DENIED;
    case 404:
        return AGX_NOT_FOUND;
    case 409:
        return AGX_ALREADY_EXISTS;
    case 429:
    case 503:
        return AGX_UNAVAILABLE;
    default:
        return status >= 400 && status < 500 ? AGX_FAILED_PRECONDITION : AGX_INTERNAL;
    }
}

int docker_refused(unsigned status, struct agx_str body, struct agx_error **err)
{
    _cleanup_json_ json_t *json = NULL;
    struct agx_str words;

    (void)!agx_json_parse(body, AGX_JSON_MAX, AGX_DEPTH_MAX, &json, NULL);
    words = words_of(body, json);
    if (words.len == 0)
        return agx_error_set(err, code_of(status), "the Docker Engine answered with status %u",
                             status);
    return agx_error_set(err, code_of(status), "%.*s", AGX_STR_ARG(words));
}

/* There is no connection. */
static int unconnected(const struct agx_docker_engine *e, int sys_errno, struct agx_error **err)
{
    if (sys_errno == EACCES || sys_errno == EPERM)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "no permission to use the Docker Engine at '%s'; its socket is for "
                             "root and the members of its group, usually 'docker'",
                             e->endpoint.host);
    return agx_error_set(err, AGX_UNAVAILABLE,
                         "cannot connect to the Docker Engine at '%s' (%s); is it running?",
                         e->endpoint.host, strerrordesc_np(sys_errno));
}

int docker_unreached(struct agx_docker_engine *e, struct agx_error **take_error,
                     struct agx_error **err)
{
    _cleanup_(agx_error_freep) struct agx_error *error = AGX_TAKE_PTR(*take_error);
    enum agx_code code = error->code;

    if (code == AGX_UNAVAILABLE)
        e->version = e->fixed; /* the engine that comes back may be another */
    if (code == AGX_UNAVAILABLE && error->sys_errno != 0)
        return unconnected(e, error->sys_errno, err);
    agx_error_propagate(err, &error);
    return -(int)code;
}

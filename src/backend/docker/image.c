/* image.c: the few fields of an image's description that we use. */
#include "backend/docker/image.h"

#include "core/json_optional.h"

#include "base/banned.h"

void agx_docker_image_init(struct agx_docker_image *i)
{
    *i = (struct agx_docker_image){ 0 };
}

void agx_docker_image_done(struct agx_docker_image *i)
{
    if (!i)
        return;
    free(i->id);
    free(i->user);
    free(i->workdir);
    agx_words_done(&i->env);
    agx_words_done(&i->entrypoint);
    agx_words_done(&i->command);
    agx_docker_image_init(i);
}

static int image_parse(struct agx_docker_image *i, const json_t *inspect, struct agx_error **err)
{
    json_t *config = NULL;
    struct agx_str id;
    int r;

    if ((r = agx_json_get_str(inspect, "Id", &id, err)) < 0 ||
        (r = agx_text_set(&i->id, id.ptr, err)) < 0)
        return r;
    if (!i->id)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "member 'Id' is empty");
    if (!agx_json_has(inspect, "Config"))
        return 0; /* an image that only has files */
    if ((r = agx_json_get_object(inspect, "Config", &config, err)) < 0 ||
        (r = agx_json_optional_text(config, "User", &i->user, err)) < 0 ||
        (r = agx_json_optional_text(config, "WorkingDir", &i->workdir, err)) < 0 ||
        (r = agx_json_optional_words(config, "Env", &i->env, err)) < 0 ||
        (r = agx_json_optional_words(config, "Entrypoint", &i->entrypoint, err)) < 0)
        return r;
    return agx_json_optional_words(config, "Cmd", &i->command, err);
}

int agx_docker_image_parse(struct agx_docker_image *i, const json_t *inspect,
                           struct agx_error **err)
{
    int r;

    agx_docker_image_init(i);
    r = image_parse(i, inspect, err);
    if (r == 0)
        return 0;
    agx_docker_image_done(i);
    if (r == -AGX_RESOURCE_EXHAUSTED)
        return r;
    return agx_error_wrap(err, -AGX_INTERNAL, "the engine's description of an image");
}

bool agx_docker_image_sets(const struct agx_docker_image *i, const char *name)
{
    size_t len = strlen(name);

    for (size_t k = 0; k < i->env.len; k++) {
        const char *entry = i->env.items[k];

        if (strncmp(entry, name, len) == 0 && entry[len] == '=')
            return true;
    }
    return false;
}

/* image_config.c: parses an image's configuration. Missing and null members count as empty. */
#include "image/image.h"

#include "base/limits.h"
#include "core/json_optional.h"
#include "image/digest.h"

#include <inttypes.h>

#include "base/banned.h"

void agx_image_config_done(struct agx_image_config *c)
{
    if (!c)
        return;
    free(c->os);
    free(c->architecture);
    free(c->variant);
    free(c->created);
    free(c->user);
    free(c->workdir);
    free(c->stop_signal);
    agx_words_done(&c->env);
    agx_words_done(&c->entrypoint);
    agx_words_done(&c->command);
    agx_words_done(&c->exposed_ports);
    agx_words_done(&c->healthcheck.test);
    agx_words_done(&c->diff_ids);
    agx_pairs_done(&c->labels);
    *c = (struct agx_image_config){ 0 };
}

static int take_labels(const json_t *config, struct agx_pairs *ret, struct agx_error **err)
{
    json_t *labels = NULL, *value;
    const char *key;
    int r;

    if (!agx_json_has(config, "Labels"))
        return 0;
    r = agx_json_get_object(config, "Labels", &labels, err);
    if (r < 0)
        return r;
    json_object_foreach(labels, key, value)
    {
        if (!json_is_string(value))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "member 'Labels' has a value that is not a string");
        r = agx_pairs_set(ret, agx_str_from(key), agx_str_from(json_string_value(value)), err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The keys of an object whose values are meaningless. */
static int take_ports(const json_t *config, struct agx_words *ret, struct agx_error **err)
{
    json_t *ports = NULL, *value;
    const char *key;
    int r;

    if (!agx_json_has(config, "ExposedPorts"))
        return 0;
    r = agx_json_get_object(config, "ExposedPorts", &ports, err);
    if (r < 0)
        return r;
    json_object_foreach(ports, key, value)
    {
        r = agx_words_add(ret, agx_str_from(key), err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Nanoseconds; 0: the default of the program that runs it. */
static int take_time(const json_t *object, const char *key, int64_t *ret, struct agx_error **err)
{
    int64_t ns = 0;
    int r;

    *ret = AGX_NS_UNSET;
    if (!agx_json_has(object, key))
        return 0;
    r = agx_json_get_int(object, key, 0, INT64_MAX, &ns, err);
    if (r == 0 && ns > 0)
        *ret = ns;
    return r;
}

static int take_healthcheck(const json_t *config, struct agx_healthcheck *h, struct agx_error **err)
{
    json_t *check = NULL;
    int64_t retries = 0;
    int r;

    if (!agx_json_has(config, "Healthcheck"))
        return 0;
    if ((r = agx_json_get_object(config, "Healthcheck", &check, err)) < 0 ||
        (r = agx_json_optional_words(check, "Test", &h->test, err)) < 0 ||
        (r = take_time(check, "Interval", &h->interval_ns, err)) < 0 ||
        (r = take_time(check, "Timeout", &h->timeout_ns, err)) < 0 ||
        (r = take_time(check, "StartPeriod", &h->start_period_ns, err)) < 0 ||
        (r = take_time(check, "StartInterval", &h->start_interval_ns, err)) < 0)
        return r;
    if (agx_json_has(check, "Retries"))
        r = agx_json_get_int(check, "Retries", 0, UINT32_MAX, &retries, err);
    h->retries = (uint32_t)retries;
    h->set = h->test.len > 0 && strcmp(h->test.items[0], "NONE") != 0;
    if (!h->set) {
        agx_words_done(&h->test);
        *h = (struct agx_healthcheck){ 0 };
    }
    return r;
}

/* A relative directory is below "/", as it is for Docker. */
static int take_workdir(const json_t *config, char **ret, struct agx_error **err)
{
    size_t size;
    char *whole;
    int r = agx_json_optional_text(config, "WorkingDir", ret, err);

    if (r < 0 || !*ret || **ret == '/')
        return r;
    size = strlen(*ret) + 2;
    whole = malloc(size);
    if (!whole)
        return agx_error_no_memory(err);
    (void)snprintf(whole, size, "/%s", *ret);
    free(*ret);
    *ret = whole;
    return 0;
}

static int take_run(struct agx_image_config *c, const json_t *root, struct agx_error **err)
{
    json_t *config = NULL;
    int r;

    if (!agx_json_has(root, "config"))
        return 0; /* an image that only has files */
    if ((r = agx_json_get_object(root, "config", &config, err)) < 0 ||
        (r = agx_json_optional_text(config, "User", &c->user, err)) < 0 ||
        (r = take_workdir(config, &c->workdir, err)) < 0 ||
        (r = agx_json_optional_text(config, "StopSignal", &c->stop_signal, err)) < 0 ||
        (r = agx_json_optional_words(config, "Env", &c->env, err)) < 0 ||
        (r = agx_json_optional_words(config, "Entrypoint", &c->entrypoint, err)) < 0 ||
        (r = agx_json_optional_words(config, "Cmd", &c->command, err)) < 0 ||
        (r = take_labels(config, &c->labels, err)) < 0 ||
        (r = take_ports(config, &c->exposed_ports, err)) < 0)
        return r;
    return take_healthcheck(config, &c->healthcheck, err);
}

static int take_layers(struct agx_image_config *c, const json_t *root, struct agx_error **err)
{
    json_t *rootfs = NULL;
    int r = agx_json_get_object(root, "rootfs", &rootfs, err);

    if (r == 0)
        r = agx_json_optional_words(rootfs, "diff_ids", &c->diff_ids, err);
    if (r < 0)
        return r;
    if (c->diff_ids.len > AGX_IMAGE_LAYERS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "it has %zu layers; at most %d can be used",
                             c->diff_ids.len, AGX_IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < c->diff_ids.len; i++)
        if (!agx_digest_is(agx_str_from(c->diff_ids.items[i])))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "its layer %zu has no valid SHA-256 digest", i + 1);
    return 0;
}

static int take_all(struct agx_image_config *c, const json_t *root, struct agx_error **err)
{
    int r;

    if ((r = agx_json_optional_text(root, "os", &c->os, err)) < 0 ||
        (r = agx_json_optional_text(root, "architecture", &c->architecture, err)) < 0 ||
        (r = agx_json_optional_text(root, "variant", &c->variant, err)) < 0 ||
        (r = agx_json_optional_text(root, "created", &c->created, err)) < 0 ||
        (r = take_run(c, root, err)) < 0 || (r = take_layers(c, root, err)) < 0)
        return r;
    if (c->os && strcmp(c->os, "linux") != 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "it is for '%.50s', not for linux", c->os);
    return 0;
}

int agx_image_config_parse(struct agx_image_config *c, struct agx_str text, struct agx_error **err)
{
    _cleanup_json_ json_t *root = NULL;
    int r;

    *c = (struct agx_image_config){ 0 };
    r = agx_json_parse(text, AGX_JSON_MAX, AGX_DEPTH_MAX, &root, err);
    if (r == 0)
        r = take_all(c, root, err);
    if (r == 0)
        return 0;
    agx_image_config_done(c);
    return agx_error_wrap(err, r, "the configuration of an image");
}

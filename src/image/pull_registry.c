/*
 * pull_registry.c: an image from its registry.
 *
 *     credentials --> manifest --an index--> manifest --> configuration --> layers --> record
 *
 * Each document is checked against the digest by which it was requested; the store checks layers.
 */
#include "image/pull_internal.h"

#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

static void ask_manifest(struct pull *p, const char *digest, uint64_t size);

static void pull_registry_fail(struct pull *p, enum agx_code code, const char *what)
{
    struct agx_error *error = NULL;

    (void)agx_error_set(&error, code, "%s", what);
    pull_finish(p, NULL, error);
}

/* ---- the record ---- */

static void on_recorded(void *user, struct agx_image *image, struct agx_error *error)
{
    struct pull_errand *errand = user;
    struct pull *p = errand->pull;

    free(errand);
    if (p) {
        p->errand = NULL;
        pull_finish(p, image, error);
    } else {
        agx_error_free(error);
    }
    agx_image_unref(image);
}

void pull_record(struct pull *p)
{
    const struct agx_ingest_image parts = { .config = agx_buf_peek(&p->config_text),
                                            .manifest = agx_buf_peek(&p->manifest_text),
                                            .name = agx_str_from(p->flight.key) };
    struct agx_error *error = NULL;

    p->errand = agx_new(struct pull_errand);
    p->errand->pull = p;
    if (agx_ingest_image(p->ingest, &parts, on_recorded, p->errand, &error) == 0)
        return;
    free(p->errand);
    p->errand = NULL;
    pull_finish(p, NULL, error);
}

/* ---- the configuration ---- */

static int read_config(struct pull *p, struct agx_str body, struct agx_error **err)
{
    int r = agx_descriptor_fits(p->manifest.config.digest, body, err);

    if (r < 0)
        return r;
    if (r == 0)
        return agx_error_set(err, AGX_DATA_LOSS, "its configuration does not have the digest '%s'",
                             p->manifest.config.digest);
    r = agx_image_config_parse(&p->config, body, err);
    if (r < 0)
        return r;
    if (p->config.diff_ids.len != p->manifest.n_layers)
        return agx_error_set(err, AGX_DATA_LOSS,
                             "its manifest has %zu layers, its configuration %zu",
                             p->manifest.n_layers, p->config.diff_ids.len);
    if (agx_buf_append(&p->config_text, body) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "keep its configuration: out of memory");
    return 0;
}

static void on_config(void *user, struct agx_str body, struct agx_error *error)
{
    struct pull *p = user;

    p->call = NULL;
    if (error || read_config(p, body, &error) < 0) {
        pull_finish(p, NULL, error);
        return;
    }
    p->n_layers = p->manifest.n_layers;
    p->layers = agx_alloc((p->n_layers + 1) * sizeof(*p->layers));
    p->progress.layers_total = (uint32_t)p->n_layers;
    for (size_t i = 0; i < p->n_layers; i++) {
        p->layers[i] = (struct pull_layer){ .pull = p,
                                            .blob = &p->manifest.layers[i],
                                            .diff_id = p->config.diff_ids.items[i] };
        p->progress.bytes_total += p->manifest.layers[i].size;
    }
    p->ingest = agx_ingest_new(p->puller->images);
    pull_start_layers(p);
}

static void ask_config(struct pull *p)
{
    const struct agx_descriptor *config = &p->manifest.config;
    _cleanup_free_ char *path = NULL;

    if (config->size > AGX_JSON_MAX) {
        pull_registry_fail(p, AGX_RESOURCE_EXHAUSTED, "its configuration is too large");
        return;
    }
    if (asprintf(&path, "blobs/%s", config->digest) < 0)
        abort(); /* small, as with agx_new() */
    agx_registry_get(
        p->registry,
        &(struct agx_registry_request){
            .path = path, .max_bytes = config->size, .is_exact = true, .done = on_config },
        p, &p->call);
}

/* ---- the manifest ---- */

/* The digest by which the current manifest was requested; NULL: by a tag. */
static const char *digest_of(const struct pull *p)
{
    return p->manifest.is_index ? p->manifest.chosen.digest : p->ref.digest;
}

static int read_manifest(struct pull *p, struct agx_str body, struct agx_error **err)
{
    const char *digest = digest_of(p);
    bool in_index = p->manifest.is_index;
    struct agx_manifest m;
    int r = digest ? agx_descriptor_fits(digest, body, err) : 1;

    if (r < 0)
        return r;
    if (r == 0)
        return agx_error_set(err, AGX_DATA_LOSS, "its manifest does not have the digest '%s'",
                             digest);
    r = agx_manifest_parse(&m, body, &agx_platform_here, err);
    if (r < 0)
        return r;
    agx_manifest_done(&p->manifest);
    p->manifest = m;
    if (m.is_index && in_index)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "its index names another index");
    if (!m.is_index && agx_buf_append(&p->manifest_text, body) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "keep its manifest: out of memory");
    return 0;
}

static void on_manifest(void *user, struct agx_str body, struct agx_error *error)
{
    struct pull *p = user;

    p->call = NULL;
    if (error || read_manifest(p, body, &error) < 0)
        pull_finish(p, NULL, error);
    else if (p->manifest.is_index)
        ask_manifest(p, p->manifest.chosen.digest, p->manifest.chosen.size);
    else
        ask_config(p);
}

/* By tag or digest; `size` 0: unknown. */
static void ask_manifest(struct pull *p, const char *name, uint64_t size)
{
    _cleanup_free_ char *path = NULL;

    if (size > AGX_JSON_MAX) {
        pull_registry_fail(p, AGX_RESOURCE_EXHAUSTED, "its manifest is too large");
        return;
    }
    if (asprintf(&path, "manifests/%s", name) < 0)
        abort(); /* small, as with agx_new() */
    agx_registry_get(p->registry,
                     &(struct agx_registry_request){ .path = path,
                                                     .accept = AGX_MANIFEST_ACCEPT,
                                                     .max_bytes = size ? size : AGX_JSON_MAX,
                                                     .is_exact = size > 0,
                                                     .done = on_manifest },
                     p, &p->call);
}

/* ---- credentials ---- */

static void open_registry(struct pull *p, const struct agx_credentials *found)
{
    const struct agx_puller *puller = p->puller;
    const struct agx_registry_config config = { .host = p->ref.registry,
                                                .repository = p->ref.path,
                                                .credentials = found,
                                                .insecure = (const char *const *)puller->insecure,
                                                .tries = puller->tries,
                                                .retry_ms = puller->retry_ms,
                                                .connect_ms = puller->connect_ms,
                                                .quiet_ms = puller->quiet_ms };
    struct agx_error *error = NULL;

    if (agx_registry_open(puller->loop, &config, &p->registry, &error) < 0)
        pull_finish(p, NULL, error);
    else
        ask_manifest(p, p->ref.digest ? p->ref.digest : p->ref.tag, 0);
}

static void on_credentials(void *user, const struct agx_credentials *found, struct agx_error *error)
{
    struct pull *p = user;

    p->lookup = NULL;
    p->unknown = error;
    open_registry(p, found);
}

/* The rest of pull_start_registry(), after the start was reported. */
static void find_credentials(uv_timer_t *timer)
{
    struct pull *p = container_of(timer, struct pull, timer);
    struct agx_puller *puller = p->puller;

    if (!puller->has_env) {
        open_registry(p, NULL);
        return;
    }
    p->lookup = agx_credentials_lookup_start(
        puller->loop,
        &(struct agx_credentials_lookup_params){ .env = &puller->env,
                                                 .registry = p->ref.registry,
                                                 .helper_ms = AGX_CREDENTIALS_HELPER_MS },
        on_credentials, p);
}

void pull_start_registry(struct pull *p)
{
    assert(p->ref.registry);
    if (p->ref.digest && strncmp(p->ref.digest, "sha256:", strlen("sha256:")) != 0) {
        pull_registry_fail(p, AGX_FAILED_PRECONDITION, "its digest is not a SHA-256 digest");
        return;
    }
    pull_later(p, find_credentials);
    pull_news(p);
}

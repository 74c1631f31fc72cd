/*
 * manifest.c: parses manifests and indexes.
 *
 * The type of a document follows from its members: "layers" or "manifests". One with both could be
 * read in two ways under one digest, and is refused.
 */
#include "image/manifest.h"

#include "base/json.h"
#include "base/limits.h"
#include "core/text.h"
#include "image/digest.h"

#include "base/banned.h"

enum { MEDIA_TYPE_MAX = 200 };

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#define VARIANT NULL
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#define VARIANT "v8"
#else
#error "how are images for this machine called?"
#endif

const struct agx_platform agx_platform_here = { "linux", ARCHITECTURE, VARIANT };

static void descriptor_done(struct agx_descriptor *d)
{
    free(d->media_type);
    free(d->digest);
    *d = (struct agx_descriptor){ 0 };
}

void agx_manifest_done(struct agx_manifest *m)
{
    if (!m)
        return;
    descriptor_done(&m->chosen);
    descriptor_done(&m->config);
    for (size_t i = 0; i < m->n_layers; i++)
        descriptor_done(&m->layers[i]);
    free(m->layers);
    *m = (struct agx_manifest){ 0 };
}

int agx_descriptor_fits(const char *digest, struct agx_str bytes, struct agx_error **err)
{
    char own[AGX_DIGEST_SIZE];
    int r = agx_digest_of(bytes, own, err);

    return r < 0 ? r : strcmp(digest, own) == 0;
}

static struct agx_str printable(const char *s)
{
    return agx_text_printable(agx_str_from(s), MEDIA_TYPE_MAX);
}

static const char *member(const json_t *object, const char *name)
{
    return agx_text(json_string_value(json_object_get(object, name)));
}

static int parse_descriptor(struct agx_descriptor *d, const json_t *value, const char *what,
                            struct agx_error **err)
{
    struct agx_str type = agx_str_from(member(value, "mediaType")), digest = { 0 };
    int64_t size = 0;

    if (agx_json_get_str(value, "digest", &digest, NULL) < 0 ||
        agx_json_get_int(value, "size", 0, INT64_MAX, &size, NULL) < 0)
        return agx_error_set(err, AGX_DATA_LOSS, "the manifest's %s has no digest or no size",
                             what);
    if (!agx_digest_is(digest))
        return agx_error_set(
            err, AGX_FAILED_PRECONDITION,
            "the manifest's %s has the digest '%.*s', which is not a SHA-256 digest", what,
            AGX_STR_ARG(agx_text_printable(digest, MEDIA_TYPE_MAX)));
    d->size = (uint64_t)size;
    d->digest = agx_str_dup(digest);
    d->media_type = type.len > 0 ? agx_str_dup(type) : NULL;
    return d->digest && (d->media_type || type.len == 0) ? 0 : agx_error_no_memory(err);
}

/* ---- an index ---- */

/* How well an image for `variant` runs on ours; 0: not at all. */
static unsigned fit(const struct agx_platform *ours, const char *variant)
{
    if (agx_text_eq(ours->variant, variant))
        return 100;
    if (!*variant)
        return 50;
    if (strcmp(ours->architecture, "amd64") == 0 && strcmp(variant, "v1") == 0)
        return 40;
    return 0;
}

static unsigned fit_of(const json_t *entry, const struct agx_platform *ours)
{
    const json_t *platform = json_object_get(entry, "platform");

    if (strcmp(member(platform, "os"), ours->os) != 0 ||
        strcmp(member(platform, "architecture"), ours->architecture) != 0)
        return 0;
    return fit(ours, member(platform, "variant"));
}

/* "linux/arm64/v8, linux/386": the available ones. */
static int no_fit(const json_t *entries, const struct agx_platform *ours, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf list = AGX_BUF_INIT(1024);
    size_t at;
    const json_t *entry;

    json_array_foreach(entries, at, entry)
    {
        const json_t *platform = json_object_get(entry, "platform");
        const char *os = member(platform, "os"), *variant = member(platform, "variant");
        struct agx_str arch = printable(member(platform, "architecture"));

        /* Attestations of an image are listed as platform "unknown". */
        if (!*os || strcmp(os, "unknown") == 0)
            continue;
        if (agx_buf_printf(&list, "%s%.*s/%.*s%s%.*s", list.len ? ", " : "",
                           AGX_STR_ARG(printable(os)), AGX_STR_ARG(arch), *variant ? "/" : "",
                           AGX_STR_ARG(printable(variant))) < 0)
            break; /* long enough */
    }
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "there is none for %s/%s, only for: %.*s",
                         ours->os, ours->architecture, AGX_STR_ARG(agx_buf_peek(&list)));
}

static int parse_index(struct agx_manifest *m, const json_t *entries,
                       const struct agx_platform *ours, struct agx_error **err)
{
    const json_t *entry, *best = NULL;
    unsigned best_fit = 0;
    size_t at;

    m->is_index = true;
    json_array_foreach(entries, at, entry)
    {
        unsigned f = fit_of(entry, ours);

        if (f > best_fit) {
            best = entry;
            best_fit = f;
        }
    }
    if (!best)
        return no_fit(entries, ours, err);
    return parse_descriptor(&m->chosen, best, "entry", err);
}

/* ---- a manifest ---- */

static bool is_one_of(const char *type, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(type, *known) == 0)
            return true;
    return false;
}

static int check_types(const struct agx_manifest *m, struct agx_error **err)
{
    static const char *const configs[] = { "application/vnd.docker.container.image.v1+json",
                                           "application/vnd.oci.image.config.v1+json", NULL };
    static const char *const layers[] = { "application/vnd.docker.image.rootfs.diff.tar",
                                          "application/vnd.docker.image.rootfs.diff.tar.gzip",
                                          "application/vnd.docker.image.rootfs.diff.tar.zstd",
                                          "application/vnd.oci.image.layer.v1.tar",
                                          "application/vnd.oci.image.layer.v1.tar+gzip",
                                          "application/vnd.oci.image.layer.v1.tar+zstd",
                                          NULL };

    if (m->config.media_type && !is_one_of(m->config.media_type, configs))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "it is not an image, but '%.*s'",
                             AGX_STR_ARG(printable(m->config.media_type)));
    for (size_t i = 0; i < m->n_layers; i++) {
        const char *type = m->layers[i].media_type;

        if (type && !is_one_of(type, layers))
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "layer %zu is a '%.*s', which cannot be unpacked", i + 1,
                                 AGX_STR_ARG(printable(type)));
    }
    return 0;
}

static int parse_layers(struct agx_manifest *m, const json_t *layers, struct agx_error **err)
{
    size_t n = json_array_size(layers);
    int r;

    if (n > AGX_IMAGE_LAYERS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "it has %zu layers, more than %d", n,
                             AGX_IMAGE_LAYERS_MAX);
    m->layers = calloc(n + 1, sizeof(*m->layers));
    if (!m->layers)
        return agx_error_no_memory(err);
    while (m->n_layers < n) {
        size_t i = m->n_layers++;

        r = parse_descriptor(&m->layers[i], json_array_get(layers, i), "layer", err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int manifest_parse(struct agx_manifest *m, const json_t *doc,
                          const struct agx_platform *platform, struct agx_error **err)
{
    json_t *manifests = json_object_get(doc, "manifests");
    json_t *layers = json_object_get(doc, "layers"), *config = json_object_get(doc, "config");
    int r;

    if (json_integer_value(json_object_get(doc, "schemaVersion")) == 1)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "its manifest is of Docker's schema 1, which is no longer in use");
    if (json_is_array(manifests) && !layers && !config)
        return parse_index(m, manifests, platform, err);
    if (!json_is_array(layers) || !json_is_object(config) || manifests)
        return agx_error_set(err, AGX_DATA_LOSS, "its manifest is malformed");
    r = parse_descriptor(&m->config, config, "configuration", err);
    if (r == 0)
        r = parse_layers(m, layers, err);
    if (r == 0)
        r = check_types(m, err);
    return r;
}

int agx_manifest_parse(struct agx_manifest *m, struct agx_str text,
                       const struct agx_platform *platform, struct agx_error **err)
{
    _cleanup_(agx_error_freep) struct agx_error *why = NULL;
    _cleanup_json_ json_t *doc = NULL;
    int r;

    *m = (struct agx_manifest){ 0 };
    if (agx_json_parse(text, AGX_JSON_MAX, AGX_DEPTH_MAX, &doc, &why) < 0)
        return agx_error_set(err, why->code == AGX_INVALID_ARGUMENT ? AGX_DATA_LOSS : why->code,
                             "its manifest is malformed: %s", why->message);
    r = manifest_parse(m, doc, platform, err);
    if (r < 0)
        agx_manifest_done(m);
    return r;
}

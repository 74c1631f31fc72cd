/* imagefile_lists.c: the lists of images in an archive: Docker's manifest.json, OCI's index.json.
 */
#include "image/imagefile_internal.h"

#include "base/json.h"
#include "base/limits.h"
#include "core/imageref.h"
#include "image/manifest.h"

#include <stdio.h>

#include "base/banned.h"

static int no_list(const char *name, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "the archive's '%s' is malformed", name);
}

static int parse_member(const struct index *x, const char *name, json_t **ret,
                        struct agx_error **err)
{
    _cleanup_free_ char *text = NULL;
    int r = index_text(x, agx_str_from(name), &text, err);

    if (r == 0)
        r = agx_json_parse(agx_str_from(text), AGX_JSON_MAX, AGX_DEPTH_MAX, ret, err);
    return r;
}

/* Adds a valid name; others, such as "<none>:<none>", mean that there is none. */
static int add_name(struct agx_imagefile_image *i, const char *name, struct agx_error **err)
{
    struct agx_imageref ref;

    if (!name || agx_imageref_parse(&ref, agx_str_from(name), NULL) < 0)
        return 0;
    agx_imageref_done(&ref);
    return agx_words_add(&i->names, agx_str_from(name), err);
}

/* ---- docker save ---- */

/* [{ "Config": "...", "RepoTags": ["..."], "Layers": ["..."] }, ...] */
static bool is_docker_list(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_object_get(json_array_get(list, i), "Config")) ||
            !json_is_array(json_object_get(json_array_get(list, i), "Layers")))
            return false;
    return json_array_size(list) > 0;
}

static int add_names(struct agx_imagefile_image *i, const json_t *tags, struct agx_error **err)
{
    int r = 0;

    for (size_t k = 0; r == 0 && k < json_array_size(tags); k++)
        r = add_name(i, json_string_value(json_array_get(tags, k)), err);
    return r;
}

static int add_docker(struct agx_imagefile *a, const struct index *x, const json_t *item,
                      struct agx_error **err)
{
    const json_t *layers = json_object_get(item, "Layers");
    _cleanup_free_ char *config = NULL;
    struct agx_imagefile_image *i = NULL;
    int r = imagefile_add(a, &i, err);

    if (r < 0 ||
        (r = index_text(x, agx_str_from(json_string_value(json_object_get(item, "Config"))),
                        &config, err)) < 0 ||
        (r = imagefile_set_config(i, &config, err)) < 0 ||
        (r = add_names(i, json_object_get(item, "RepoTags"), err)) < 0)
        return r;
    if (json_array_size(layers) != i->diff_ids.len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "an image of the archive has %zu layers, and %zu in its configuration",
                             json_array_size(layers), i->diff_ids.len);
    for (size_t k = 0; r == 0 && k < i->diff_ids.len; k++) {
        const char *name = json_string_value(json_array_get(layers, k));

        r = name ? imagefile_set_layer(x, &i->layers[k], agx_str_from(name), NULL, err)
                 : no_list("manifest.json", err);
    }
    return r;
}

int imagefile_read_docker(struct agx_imagefile *a, const struct index *x, struct agx_error **err)
{
    _cleanup_json_ json_t *list = NULL;
    int r = 0;

    /* A root file system may have a file of that name too. */
    if (!index_find(x, AGX_STR("manifest.json")) ||
        parse_member(x, "manifest.json", &list, NULL) < 0 || !is_docker_list(list))
        return 0;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = add_docker(a, x, json_array_get(list, i), err);
    return r < 0 ? r : 1;
}

/* ---- OCI layout ---- */

/* A blob by its digest, which is checked; the caller frees the text. */
static int blob_text(const struct index *x, const char *digest, char **ret_text,
                     struct agx_error **err)
{
    char path[AGX_DIGEST_SIZE + 16];
    int r;

    (void)snprintf(path, sizeof(path), "blobs/sha256/%s", digest + strlen("sha256:"));
    r = index_text(x, agx_str_from(path), ret_text, err);
    if (r < 0)
        return r;
    r = agx_descriptor_fits(digest, agx_str_from(*ret_text), err);
    if (r > 0)
        return 0;
    free(AGX_TAKE_PTR(*ret_text));
    if (r < 0)
        return r;
    return agx_error_set(err, AGX_DATA_LOSS, "the archive's blob '%s' has another digest", digest);
}

static void manifest_donep(struct agx_manifest *m)
{
    agx_manifest_done(m);
}

/* The manifest at `digest`; from an index, the one for this platform. */
static int read_manifest(const struct index *x, const char *digest, char **ret_text,
                         struct agx_manifest *ret, struct agx_error **err)
{
    char at[AGX_DIGEST_SIZE];

    (void)snprintf(at, sizeof(at), "%s", digest);
    for (int i = 0; i < 2; i++) {
        _cleanup_(manifest_donep) struct agx_manifest m = { 0 };
        _cleanup_free_ char *text = NULL;
        int r;

        if ((r = blob_text(x, at, &text, err)) < 0 ||
            (r = agx_manifest_parse(&m, agx_str_from(text), &agx_platform_here, err)) < 0)
            return r;
        if (!m.is_index) {
            *ret_text = AGX_TAKE_PTR(text);
            *ret = m;
            m = (struct agx_manifest){ 0 };
            return 0;
        }
        (void)snprintf(at, sizeof(at), "%s", m.chosen.digest);
    }
    return no_list("index.json", err);
}

/* It is attached to another manifest, or is for another platform. */
static bool is_other(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *os = json_string_value(json_object_get(platform, "os"));
    const char *arch = json_string_value(json_object_get(platform, "architecture"));

    return (os && strcmp(os, agx_platform_here.os) != 0) ||
           (arch && strcmp(arch, agx_platform_here.architecture) != 0);
}

/* Some programs write the full name; most only write a tag, which names no image. */
static int add_oci_name(struct agx_imagefile_image *i, const json_t *descriptor,
                        struct agx_error **err)
{
    const json_t *notes = json_object_get(descriptor, "annotations");
    const char *name = json_string_value(json_object_get(notes, "io.containerd.image.name"));

    if (!name) {
        name = json_string_value(json_object_get(notes, "org.opencontainers.image.ref.name"));
        if (!name || !strpbrk(name, ":/"))
            return 0;
    }
    return add_name(i, name, err);
}

static int add_layers(const struct index *x, struct agx_imagefile_image *i,
                      const struct agx_manifest *m, struct agx_error **err)
{
    int r = 0;

    if (m->n_layers != i->diff_ids.len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "an image of the archive has %zu layers, and %zu in its configuration",
                             m->n_layers, i->diff_ids.len);
    for (size_t k = 0; r == 0 && k < m->n_layers; k++) {
        const char *digest = m->layers[k].digest;
        char path[AGX_DIGEST_SIZE + 16];

        (void)snprintf(path, sizeof(path), "blobs/sha256/%s", digest + strlen("sha256:"));
        r = imagefile_set_layer(x, &i->layers[k], agx_str_from(path), digest, err);
    }
    return r;
}

static int add_oci(struct agx_imagefile *a, const struct index *x, const json_t *descriptor,
                   struct agx_error **err)
{
    const char *digest = json_string_value(json_object_get(descriptor, "digest"));
    _cleanup_(manifest_donep) struct agx_manifest m = { 0 };
    _cleanup_free_ char *config = NULL, *manifest = NULL;
    struct agx_imagefile_image *i = NULL;
    int r;

    if (!digest || !agx_digest_is(agx_str_from(digest)))
        return no_list("index.json", err);
    if ((r = read_manifest(x, digest, &manifest, &m, err)) < 0 ||
        (r = blob_text(x, m.config.digest, &config, err)) < 0 ||
        (r = imagefile_add(a, &i, err)) < 0 || (r = imagefile_set_config(i, &config, err)) < 0 ||
        (r = add_oci_name(i, descriptor, err)) < 0)
        return r;
    i->manifest = AGX_TAKE_PTR(manifest);
    return add_layers(x, i, &m, err);
}

int imagefile_read_oci(struct agx_imagefile *a, const struct index *x, struct agx_error **err)
{
    _cleanup_json_ json_t *index = NULL;
    json_t *list = NULL;
    int r;

    if (!index_find(x, AGX_STR("oci-layout")) || !index_find(x, AGX_STR("index.json")))
        return 0;
    if ((r = parse_member(x, "index.json", &index, err)) < 0 ||
        (r = agx_json_get_array(index, "manifests", &list, err)) < 0)
        return r;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        if (!is_other(json_array_get(list, i)))
            r = add_oci(a, x, json_array_get(list, i), err);
    if (r == 0 && a->n_images == 0)
        r = agx_error_set(err, AGX_FAILED_PRECONDITION, "the archive has no image for %s/%s",
                          agx_platform_here.os, agx_platform_here.architecture);
    return r < 0 ? r : 1;
}

/*
 * images_load.c: reads the store's directory into memory.
 *
 * refs.json lists the images. A configuration that it does not list belongs to an incomplete or
 * removed image. If refs.json itself is damaged, it is set aside and every configuration counts:
 * names are lost, but not the images of sandboxes, which are found by id.
 */
#include "image/images_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { REFS_VERSION = 1, NOTE_MAX = 4096 };

static void notice(struct agx_images *s, const char *what, const char *which,
                   const struct agx_error *error)
{
    char text[1024], why[512] = "";

    if (!s->config.notice)
        return;
    if (error)
        (void)agx_error_format(error, why, sizeof(why));
    (void)snprintf(text, sizeof(text), "%s '%s'%s%s", what, which, error ? ": " : "", why);
    s->config.notice(s->config.user, text);
}

/* ---- directories ---- */

/* 0 or negative: the walk ends with that. */
typedef int (*name_fn)(struct agx_images *s, const char *name, void *user, struct agx_error **err);

static int each_name(struct agx_images *s, const char *dir, name_fn fn, void *user,
                     struct agx_error **err)
{
    struct agx_words names = { 0 };
    int fd = openat(s->dirfd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d) {
        r = agx_error_errno(err, errno, "read '%s/%s'", s->dir, dir);
        agx_closep(&fd);
        return r;
    }
    /* First all names: what follows changes the directory. */
    for (const struct dirent *e; r == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = agx_words_add(&names, agx_str_from(e->d_name), err);
    (void)closedir(d);
    for (size_t i = 0; r == 0 && i < names.len; i++)
        r = fn(s, names.items[i], user, err);
    agx_words_done(&names);
    return r;
}

/* "sha256-..." as a digest. */
static bool digest_of_file(const char *name, char ret_digest[AGX_DIGEST_SIZE])
{
    if (strlen(name) != AGX_DIGEST_SIZE - 1)
        return false;
    (void)snprintf(ret_digest, AGX_DIGEST_SIZE, "%s", name);
    if (ret_digest[strlen("sha256")] != '-')
        return false;
    ret_digest[strlen("sha256")] = ':';
    return agx_digest_is(agx_str_from(ret_digest));
}

static int read_json(struct agx_images *s, const char *path, size_t max, json_t **ret,
                     struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(max);
    int r = agx_fd_read_file(s->dirfd, path, &text, err);

    return r < 0 ? r : agx_json_parse(agx_buf_peek(&text), max, AGX_DEPTH_MAX, ret, err);
}

/* Moves a name of `dir` to tmp/, where it is removed. */
static void throw_away(struct agx_images *s, const char *dir, const char *name)
{
    char path[NAME_MAX + 16], temp[AGX_UUID_TEXT_SIZE];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (agx_uuid_new(temp, NULL) == 0)
        (void)!renameat(s->dirfd, path, s->tmpfd, temp);
}

/* The rest of a new refs.json after a crash. */
static int throw_partial(struct agx_images *s, const char *name, void *user, struct agx_error **err)
{
    (void)user;
    (void)err;
    if (strncmp(name, AGX_PATH_TEMP, strlen(AGX_PATH_TEMP)) == 0)
        throw_away(s, ".", name);
    return 0;
}

/* ---- layers ---- */

static int load_layer(struct agx_images *s, const char *name, void *user, struct agx_error **err)
{
    _cleanup_json_ json_t *note = NULL;
    char path[NAME_MAX + 32], diff_id[AGX_DIGEST_SIZE];
    struct agx_error *why = NULL;
    struct layer *l = NULL;
    int64_t size = 0;

    (void)user;
    (void)snprintf(path, sizeof(path), "layers/%s/layer.json", name);
    if (!digest_of_file(name, diff_id) || read_json(s, path, NOTE_MAX, &note, &why) < 0 ||
        agx_json_get_int(note, "size", 0, INT64_MAX, &size, &why) < 0) {
        notice(s, "removed something that is not a layer,", name, why);
        agx_error_free(why);
        throw_away(s, "layers", name);
        return 0;
    }
    if (layer_add(s, diff_id, LAYER_THERE, &l, err) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    l->size = (uint64_t)size;
    return 0;
}

/* ---- images ---- */

static int set_layers(struct agx_images *s, struct agx_image *i, struct agx_error **err)
{
    const struct agx_words *ids = &i->config.diff_ids;
    char path[PATH_MAX], file[AGX_DIGEST_SIZE];
    int r = 0;

    for (size_t k = ids->len; r == 0 && k > 0; k--) {
        const struct layer *l = layer_find(s, ids->items[k - 1]);

        if (!l || l->state != LAYER_THERE)
            return agx_error_set(err, AGX_FAILED_PRECONDITION, "layer '%s' is not in the store",
                                 ids->items[k - 1]);
        i->size += l->size;
        (void)snprintf(path, sizeof(path), "%s/layers/%s/tree", s->dir,
                       agx_digest_file(l->diff_id, file));
        r = agx_words_add(&i->layers, agx_str_from(path), err);
    }
    if (r == 0 && ids->len == 0) {
        (void)snprintf(path, sizeof(path), "%s/empty", s->dir);
        r = agx_words_add(&i->layers, agx_str_from(path), err);
    }
    return r;
}

int images_make(struct agx_images *s, struct agx_str config, const char *digest,
                struct agx_image **ret_image, struct agx_error **err)
{
    _cleanup_(agx_image_unrefp) struct agx_image *i = agx_image_ref(agx_new(struct agx_image));
    char id[AGX_DIGEST_SIZE];
    int r = agx_image_config_parse(&i->config, config, err);

    if (r < 0 || (r = agx_digest_of(config, id, err)) < 0 ||
        (r = agx_text_set(&i->id, id, err)) < 0 ||
        (r = agx_text_set(&i->digest, digest, err)) < 0 || (r = set_layers(s, i, err)) < 0)
        return r;
    i->config_text = agx_str_dup(config);
    if (!i->config_text)
        return agx_error_errno(err, ENOMEM, "keep the configuration of an image");
    *ret_image = AGX_TAKE_PTR(i);
    return 0;
}

static void hold_layers(struct agx_images *s, const struct agx_image *i, int change)
{
    for (size_t k = 0; k < i->config.diff_ids.len; k++)
        layer_find(s, i->config.diff_ids.items[k])->refs += (unsigned)change;
}

int images_put(struct agx_images *s, struct agx_image *i, struct agx_error **err)
{
    int r = agx_map_put(&s->images, agx_str_from(i->id), i, NULL);

    if (r < 0)
        return agx_error_no_memory(err);
    hold_layers(s, i, 1);
    for (size_t k = 0; r == 0 && k < i->names.len; k++)
        r = agx_map_put(&s->names, agx_str_from(i->names.items[k]), i, NULL);
    return r < 0 ? agx_error_no_memory(err) : 0;
}

void images_take(struct agx_images *s, struct agx_image *i)
{
    (void)agx_map_remove(&s->images, agx_str_from(i->id));
    for (size_t k = 0; k < i->names.len; k++)
        (void)agx_map_remove(&s->names, agx_str_from(i->names.items[k]));
    hold_layers(s, i, -1);
}

void images_unname(struct agx_images *s, const char *name)
{
    struct agx_image *i = agx_map_remove(&s->names, agx_str_from(name));

    for (size_t k = 0; i && k < i->names.len; k++)
        if (strcmp(i->names.items[k], name) == 0) {
            free(i->names.items[k]);
            i->names.items[k] = i->names.items[--i->names.len];
            return;
        }
}

int images_name(struct agx_images *s, struct agx_image *i, const char *name, struct agx_error **err)
{
    int r = agx_words_add(&i->names, agx_str_from(name), err);

    if (r == 0 && agx_map_put(&s->names, agx_str_from(name), i, NULL) < 0)
        r = agx_error_no_memory(err);
    return r;
}

/* ---- refs.json ---- */

static json_t *entry_of(const struct agx_image *i, const char *given, bool gets_it)
{
    json_t *entry = json_object(), *names = json_array();
    bool has_it = false;

    for (size_t k = 0; k < i->names.len; k++) {
        bool is_given = given && strcmp(i->names.items[k], given) == 0;

        has_it |= is_given;
        if (!is_given || gets_it)
            (void)json_array_append_new(names, json_string(i->names.items[k]));
    }
    if (gets_it && given && !has_it)
        (void)json_array_append_new(names, json_string(given));
    (void)json_object_set_new(entry, "names", names);
    if (i->digest)
        (void)json_object_set_new(entry, "manifest", json_string(i->digest));
    (void)json_object_set_new(entry, "added_ms", json_integer(i->added_ms));
    return entry;
}

int images_write_refs(struct agx_images *s, const struct agx_image *also, const char *name,
                      struct agx_buf *out, struct agx_error **err)
{
    _cleanup_json_ json_t *root = json_object();
    json_t *images = json_object();
    void *value;

    for (size_t at = 0; agx_map_next(&s->images, &at, NULL, &value);) {
        const struct agx_image *i = value;

        (void)json_object_set_new(images, i->id, entry_of(i, name, i == also));
    }
    if (also && !agx_map_get(&s->images, agx_str_from(also->id)))
        (void)json_object_set_new(images, also->id, entry_of(also, name, true));
    (void)json_object_set_new(root, "version", json_integer(REFS_VERSION));
    (void)json_object_set_new(root, "images", images);
    return agx_json_write(root, out, err);
}

/* Reads refs.json's entry of one image. */
static int read_entry(struct agx_images *s, struct agx_image *i, const json_t *entry,
                      struct agx_error **err)
{
    json_t *names = NULL;
    struct agx_str digest = { 0 };
    int r = agx_json_get_array(entry, "names", &names, err);

    if (r == 0)
        r = agx_json_get_int(entry, "added_ms", 0, INT64_MAX, &i->added_ms, err);
    if (r == 0 && agx_json_has(entry, "manifest")) {
        r = agx_json_get_str(entry, "manifest", &digest, err);
        if (r == 0 && agx_digest_is(digest))
            r = agx_text_set(&i->digest, digest.ptr, err);
    }
    for (size_t k = 0; r == 0 && k < json_array_size(names); k++) {
        const char *name = json_string_value(json_array_get(names, k));

        if (name && !agx_map_get(&s->names, agx_str_from(name)))
            r = agx_words_add(&i->names, agx_str_from(name), err);
    }
    return r;
}

/* ---- configurations ---- */

struct found {
    const json_t *images; /* of refs.json; NULL: it is damaged */
};

static int make_found(struct agx_images *s, const char *name, const char *id, const json_t *entry,
                      struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    _cleanup_(agx_image_unrefp) struct agx_image *i = NULL;
    char path[NAME_MAX + 16];
    int r;

    (void)snprintf(path, sizeof(path), "configs/%s", name);
    if ((r = agx_fd_read_file(s->dirfd, path, &text, err)) < 0 ||
        (r = images_make(s, agx_buf_peek(&text), NULL, &i, err)) < 0)
        return r;
    if (strcmp(i->id, id) != 0)
        return agx_error_set(err, AGX_DATA_LOSS, "its configuration has another digest");
    if (entry && (r = read_entry(s, i, entry, err)) < 0)
        return r;
    r = images_put(s, i, err);
    if (r == 0)
        i = NULL; /* owned by the store now */
    return r;
}

static int load_config(struct agx_images *s, const char *name, void *user, struct agx_error **err)
{
    const struct found *f = user;
    const json_t *entry = NULL;
    struct agx_error *why = NULL;
    char id[AGX_DIGEST_SIZE] = "";
    bool is_known = digest_of_file(name, id);

    (void)err;
    if (is_known && f->images) {
        entry = json_object_get(f->images, id);
        is_known = entry != NULL;
    }
    if (is_known && make_found(s, name, id, entry, &why) == 0)
        return 0;
    if (why)
        notice(s, "removed an incomplete image,", id, why);
    agx_error_free(why);
    throw_away(s, "configs", name);
    return 0;
}

static int check_manifest(struct agx_images *s, const char *name, void *user,
                          struct agx_error **err)
{
    struct agx_image *i;
    char digest[AGX_DIGEST_SIZE];

    (void)user;
    (void)err;
    if (digest_of_file(name, digest))
        for (size_t at = 0; (i = agx_images_next(s, &at));)
            if (agx_text_eq(i->digest, digest))
                return 0;
    throw_away(s, "manifests", name);
    return 0;
}

/* NULL and 0 when it is damaged; it is renamed then. */
static int load_refs(struct agx_images *s, json_t **ret_refs, struct agx_error **err)
{
    _cleanup_json_ json_t *refs = NULL;
    struct agx_error *why = NULL;
    json_t *images = NULL;
    int64_t version;
    char aside[64];

    if (read_json(s, "refs.json", AGX_IMAGES_REFS_MAX, &refs, &why) == 0 &&
        agx_json_get_int(refs, "version", REFS_VERSION, REFS_VERSION, &version, &why) == 0 &&
        agx_json_get_object(refs, "images", &images, &why) == 0) {
        *ret_refs = AGX_TAKE_PTR(refs);
        return 0;
    }
    if (why->code == AGX_NOT_FOUND) { /* a new store */
        agx_error_free(why);
        *ret_refs = json_pack("{s:i,s:{}}", "version", REFS_VERSION, "images");
        return *ret_refs ? 0 : agx_error_no_memory(err);
    }
    (void)snprintf(aside, sizeof(aside), "refs.json.damaged-%" PRId64, agx_clock_wall_ns());
    (void)!renameat(s->dirfd, "refs.json", s->dirfd, aside);
    notice(s, "images have lost their names; the damaged list is now", aside, why);
    agx_error_free(why);
    return 0;
}

/* ---- all of it ---- */

static int add_name(struct agx_images *s, const char *name, void *user, struct agx_error **err)
{
    (void)s;
    return agx_words_add(user, agx_str_from(name), err);
}

static int make_scratch(struct agx_images *s, struct agx_error **err)
{
    return images_make(
        s, AGX_STR("{\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}}"), NULL,
        &s->scratch, err);
}

/* Removes unused layers, and then everything in tmp/. */
static int clean(struct agx_images *s, struct agx_error **err)
{
    struct agx_words trash = { 0 };
    char file[AGX_DIGEST_SIZE];
    void *value;
    size_t at = 0;
    int r;

    while (agx_map_next(&s->layers, &at, NULL, &value)) {
        struct layer *l = value;

        if (l->refs > 0)
            continue;
        throw_away(s, "layers", agx_digest_file(l->diff_id, file));
        layer_drop(s, l);
        at = 0; /* the map has changed */
    }
    r = each_name(s, "tmp", add_name, &trash, err);
    if (r == 0 && trash.len > 0)
        images_trash(s, &trash);
    agx_words_done(&trash);
    return r;
}

int images_load(struct agx_images *s, struct agx_error **err)
{
    _cleanup_json_ json_t *refs = NULL;
    struct found f = { 0 };
    int r = make_scratch(s, err);

    if (r < 0 || (r = each_name(s, ".", throw_partial, NULL, err)) < 0 ||
        (r = each_name(s, "layers", load_layer, NULL, err)) < 0 ||
        (r = load_refs(s, &refs, err)) < 0)
        return r;
    f.images = refs ? json_object_get(refs, "images") : NULL;
    if ((r = each_name(s, "configs", load_config, &f, err)) < 0 ||
        (r = each_name(s, "manifests", check_manifest, NULL, err)) < 0)
        return r;
    return clean(s, err);
}

/*
 * imagefile.c: reads a tar once and decides what it is.
 *
 * The first pass records where each file's header is in the uncompressed tar, and the tar's digest.
 * For a root file system, that digest is the layer's, and the file itself is the blob. For an
 * archive of images, the layers are members, which are read in place: a compressed archive is first
 * written out uncompressed.
 */
#include "image/imagefile_internal.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/uuid.h"
#include "image/image.h"
#include "image/manifest.h"
#include "image/tarstream.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { LINKS_MAX = 8 }; /* in a chain; `docker save` writes one */

/* ---- names ---- */

/* Appends the components of `path` to the name in `out`, resolving "." and "..". False: it leads
 * out, or is too long. */
static bool imagefile_join(char out[PATH_MAX], struct agx_str path)
{
    struct agx_str part;
    size_t len = strlen(out);

    while (agx_str_split(&path, '/', &part)) {
        if (part.len == 0 || agx_str_eq(part, AGX_STR(".")))
            continue;
        if (agx_str_eq(part, AGX_STR(".."))) {
            if (len == 0)
                return false;
            while (len > 0 && out[--len] != '/')
                ;
        } else {
            if (len + part.len + 2 > PATH_MAX)
                return false;
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, part.ptr, part.len);
            len += part.len;
        }
        out[len] = '\0';
    }
    return true;
}

const struct member *index_find(const struct index *x, struct agx_str name)
{
    char path[PATH_MAX] = "";
    const struct member *m;

    if (!imagefile_join(path, name))
        return NULL;
    for (int i = 0; i < LINKS_MAX; i++) {
        m = agx_map_get(&x->members, agx_str_from(path));
        if (!m || !m->link)
            return m;
        (void)snprintf(path, sizeof(path), "%s", m->link);
    }
    return NULL;
}

/* ---- the index ---- */

static int file_size(int fd, uint64_t *ret, struct agx_error **err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "look at the archive");
    *ret = (uint64_t)st.st_size;
    return 0;
}

static void member_free(struct member *m)
{
    free(m->link);
    free(m);
}

static void index_done(struct index *x)
{
    void *value;

    for (size_t at = 0; agx_map_next(&x->members, &at, NULL, &value);)
        member_free(value);
    agx_map_done(&x->members);
}

/* The target name of a link: a symlink is relative to its own directory, a hard link to the root.
 * NULL: outside the tar. */
static char *link_of(const char *name, const char *symlink, const char *hardlink)
{
    char path[PATH_MAX] = "";
    const char *slash = strrchr(name, '/');

    if (symlink && slash && !imagefile_join(path, agx_str_bytes(name, (size_t)(slash - name))))
        return NULL;
    return imagefile_join(path, agx_str_from(symlink ? symlink : hardlink)) ? strdup(path) : NULL;
}

static int index_add(struct index *x, struct agx_tarstream *t, struct archive_entry *e,
                     struct agx_error **err)
{
    const char *symlink = archive_entry_symlink(e), *hardlink = archive_entry_hardlink(e);
    const char *text = archive_entry_pathname(e);
    char name[PATH_MAX] = "";
    struct member *m;
    void *old = NULL;

    /* An archive of images has no such member: this is a root file system's. The same holds for
     * more members than the limit. */
    if (!text || !imagefile_join(name, agx_str_from(text)) ||
        x->members.len >= AGX_IMPORT_MEMBERS_MAX ||
        (archive_entry_filetype(e) != AE_IFREG && !symlink && !hardlink))
        return 0;
    m = calloc(1, sizeof(*m));
    if (!m)
        return agx_error_no_memory(err);
    m->offset = agx_tarstream_offset(t);
    m->size = (uint64_t)AGX_MAX(archive_entry_size(e), 0);
    if (symlink || hardlink)
        m->link = link_of(name, symlink, hardlink);
    if (((symlink || hardlink) && !m->link) ||
        agx_map_put(&x->members, agx_str_from(name), m, &old) < 0)
        member_free(m);
    if (old)
        member_free(old);
    return 0;
}

/* Reads the whole tar. */
static int index_read(struct index *x, struct agx_error **err)
{
    const struct agx_blob_place place = { .fd = x->p->fd };
    _cleanup_(agx_blob_closep) struct agx_blob *blob = NULL;
    _cleanup_(agx_tarstream_closep) struct agx_tarstream *t = NULL;
    struct agx_unpack_params p = { .read = agx_blob_read,
                                   .limits = x->p->limits,
                                   .stop = x->p->stop };
    struct archive_entry *e = NULL;
    uint64_t n = 0;
    int r = agx_blob_open(&place, &blob, err);

    p.user = blob;
    p.limits.bytes = x->p->max_bytes;
    if (r == 0)
        r = agx_tarstream_open(&p, &t, err);
    while (r >= 0 && (r = agx_tarstream_next(t, &e, err)) > 0) {
        if (++n > p.limits.entries)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                                 "the archive has more than %llu entries, the limit",
                                 (unsigned long long)p.limits.entries);
        r = index_add(x, t, e, err);
    }
    if (r == 0 && n == 0)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "the archive is empty");
    if (r < 0)
        return r;
    x->is_packed = agx_tarstream_is_packed(t);
    return agx_tarstream_digest(t, x->digest, err);
}

/* ---- content ---- */

static int read_text(const struct agx_blob_place *place, struct agx_buf *out,
                     struct agx_error **err)
{
    _cleanup_(agx_blob_closep) struct agx_blob *blob = NULL;
    char piece[4096];
    ssize_t n = 1;
    int r = agx_blob_open(place, &blob, err);

    while (r == 0 && n > 0) {
        n = agx_blob_read(blob, piece, sizeof(piece), err);
        if (n < 0)
            return (int)n;
        if (memchr(piece, 0, (size_t)n))
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "it is not text");
        if (agx_buf_append(out, agx_str_bytes(piece, (size_t)n)) < 0)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "it is too long");
    }
    return r;
}

int index_text(const struct index *x, struct agx_str name, char **ret_text, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    const struct member *m = index_find(x, name);
    int r;

    if (!m)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the archive lacks '%.*s'",
                             AGX_STR_ARG(name));
    r = read_text(&(struct agx_blob_place){ x->fd, true, m->offset }, &text, err);
    if (r < 0)
        return agx_error_wrap(err, r, "read '%.*s' of the archive", AGX_STR_ARG(name));
    *ret_text = agx_buf_take_cstr(&text);
    return *ret_text ? 0 : agx_error_no_memory(err);
}

/* Writes the uncompressed tar to an unnamed file. */
static int unpack_plain(struct index *x, int *ret_fd, struct agx_error **err)
{
    const struct agx_blob_place place = { .fd = x->p->fd };
    _cleanup_(agx_blob_closep) struct agx_blob *blob = NULL;
    char name[AGX_UUID_TEXT_SIZE];
    int r = agx_uuid_new(name, err);

    if (r < 0 || (r = agx_blob_open(&place, &blob, err)) < 0)
        return r;
    *ret_fd = openat(x->p->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*ret_fd < 0 || unlinkat(x->p->tmp_fd, name, 0) < 0)
        return agx_error_errno(err, errno, "make a file for the plain archive");
    return agx_tarstream_copy(
        &(struct agx_unpack_params){
            .read = agx_blob_read, .user = blob, .limits = x->p->limits, .stop = x->p->stop },
        *ret_fd, err);
}

/* ---- images ---- */

int imagefile_add(struct agx_imagefile *a, struct agx_imagefile_image **ret_image,
                  struct agx_error **err)
{
    int r;

    if (a->n_images >= AGX_IMPORT_IMAGES_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the archive has more than %d images",
                             AGX_IMPORT_IMAGES_MAX);
    r = agx_text_grow((void **)&a->images, a->n_images, sizeof(*a->images), err);
    if (r < 0)
        return r;
    *ret_image = &a->images[a->n_images++];
    **ret_image = (struct agx_imagefile_image){ 0 };
    return 0;
}

int imagefile_set_config(struct agx_imagefile_image *i, char **take_config, struct agx_error **err)
{
    struct agx_image_config config;
    int r = agx_image_config_parse(&config, agx_str_from(*take_config), err);

    if (r < 0)
        return r;
    r = agx_words_copy(&i->diff_ids, &config.diff_ids, err);
    agx_image_config_done(&config);
    if (r < 0)
        return r;
    i->layers = calloc(i->diff_ids.len + 1, sizeof(*i->layers));
    if (!i->layers)
        return agx_error_no_memory(err);
    i->config = AGX_TAKE_PTR(*take_config);
    return 0;
}

int imagefile_set_layer(const struct index *x, struct agx_imagefile_layer *l, struct agx_str name,
                        const char *digest, struct agx_error **err)
{
    const struct member *m = index_find(x, name);

    if (!m)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the archive lacks the layer '%.*s'",
                             AGX_STR_ARG(name));
    l->place = (struct agx_blob_place){ x->fd, true, m->offset };
    l->size = m->size;
    (void)snprintf(l->digest, sizeof(l->digest), "%s", agx_text(digest));
    return 0;
}

/* The same files give the same image: no current time goes in. */
static int read_rootfs(struct agx_imagefile *a, const struct index *x, struct agx_error **err)
{
    _cleanup_free_ char *config = NULL;
    struct agx_imagefile_image *i = NULL;
    int r = imagefile_add(a, &i, err);

    if (r < 0)
        return r;
    if (asprintf(&config,
                 "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{},"
                 "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
                 agx_platform_here.architecture, x->digest) < 0)
        return agx_error_no_memory(err);
    r = imagefile_set_config(i, &config, err);
    if (r == 0)
        i->layers[0] = (struct agx_imagefile_layer){ .place = { .fd = x->p->fd }, .size = x->size };
    return r;
}

static int read_images(struct agx_imagefile *a, struct index *x, struct agx_error **err)
{
    int r;

    if (!agx_map_get(&x->members, AGX_STR("manifest.json")) &&
        !agx_map_get(&x->members, AGX_STR("oci-layout")))
        return 0;
    if (x->is_packed) {
        r = unpack_plain(x, &a->plain_fd, err);
        if (r < 0)
            return r;
        x->fd = a->plain_fd;
    }
    r = imagefile_read_docker(a, x, err);
    return r == 0 ? imagefile_read_oci(a, x, err) : r;
}

int agx_imagefile_read(struct agx_imagefile *a, const struct agx_imagefile_params *p,
                       struct agx_error **err)
{
    _cleanup_(index_done) struct index x = { .p = p, .fd = p->fd };
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    *a = (struct agx_imagefile){ .plain_fd = -1 };
    agx_map_init(&x.members, seed);
    if (r == 0)
        r = file_size(p->fd, &x.size, err);
    if (r == 0)
        r = index_read(&x, err);
    if (r == 0)
        r = read_images(a, &x, err);
    if (r == 0) /* no list of images */
        r = read_rootfs(a, &x, err);
    if (r < 0)
        agx_imagefile_done(a);
    return r < 0 ? r : 0;
}

void agx_imagefile_done(struct agx_imagefile *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_images; i++) {
        free(a->images[i].config);
        free(a->images[i].manifest);
        agx_words_done(&a->images[i].names);
        agx_words_done(&a->images[i].diff_ids);
        free(a->images[i].layers);
    }
    free(a->images);
    agx_closep(&a->plain_fd);
    *a = (struct agx_imagefile){ .plain_fd = -1 };
}

/* images.h: an image store in a directory of the test, and helpers to fill it. */
#ifndef AGX_TESTS_IMAGES_H
#define AGX_TESTS_IMAGES_H

#include "base/fd.h"
#include "base/path.h"
#include "image/ingest.h"
#include "tests/support/digest.h"
#include "tests/support/loop.h"
#include "tests/support/tar.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

struct test_images {
    struct agx_loop *loop;
    char dir[32];
    int dirfd;
    struct agx_images_config config;
    char config_dir[48];
    struct agx_images *images;
    char notices[2048]; /* the warnings of opening the store */
    /* The result of the last operation. */
    bool is_done;
    struct agx_error *error;
    struct agx_image *image;
    char removed[512]; /* names and ids, each followed by a blank */
    uint64_t removed_bytes;
};

static inline void test_images_notice(void *user, const char *text)
{
    struct test_images *t = user;

    strncat(t->notices, text, sizeof(t->notices) - strlen(t->notices) - 1);
}

static inline void test_images_open(struct test_images *t)
{
    char text[512];
    struct agx_error *err = NULL;

    if (agx_images_open(t->loop, &t->config, &t->images, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
}

static inline struct test_images *test_images_new(void)
{
    struct test_images *t = calloc(1, sizeof(*t));

    ASSERT_NOT_NULL(t);
    t->loop = test_loop_open();
    snprintf(t->dir, sizeof(t->dir), "/tmp/agx-images-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(t->dir));
    t->dirfd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(t->config_dir, sizeof(t->config_dir), "%s/images", t->dir);
    t->config = (struct agx_images_config)AGX_IMAGES_CONFIG_INIT;
    t->config.dir = t->config_dir;
    t->config.notice = test_images_notice;
    t->config.user = t;
    test_images_open(t);
    return t;
}

static inline void test_images_done(void *user, struct agx_error *error)
{
    struct test_images *t = user;

    ASSERT_FALSE(t->is_done);
    t->is_done = true;
    t->error = error;
}

static inline void test_images_clear(struct test_images *t)
{
    t->is_done = false;
    t->error = agx_error_free(t->error);
    t->image = agx_image_unref(t->image);
    t->removed[0] = '\0';
}

/* Runs until no operation is active; returns the code of the last one. */
static inline int test_images_run(struct test_images *t)
{
    test_loop_run(t->loop);
    ASSERT_TRUE(t->is_done);
    return t->error ? -(int)t->error->code : 0;
}

static inline void test_images_stop(struct test_images *t)
{
    test_images_clear(t);
    agx_images_stop(t->images, test_images_done, t);
    ASSERT_OK(test_images_run(t));
    t->images = NULL;
}

static inline void test_images_reopen(struct test_images *t)
{
    test_images_stop(t);
    t->notices[0] = '\0';
    test_images_open(t);
    test_loop_run(t->loop); /* discarded files are removed then */
}

static inline unsigned test_images_count(struct test_images *t, const char *path)
{
    char whole[256];
    DIR *d;
    unsigned n = 0;

    snprintf(whole, sizeof(whole), "%s/%s", t->config_dir, path);
    d = opendir(whole);
    ASSERT_NOT_NULL(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Asserts that tmp/ is empty. */
static inline void test_images_free(struct test_images *t)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (t->images)
        test_images_stop(t);
    ASSERT_UINT(0, test_images_count(t, "tmp"));
    test_images_clear(t);
    test_loop_close(t->loop);
    close(t->dirfd);
    ASSERT_OK(agx_path_remove_tree(tmp, t->dir + strlen("/tmp/"), NULL));
    close(tmp);
    free(t);
}

/* ---- layers and images ---- */

/* A tar with one file, plain. */
static inline struct test_tar test_images_tar(const char *name, const char *text)
{
    struct test_tar tar = test_tar_new();

    test_tar_add(&tar, (struct test_tar_entry){ .name = name, .data = agx_str_from(text) });
    test_tar_end(&tar);
    return tar;
}

static inline struct agx_spool *test_images_spool(struct test_images *t, struct agx_str bytes)
{
    struct agx_spool *sp = NULL;

    ASSERT_OK(agx_spool_open(t->images, UINT64_MAX, NULL, NULL, &sp, NULL));
    ASSERT_OK(agx_spool_write(sp, bytes, NULL));
    return sp;
}

/* Adds the bytes as a layer with this diff id. */
static inline int test_images_layer(struct test_images *t, struct agx_ingest *in,
                                    struct agx_str bytes, const char *diff_id)
{
    const struct agx_ingest_layer layer = { .diff_id = agx_str_from(diff_id) };
    struct agx_spool *sp = test_images_spool(t, bytes);

    test_images_clear(t);
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, test_images_done, t, NULL));
    ASSERT_NULL(sp);
    return test_images_run(t);
}

static inline void test_images_got(void *user, struct agx_image *image, struct agx_error *error)
{
    struct test_images *t = user;

    t->image = image;
    test_images_done(t, error);
}

static inline int test_images_add(struct test_images *t, struct agx_ingest *in, const char *config,
                                  const char *name)
{
    const struct agx_ingest_image parts = { .config = agx_str_from(config),
                                            .manifest = AGX_STR("{\"schemaVersion\":2}"),
                                            .name = agx_str_from(name) };

    test_images_clear(t);
    ASSERT_OK(agx_ingest_image(in, &parts, test_images_got, t, NULL));
    return test_images_run(t);
}

/* An image of one layer with one file. */
static inline void test_images_make(struct test_images *t, const char *file, const char *text,
                                    const char *name)
{
    struct test_tar tar = test_images_tar(file, text);
    struct agx_ingest *in = agx_ingest_new(t->images);
    char diff_id[AGX_DIGEST_SIZE], config[256];

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    snprintf(config, sizeof(config),
             "{\"os\":\"linux\",\"config\":{\"User\":\"%s\"},\"rootfs\":{\"diff_ids\":[\"%s\"]}}",
             text, diff_id);
    if (!agx_ingest_has(in, agx_str_from(diff_id)))
        ASSERT_OK(test_images_layer(t, in, agx_buf_peek(&tar.bytes), diff_id));
    ASSERT_OK(test_images_add(t, in, config, name));
    agx_ingest_free(in);
    test_loop_run(t->loop);
    test_tar_done(&tar);
}

/* The image with this name, or NULL. Borrowed. */
static inline struct agx_image *test_images_find(struct test_images *t, const char *ref)
{
    struct agx_image *i = NULL;

    if (agx_images_find(t->images, agx_str_from(ref), &i, NULL) < 0)
        return NULL;
    agx_image_unref(i);
    return i;
}

/* A file in one of the image's layers. */
static inline bool test_images_has_file(const struct agx_image *i, size_t layer, const char *path)
{
    char whole[512];

    ASSERT_TRUE(layer < i->layers.len);
    snprintf(whole, sizeof(whole), "%s/%s", i->layers.items[layer], path);
    return access(whole, F_OK) == 0;
}

static inline void test_images_removed(void *user, const struct agx_images_removed *removed,
                                       struct agx_error *error)
{
    struct test_images *t = user;

    for (size_t i = 0; i < removed->names.len; i++)
        snprintf(t->removed + strlen(t->removed), sizeof(t->removed) - strlen(t->removed), "%s ",
                 removed->names.items[i]);
    for (size_t i = 0; i < removed->ids.len; i++)
        snprintf(t->removed + strlen(t->removed), sizeof(t->removed) - strlen(t->removed), "%s ",
                 removed->ids.items[i]);
    t->removed_bytes = removed->bytes;
    test_images_done(t, error);
}

static inline int test_images_remove(struct test_images *t, const char *ref)
{
    test_images_clear(t);
    agx_images_remove(t->images, agx_str_from(ref), test_images_removed, t);
    ASSERT_FALSE(t->is_done);
    return test_images_run(t);
}

static inline int test_images_prune(struct test_images *t)
{
    test_images_clear(t);
    agx_images_prune(t->images, test_images_removed, t);
    ASSERT_FALSE(t->is_done);
    return test_images_run(t);
}

#endif

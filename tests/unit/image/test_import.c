#include "image/import.h"
#include "tests/support/images.h"

/* An import, and what it gave. */
struct trial {
    struct test_images *t;
    struct agx_import *import;
    bool is_done;
    struct agx_error *error;
    struct agx_image *images[8];
    size_t n;
    struct agx_pull last; /* progress */
    unsigned n_told;
    bool cancel_when_told;
};

static void on_done(void *user, struct agx_image *const *images, size_t n, struct agx_error *error)
{
    struct trial *i = user;

    ASSERT_FALSE(i->is_done);
    ASSERT_TRUE(n <= 8);
    i->is_done = true;
    i->error = error;
    i->import = NULL;
    for (i->n = 0; i->n < n; i->n++)
        i->images[i->n] = agx_image_ref(images[i->n]);
}

static void on_progress(void *user, const struct agx_pull *progress)
{
    struct trial *i = user;

    i->last = *progress;
    i->last.image = NULL;
    i->n_told++;
    if (i->cancel_when_told)
        agx_import_cancel(i->import);
}

static void trial_start(struct trial *i, const char *name)
{
    const struct agx_import_params p = { .name = agx_str_from(name),
                                         .progress = on_progress,
                                         .done = on_done };

    ASSERT_OK(agx_import_start(i->t->images, &p, i, &i->import, NULL));
}

static void trial_clear(struct trial *i)
{
    for (size_t k = 0; k < i->n; k++)
        agx_image_unref(i->images[k]);
    agx_error_free(i->error);
    *i = (struct trial){ .t = i->t, .cancel_when_told = i->cancel_when_told };
}

/* The whole of an import. The tar is ended and gone afterwards. */
static int trial_run(struct trial *i, struct test_tar *tar, const char *name)
{
    trial_clear(i);
    trial_start(i, name);
    for (size_t at = 0; at < tar->bytes.len; at += 7000)
        ASSERT_OK(agx_import_write(
            i->import,
            agx_str_bytes(tar->bytes.data + at, AGX_MIN((size_t)7000, tar->bytes.len - at)), NULL));
    agx_import_end(i->import);
    ASSERT_FALSE(i->is_done);
    test_loop_run(i->t->loop);
    ASSERT_TRUE(i->is_done);
    test_tar_done(tar);
    *tar = test_tar_new();
    return i->error ? -(int)i->error->code : 0;
}

static struct trial trial_new(void)
{
    return (struct trial){ .t = test_images_new() };
}

static void trial_free(struct trial *i)
{
    trial_clear(i);
    test_images_free(i->t);
}

/* The import fails so, and nothing is left of it. */
static void trial_refuses(struct test_tar *tar, const char *name, enum agx_code code,
                          const char *words)
{
    struct trial i = trial_new();

    ASSERT_CODE(code, trial_run(&i, tar, name));
    ASSERT_MESSAGE(i.error, words);
    ASSERT_UINT(0, i.n);
    ASSERT_UINT(0, test_images_count(i.t, "layers"));
    ASSERT_UINT(0, test_images_count(i.t, "configs"));
    ASSERT_UINT(0, test_images_count(i.t, "tmp"));
    trial_free(&i);
}

/* ---- what is imported ---- */

static void add_text(struct test_tar *tar, const char *name, const char *text)
{
    test_tar_add(tar, (struct test_tar_entry){ .name = name, .data = agx_str_from(text) });
}

static void add_tar(struct test_tar *tar, const char *name, const struct test_tar *inner)
{
    test_tar_add(tar, (struct test_tar_entry){ .name = name, .data = agx_buf_peek(&inner->bytes) });
}

/* A configuration of layers that are given by their tars. */
static void config_of(char out[512], const char *user, const struct test_tar *a,
                      const struct test_tar *b)
{
    char one[AGX_DIGEST_SIZE], two[AGX_DIGEST_SIZE] = "";

    test_digest_of(agx_buf_peek(&a->bytes), one);
    if (b)
        test_digest_of(agx_buf_peek(&b->bytes), two);
    snprintf(out, 512,
             "{\"os\":\"linux\",\"config\":{\"User\":\"%s\"},"
             "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"%s%s%s]}}",
             user, one, b ? ",\"" : "", two, b ? "\"" : "");
}

/* As `docker save` writes it: two layers. */
static struct test_tar docker_archive(const char *tags)
{
    struct test_tar tar = test_tar_new();
    struct test_tar a = test_images_tar("low", "one"), b = test_images_tar("high", "two");
    char config[512], manifest[512];

    config_of(config, "me", &a, &b);
    add_text(&tar, "c.json", config);
    add_tar(&tar, "1/layer.tar", &a);
    add_tar(&tar, "2/layer.tar", &b);
    snprintf(manifest, sizeof(manifest),
             "[{\"Config\":\"c.json\",\"RepoTags\":%s,"
             "\"Layers\":[\"1/layer.tar\",\"2/layer.tar\"]}]",
             tags);
    add_text(&tar, "manifest.json", manifest);
    test_tar_end(&tar);
    test_tar_done(&a);
    test_tar_done(&b);
    return tar;
}

TEST(import_of_a_docker_archive_brings_its_image_under_its_names)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("[\"one:x\",\"registry:5000/two:y\"]");

    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_UINT(1, i.n);
    ASSERT_TRUE(i.images[0] == test_images_find(i.t, "one:x"));
    ASSERT_TRUE(i.images[0] == test_images_find(i.t, "registry:5000/two:y"));
    ASSERT_CSTR("me", i.images[0]->config.user);
    ASSERT_UINT(2, i.images[0]->layers.len);
    ASSERT_TRUE(test_images_has_file(i.images[0], 0, "high")); /* the top one first */
    ASSERT_TRUE(test_images_has_file(i.images[0], 1, "low"));
    ASSERT_UINT(2, i.last.layers_done);
    ASSERT_UINT(2, i.last.layers_total);
    ASSERT_UINT(i.last.bytes_total, i.last.bytes_done);
    ASSERT_UINT(0, test_images_count(i.t, "tmp"));
    trial_free(&i);
}

TEST(import_with_a_name_uses_that_alone)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("[\"one:x\"]");

    ASSERT_OK(trial_run(&i, &tar, "mine"));
    ASSERT_NOT_NULL(test_images_find(i.t, "mine:latest"));
    ASSERT_NULL(test_images_find(i.t, "one:x"));
    trial_free(&i);
}

TEST(import_of_an_archive_without_names_brings_an_image_without)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("null");

    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_UINT(0, i.images[0]->names.len);
    tar = docker_archive("[\"<none>:<none>\"]");
    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_UINT(0, i.images[0]->names.len);
    trial_free(&i);
}

TEST(import_of_a_compressed_archive_is_the_same)
{
    static int (*const filters[])(struct archive *) = { archive_write_add_filter_gzip,
                                                        archive_write_add_filter_zstd,
                                                        archive_write_add_filter_xz };

    for (size_t k = 0; k < AGX_ARRAY_LEN(filters); k++) {
        struct trial i = trial_new();
        struct test_tar tar = docker_archive("[\"one:x\"]");

        test_tar_pack(&tar, filters[k]);
        ASSERT_OK(trial_run(&i, &tar, NULL));
        ASSERT_TRUE(test_images_has_file(test_images_find(i.t, "one:x"), 0, "high"));
        ASSERT_UINT(0, test_images_count(i.t, "tmp"));
        trial_free(&i);
    }
}

TEST(import_of_what_is_there_already_unpacks_nothing)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("[\"one:x\"]");
    const struct agx_image *first;

    ASSERT_OK(trial_run(&i, &tar, NULL));
    first = test_images_find(i.t, "one:x");
    tar = docker_archive("[\"again\"]");
    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_TRUE(first == test_images_find(i.t, "again"));
    ASSERT_UINT(2, first->names.len);
    ASSERT_UINT(2, test_images_count(i.t, "layers"));
    trial_free(&i);
}

TEST(import_follows_links_between_layers_of_the_archive)
{
    struct trial i = trial_new();
    struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one");
    char config[512];

    config_of(config, "me", &a, &a);
    add_text(&tar, "c.json", config);
    add_text(&tar, "manifest.json",
             "[{\"Config\":\"c.json\",\"RepoTags\":[\"x\"],\"Layers\":[\"1/l.tar\",\"2/l.tar\"]}]");
    add_tar(&tar, "1/l.tar", &a);
    test_tar_add(&tar,
                 (struct test_tar_entry){ .name = "2/l.tar", .type = '2', .link = "../1/l.tar" });
    test_tar_end(&tar);
    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_UINT(2, test_images_find(i.t, "x")->layers.len);
    test_tar_done(&a);
    test_tar_done(&tar);
    trial_free(&i);
}

/* An OCI layout with one image; `platform` of its descriptor, or "". */
static struct test_tar oci_layout(const char *platform, const char *annotations)
{
    struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one"), packed = test_tar_new();
    char config[512], manifest[768], index[768], path[128];
    char layer[AGX_DIGEST_SIZE], conf[AGX_DIGEST_SIZE], mani[AGX_DIGEST_SIZE];

    config_of(config, "me", &a, NULL);
    ASSERT_OK(agx_buf_append(&packed.bytes, agx_buf_peek(&a.bytes)));
    test_tar_pack(&packed, archive_write_add_filter_gzip);
    test_digest_of(agx_buf_peek(&packed.bytes), layer);
    test_digest_of(agx_str_from(config), conf);
    snprintf(manifest, sizeof(manifest),
             "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
             "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
             "\"digest\":\"%s\",\"size\":%zu},\"layers\":[{\"mediaType\":"
             "\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"%s\",\"size\":%zu}]}",
             conf, strlen(config), layer, packed.bytes.len);
    test_digest_of(agx_str_from(manifest), mani);
    snprintf(index, sizeof(index),
             "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
             "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"%s\",\"size\":%zu%s%s}]}",
             mani, strlen(manifest), platform, annotations);
    add_text(&tar, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
    add_text(&tar, "index.json", index);
    snprintf(path, sizeof(path), "blobs/sha256/%s", mani + strlen("sha256:"));
    add_text(&tar, path, manifest);
    snprintf(path, sizeof(path), "blobs/sha256/%s", conf + strlen("sha256:"));
    add_text(&tar, path, config);
    snprintf(path, sizeof(path), "blobs/sha256/%s", layer + strlen("sha256:"));
    add_tar(&tar, path, &packed);
    test_tar_end(&tar);
    test_tar_done(&a);
    test_tar_done(&packed);
    return tar;
}

TEST(import_of_an_oci_layout_brings_its_image_with_its_manifest)
{
    struct trial i = trial_new();
    struct test_tar tar = oci_layout(
        "", ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"registry:5000/a:b\"}");

    ASSERT_OK(trial_run(&i, &tar, NULL));
    ASSERT_UINT(1, i.n);
    ASSERT_NOT_NULL(i.images[0]->digest);
    ASSERT_TRUE(i.images[0] == test_images_find(i.t, "registry:5000/a:b"));
    ASSERT_TRUE(test_images_has_file(i.images[0], 0, "a"));
    /* A tag alone is no name. */
    tar = oci_layout("", ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"latest\"}");
    ASSERT_OK(trial_run(&i, &tar, "given"));
    ASSERT_NOT_NULL(test_images_find(i.t, "given"));
    ASSERT_NULL(test_images_find(i.t, "latest"));
    trial_free(&i);
}

TEST(import_of_an_oci_layout_for_another_platform_says_so)
{
    struct test_tar tar =
        oci_layout(",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}", "");

    trial_refuses(&tar, NULL, AGX_FAILED_PRECONDITION, "has no image for linux/");
}

TEST(import_of_a_root_file_system_is_an_image_of_one_layer)
{
    struct trial i = trial_new();
    char id[AGX_DIGEST_SIZE];

    for (int packed = 0; packed < 2; packed++) {
        struct test_tar tar = test_tar_new();

        test_tar_add(&tar, (struct test_tar_entry){ .name = "./", .type = '5', .mode = 0755 });
        add_text(&tar, "./bin/sh", "program");
        add_text(&tar, "./manifest.json", "{\"name\":\"an app\"}");
        test_tar_end(&tar);
        if (packed)
            test_tar_pack(&tar, archive_write_add_filter_gzip);
        ASSERT_OK(trial_run(&i, &tar, "root"));
        ASSERT_UINT(1, i.n);
        ASSERT_TRUE(test_images_has_file(i.images[0], 0, "bin/sh"));
        ASSERT_CSTR("linux", i.images[0]->config.os);
        if (packed)
            ASSERT_CSTR(id, i.images[0]->id);
        snprintf(id, sizeof(id), "%s", i.images[0]->id);
    }
    ASSERT_UINT(1, test_images_count(i.t, "layers"));
    trial_free(&i);
}

TEST(import_of_several_images_brings_them_all_but_not_under_one_name)
{
    struct trial i = trial_new();

    for (int named = 0; named < 2; named++) {
        struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one");
        char config[512];

        config_of(config, "me", &a, NULL);
        add_text(&tar, "c.json", config);
        config_of(config, "you", &a, NULL);
        add_text(&tar, "d.json", config);
        add_tar(&tar, "l.tar", &a);
        add_text(&tar, "manifest.json",
                 "[{\"Config\":\"c.json\",\"RepoTags\":[\"x\"],\"Layers\":[\"l.tar\"]},"
                 "{\"Config\":\"d.json\",\"RepoTags\":[\"y\"],\"Layers\":[\"l.tar\"]}]");
        test_tar_end(&tar);
        if (named) {
            ASSERT_CODE(AGX_INVALID_ARGUMENT, trial_run(&i, &tar, "both"));
            ASSERT_MESSAGE(i.error, "the archive has 2 images");
        } else {
            ASSERT_OK(trial_run(&i, &tar, NULL));
            ASSERT_UINT(2, i.n);
            ASSERT_CSTR("you", test_images_find(i.t, "y")->config.user);
        }
        test_tar_done(&a);
        test_tar_done(&tar);
    }
    trial_free(&i);
}

/* ---- what is refused ---- */

TEST(import_of_an_archive_that_lacks_a_part_is_refused)
{
    struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one");
    char config[512];

    add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[]}]");
    test_tar_end(&tar);
    trial_refuses(&tar, NULL, AGX_INVALID_ARGUMENT, "the archive lacks 'c.json'");

    config_of(config, "me", &a, NULL);
    add_text(&tar, "c.json", config);
    add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[\"l.tar\"]}]");
    test_tar_end(&tar);
    trial_refuses(&tar, NULL, AGX_INVALID_ARGUMENT, "the archive lacks the layer 'l.tar'");

    add_text(&tar, "c.json", config);
    add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[]}]");
    test_tar_end(&tar);
    trial_refuses(&tar, NULL, AGX_INVALID_ARGUMENT, "has 0 layers, and 1 in its configuration");
    test_tar_done(&a);
}

TEST(import_of_a_layer_that_is_another_is_data_loss)
{
    struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one");
    struct test_tar b = test_images_tar("a", "two");
    char config[512];

    config_of(config, "me", &a, NULL);
    add_text(&tar, "c.json", config);
    add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[\"l.tar\"]}]");
    add_tar(&tar, "l.tar", &b);
    test_tar_end(&tar);
    trial_refuses(&tar, NULL, AGX_DATA_LOSS, "layer 1: the layer has the diff id");
    test_tar_done(&a);
    test_tar_done(&b);
}

TEST(import_of_an_archive_with_a_hostile_layer_is_refused)
{
    struct test_tar tar = test_tar_new(), a = test_images_tar("../../evil", "one");
    char config[512];

    config_of(config, "me", &a, NULL);
    add_text(&tar, "c.json", config);
    add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[\"l.tar\"]}]");
    add_tar(&tar, "l.tar", &a);
    test_tar_end(&tar);
    trial_refuses(&tar, "x", AGX_INVALID_ARGUMENT, "'..'");
    test_tar_done(&a);
}

TEST(import_of_links_that_lead_out_or_round_is_refused)
{
    static const char *const links[] = { "../../etc/passwd", "l.tar", "/etc/passwd" };

    for (size_t k = 0; k < AGX_ARRAY_LEN(links); k++) {
        struct test_tar tar = test_tar_new(), a = test_images_tar("a", "one");
        char config[512];

        config_of(config, "me", &a, NULL);
        add_text(&tar, "c.json", config);
        add_text(&tar, "manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[\"l.tar\"]}]");
        test_tar_add(&tar,
                     (struct test_tar_entry){ .name = "l.tar", .type = '2', .link = links[k] });
        test_tar_end(&tar);
        trial_refuses(&tar, NULL, AGX_INVALID_ARGUMENT, "lacks the layer");
        test_tar_done(&a);
    }
}

TEST(import_of_what_is_no_archive_is_refused)
{
    struct test_tar tar = test_tar_new();

    trial_refuses(&tar, "x", AGX_INVALID_ARGUMENT, "empty");
    ASSERT_OK(agx_buf_append(&tar.bytes, AGX_STR("#!/bin/sh\necho this is a script\n")));
    trial_refuses(&tar, "x", AGX_INVALID_ARGUMENT, "tar");
    tar = docker_archive("[\"x\"]");
    tar.bytes.len = 2000;
    trial_refuses(&tar, "x", AGX_INVALID_ARGUMENT, "tar");
}

TEST(import_of_a_stream_over_the_limit_is_resource_exhausted)
{
    struct test_tar tar = docker_archive("[\"x\"]");
    struct trial i = trial_new();
    struct agx_error *err = NULL;

    test_images_stop(i.t);
    i.t->config.import_max_bytes = 3000;
    test_images_open(i.t);
    trial_start(&i, NULL);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_import_write(i.import, agx_buf_peek(&tar.bytes), &err));
    ASSERT_MESSAGE(err, "3000 bytes");
    agx_error_free(err);
    agx_import_cancel(i.import);
    test_loop_run(i.t->loop);
    ASSERT_CODE(AGX_CANCELLED, -(int)i.error->code);
    test_tar_done(&tar);
    trial_free(&i);
}

TEST(import_under_a_name_that_is_none_is_refused_at_once)
{
    static const char *const bad[] = { "UPPER", "scratch", "a b" };
    struct trial i = trial_new();

    for (size_t k = 0; k < AGX_ARRAY_LEN(bad); k++) {
        const struct agx_import_params p = { .name = agx_str_from(bad[k]), .done = on_done };

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_import_start(i.t->images, &p, &i, &i.import, NULL));
    }
    trial_free(&i);
}

/* ---- ending early ---- */

TEST(import_that_is_cancelled_leaves_nothing)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("[\"x\"]");

    trial_start(&i, NULL);
    ASSERT_OK(agx_import_write(i.import, agx_buf_peek(&tar.bytes), NULL));
    agx_import_cancel(i.import);
    ASSERT_FALSE(i.is_done);
    test_loop_run(i.t->loop);
    ASSERT_CODE(AGX_CANCELLED, -(int)i.error->code);

    trial_clear(&i);
    trial_start(&i, NULL);
    ASSERT_OK(agx_import_write(i.import, agx_buf_peek(&tar.bytes), NULL));
    agx_import_end(i.import);
    agx_import_cancel(i.import);
    test_loop_run(i.t->loop);
    ASSERT_CODE(AGX_CANCELLED, -(int)i.error->code);

    i.cancel_when_told = true; /* when it has been looked through, and then with a layer */
    ASSERT_CODE(AGX_CANCELLED, trial_run(&i, &tar, NULL));
    ASSERT_NULL(test_images_find(i.t, "x"));
    test_loop_run(i.t->loop);
    ASSERT_UINT(0, test_images_count(i.t, "layers"));
    ASSERT_UINT(0, test_images_count(i.t, "tmp"));
    test_tar_done(&tar);
    trial_free(&i);
}

TEST(import_under_way_when_the_store_stops_ends)
{
    struct trial i = trial_new();
    struct test_tar tar = docker_archive("[\"x\"]");

    trial_start(&i, NULL);
    ASSERT_OK(agx_import_write(i.import, agx_buf_peek(&tar.bytes), NULL));
    agx_import_end(i.import);
    test_images_stop(i.t);
    ASSERT_TRUE(i.is_done);
    ASSERT_NOT_NULL(i.error);
    test_tar_done(&tar);
    trial_free(&i);
}

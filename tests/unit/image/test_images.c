#include "tests/support/images.h"

static void write_in_store(struct test_images *t, const char *path, struct agx_str text)
{
    char whole[512];

    snprintf(whole, sizeof(whole), "images/%s", path);
    ASSERT_OK(agx_path_write_file(t->dirfd, whole, text, 0600, NULL));
}

/* ---- images ---- */

TEST(images_that_came_in_are_found_under_every_spelling)
{
    struct test_images *t = test_images_new();
    struct agx_image *i;
    char by_digest[128];

    ASSERT_NULL(test_images_find(t, "python"));
    test_images_make(t, "a", "me", "python:3.13");
    i = test_images_find(t, "python:3.13");
    ASSERT_NOT_NULL(i);
    ASSERT_TRUE(i == test_images_find(t, "docker.io/library/python:3.13"));
    ASSERT_TRUE(i == test_images_find(t, i->id));
    ASSERT_TRUE(i == test_images_find(t, i->id + strlen("sha256:")));
    /* Twelve digits are enough. */
    snprintf(by_digest, sizeof(by_digest), "%.12s", i->id + strlen("sha256:"));
    ASSERT_TRUE(i == test_images_find(t, by_digest));
    snprintf(by_digest, sizeof(by_digest), "python@%s", i->digest);
    ASSERT_TRUE(i == test_images_find(t, by_digest));
    ASSERT_NULL(test_images_find(t, "python:3.12"));
    ASSERT_CSTR("me", i->config.user);
    ASSERT_UINT(2, i->size);
    ASSERT_TRUE(test_images_has_file(i, 0, "a"));
    test_images_free(t);
}

TEST(images_after_a_restart_are_the_same)
{
    struct test_images *t = test_images_new();
    const struct agx_image *i;
    int64_t added;
    char id[AGX_DIGEST_SIZE];

    test_images_make(t, "a", "one", "one");
    test_images_make(t, "b", "two", "two:x");
    i = test_images_find(t, "one");
    added = i->added_ms;
    snprintf(id, sizeof(id), "%s", i->id);
    test_images_reopen(t);
    ASSERT_CSTR("", t->notices);
    i = test_images_find(t, "one:latest");
    ASSERT_NOT_NULL(i);
    ASSERT_CSTR(id, i->id);
    ASSERT_INT(added, i->added_ms);
    ASSERT_UINT(3, i->size);
    ASSERT_NOT_NULL(i->digest);
    ASSERT_TRUE(test_images_has_file(i, 0, "a"));
    ASSERT_NOT_NULL(test_images_find(t, "two:x"));
    test_images_free(t);
}

TEST(images_scratch_is_empty_and_always_there)
{
    struct test_images *t = test_images_new();
    const struct agx_image *i = test_images_find(t, "scratch");
    struct stat st;
    size_t at = 0;

    ASSERT_NOT_NULL(i);
    ASSERT_UINT(1, i->layers.len);
    ASSERT_INT(0, stat(i->layers.items[0], &st));
    ASSERT_UINT(0755, st.st_mode & 07777);
    ASSERT_UINT(0, test_images_count(t, "empty"));
    ASSERT_NULL(agx_images_next(t->images, &at));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, test_images_remove(t, "scratch"));
    test_images_free(t);
}

TEST(images_a_name_given_again_moves_to_the_new_image)
{
    struct test_images *t = test_images_new();
    struct agx_image *old;

    test_images_make(t, "a", "old", "x");
    old = agx_image_ref(test_images_find(t, "x"));
    test_images_make(t, "a", "new", "x");
    ASSERT_TRUE(test_images_find(t, "x") != old);
    ASSERT_UINT(0, old->names.len);
    ASSERT_TRUE(test_images_find(t, old->id) == old);
    agx_image_unref(old);
    test_images_reopen(t);
    ASSERT_CSTR("new", test_images_find(t, "x")->config.user);
    test_images_free(t);
}

TEST(images_of_text_that_is_no_configuration_are_refused)
{
    struct test_images *t = test_images_new();
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"rootfs\":{\"diff_ids\":[\"sha256:12\"]}}",
        "{\"os\":\"windows\",\"rootfs\":{\"diff_ids\":[]}}",
        "{\"config\":{\"Env\":[1]},\"rootfs\":{\"diff_ids\":[]}}",
    };
    struct agx_ingest *in = agx_ingest_new(t->images);

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, test_images_add(t, in, bad[i], "x"));
        ASSERT_NULL(t->image);
        ASSERT_NULL(test_images_find(t, "x"));
    }
    agx_ingest_free(in);
    ASSERT_UINT(0, test_images_count(t, "configs"));
    test_images_free(t);
}

TEST(images_without_one_of_their_layers_are_refused)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    char config[256], digest[AGX_DIGEST_SIZE];

    snprintf(config, sizeof(config), "{\"rootfs\":{\"diff_ids\":[\"%s\"]}}",
             test_digest_of(AGX_STR("x"), digest));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_images_add(t, in, config, "x"));
    ASSERT_MESSAGE(t->error, "is not in the store");
    agx_ingest_free(in);
    test_images_free(t);
}

/* ---- layers ---- */

TEST(images_layer_with_another_digest_is_data_loss_and_leaves_nothing)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char other[AGX_DIGEST_SIZE], right[AGX_DIGEST_SIZE];
    struct agx_ingest_layer layer;
    struct agx_spool *sp = test_images_spool(t, agx_buf_peek(&tar.bytes));

    test_digest_of(AGX_STR("other"), other);
    test_digest_of(agx_buf_peek(&tar.bytes), right);
    ASSERT_CODE(AGX_DATA_LOSS, test_images_layer(t, in, agx_buf_peek(&tar.bytes), other));
    ASSERT_MESSAGE(t->error, "diff id");
    layer = (struct agx_ingest_layer){ agx_str_from(other), agx_str_from(right) };
    test_images_clear(t);
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, test_images_done, t, NULL));
    ASSERT_CODE(AGX_DATA_LOSS, test_images_run(t));
    ASSERT_MESSAGE(t->error, "the blob has the digest");
    ASSERT_UINT(0, test_images_count(t, "layers"));
    ASSERT_UINT(0, test_images_count(t, "tmp"));
    /* The right one still can come. */
    ASSERT_OK(test_images_layer(t, in, agx_buf_peek(&tar.bytes), right));
    ASSERT_UINT(1, test_images_count(t, "layers"));
    agx_ingest_free(in);
    test_tar_done(&tar);
    test_loop_run(t->loop);
    test_images_free(t);
}

TEST(images_layer_that_is_hostile_is_refused_and_leaves_nothing)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_tar_new();
    char diff_id[AGX_DIGEST_SIZE];

    test_tar_add(&tar, (struct test_tar_entry){ .name = "good", .data = AGX_STR("text") });
    test_tar_add(&tar, (struct test_tar_entry){ .name = "../../../evil" });
    test_tar_end(&tar);
    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, test_images_layer(t, in, agx_buf_peek(&tar.bytes), diff_id));
    ASSERT_MESSAGE(t->error, "'..'");
    ASSERT_UINT(0, test_images_count(t, "layers"));
    ASSERT_UINT(0, test_images_count(t, "tmp"));
    ASSERT_UINT(5, test_images_count(t, "."));
    agx_ingest_free(in);
    test_tar_done(&tar);
    test_images_free(t);
}

TEST(images_layer_of_an_ingest_that_brings_no_image_goes_again)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    ASSERT_OK(test_images_layer(t, in, agx_buf_peek(&tar.bytes), diff_id));
    ASSERT_TRUE(agx_ingest_has(in, agx_str_from(diff_id)));
    agx_ingest_free(in);
    test_loop_run(t->loop);
    ASSERT_UINT(0, test_images_count(t, "layers"));
    in = agx_ingest_new(t->images);
    ASSERT_FALSE(agx_ingest_has(in, agx_str_from(diff_id)));
    agx_ingest_free(in);
    test_tar_done(&tar);
    test_images_free(t);
}

static void count_done(void *user, struct agx_error *error)
{
    unsigned *n = user;

    ASSERT_NULL(error);
    ++*n;
}

TEST(images_layer_that_two_bring_at_once_is_unpacked_once)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *a = agx_ingest_new(t->images), *b = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *one = test_images_spool(t, agx_buf_peek(&tar.bytes));
    struct agx_spool *two = test_images_spool(t, agx_buf_peek(&tar.bytes));
    unsigned n = 0;

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    ASSERT_OK(agx_ingest_layer(a, &one, &layer, count_done, &n, NULL));
    ASSERT_OK(agx_ingest_layer(b, &two, &layer, count_done, &n, NULL));
    test_loop_run(t->loop);
    ASSERT_UINT(2, n);
    ASSERT_UINT(1, test_images_count(t, "layers"));
    /* The one that is left keeps it. */
    agx_ingest_free(a);
    test_loop_run(t->loop);
    ASSERT_TRUE(agx_ingest_has(b, agx_str_from(diff_id)));
    ASSERT_UINT(1, test_images_count(t, "layers"));
    agx_ingest_free(b);
    test_loop_run(t->loop);
    test_tar_done(&tar);
    test_images_free(t);
}

TEST(images_layer_whose_first_bringer_fails_is_made_by_the_second)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar good = test_images_tar("a", "text"), bad = test_images_tar("a", "wrong");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *one = test_images_spool(t, agx_buf_peek(&bad.bytes));
    struct agx_spool *two = test_images_spool(t, agx_buf_peek(&good.bytes));
    unsigned n = 0;

    test_digest_of(agx_buf_peek(&good.bytes), diff_id);
    ASSERT_OK(agx_ingest_layer(in, &one, &layer, test_images_done, t, NULL));
    while (!t->is_done && test_images_count(t, "tmp") == 0)
        (void)uv_run(agx_loop_uv(t->loop), UV_RUN_NOWAIT); /* until it has claimed the layer */
    ASSERT_OK(agx_ingest_layer(in, &two, &layer, count_done, &n, NULL));
    ASSERT_CODE(AGX_DATA_LOSS, test_images_run(t));
    ASSERT_UINT(1, n);
    ASSERT_TRUE(agx_ingest_has(in, agx_str_from(diff_id)));
    agx_ingest_free(in);
    test_loop_run(t->loop);
    test_tar_done(&good);
    test_tar_done(&bad);
    test_images_free(t);
}

TEST(images_ingest_that_is_freed_at_work_ends_it_as_cancelled)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *sp = test_images_spool(t, agx_buf_peek(&tar.bytes));

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, test_images_done, t, NULL));
    agx_ingest_free(in);
    ASSERT_CODE(AGX_CANCELLED, test_images_run(t));
    ASSERT_UINT(0, test_images_count(t, "layers"));
    test_tar_done(&tar);
    test_images_free(t);
}

TEST(images_spool_over_its_limit_is_resource_exhausted)
{
    struct test_images *t = test_images_new();
    struct agx_spool *sp = NULL;
    struct agx_error *err = NULL;

    ASSERT_OK(agx_spool_open(t->images, 10, NULL, NULL, &sp, NULL));
    ASSERT_INT(0, agx_spool_write(sp, AGX_STR("1234567890"), NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_spool_write(sp, AGX_STR("1"), &err));
    ASSERT_MESSAGE(err, "10 bytes");
    agx_error_free(err);
    agx_spool_rewind(sp);
    ASSERT_UINT(0, agx_spool_size(sp));
    ASSERT_INT(0, agx_spool_write(sp, AGX_STR("12345"), NULL));
    agx_spool_close(sp);
    test_loop_run(t->loop);
    test_images_free(t);
}

static void on_ready(void *user)
{
    ++*(unsigned *)user;
}

TEST(images_spool_asks_its_writer_to_pause)
{
    struct test_images *t = test_images_new();
    struct agx_spool *sp = NULL;
    char *block = calloc(1, 1 << 20);
    unsigned n_ready = 0;
    int r = 0;

    ASSERT_OK(agx_spool_open(t->images, UINT64_MAX, on_ready, &n_ready, &sp, NULL));
    for (int i = 0; i < 32 && r == 0; i++)
        r = agx_spool_write(sp, agx_str_bytes(block, 1 << 20), NULL);
    ASSERT_INT(1, r);
    test_loop_run(t->loop);
    ASSERT_UINT(1, n_ready);
    ASSERT_INT(0, agx_spool_write(sp, AGX_STR("more"), NULL));
    agx_spool_close(sp);
    test_loop_run(t->loop);
    free(block);
    test_images_free(t);
}

TEST(images_blob_that_begins_anew_is_the_second_attempt_s)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *sp = test_images_spool(t, AGX_STR("half of something else"));

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    agx_spool_rewind(sp);
    ASSERT_OK(agx_spool_write(sp, agx_buf_peek(&tar.bytes), NULL));
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, test_images_done, t, NULL));
    ASSERT_OK(test_images_run(t));
    agx_ingest_free(in);
    test_loop_run(t->loop);
    test_tar_done(&tar);
    test_images_free(t);
}

/* ---- removing ---- */

TEST(images_removed_take_only_layers_of_their_own_with_them)
{
    struct test_images *t = test_images_new();
    struct agx_image *i;
    char id[AGX_DIGEST_SIZE];

    test_images_make(t, "a", "shared", "one");
    i = test_images_find(t, "one");
    snprintf(id, sizeof(id), "%s", i->id);
    { /* another image of the same layer */
        struct agx_ingest *in = agx_ingest_new(t->images);
        char config[256];

        snprintf(config, sizeof(config), "{\"rootfs\":{\"diff_ids\":[\"%s\"]}}",
                 i->config.diff_ids.items[0]);
        ASSERT_TRUE(agx_ingest_has(in, agx_str_from(i->config.diff_ids.items[0])));
        ASSERT_OK(test_images_add(t, in, config, "two"));
        agx_ingest_free(in);
    }
    ASSERT_OK(test_images_remove(t, "one"));
    ASSERT_NOT_NULL(strstr(t->removed, "docker.io/library/one:latest"));
    ASSERT_NOT_NULL(strstr(t->removed, id));
    ASSERT_UINT(0, t->removed_bytes);
    ASSERT_UINT(1, test_images_count(t, "layers"));
    ASSERT_NULL(test_images_find(t, "one"));
    ASSERT_OK(test_images_remove(t, "two"));
    ASSERT_UINT(6, t->removed_bytes);
    ASSERT_UINT(0, test_images_count(t, "layers"));
    ASSERT_UINT(0, test_images_count(t, "configs"));
    ASSERT_UINT(0, test_images_count(t, "manifests"));
    ASSERT_CODE(AGX_NOT_FOUND, test_images_remove(t, "two"));
    test_images_reopen(t);
    ASSERT_NULL(test_images_find(t, "two"));
    test_images_free(t);
}

TEST(images_remove_of_one_of_several_names_leaves_the_image)
{
    struct test_images *t = test_images_new();

    test_images_make(t, "a", "text", "one");
    test_images_make(t, "a", "text", "two");
    ASSERT_TRUE(test_images_find(t, "one") == test_images_find(t, "two"));
    ASSERT_OK(test_images_remove(t, "one"));
    ASSERT_CSTR("docker.io/library/one:latest ", t->removed);
    ASSERT_NOT_NULL(test_images_find(t, "two"));
    test_images_reopen(t);
    ASSERT_NULL(test_images_find(t, "one"));
    ASSERT_NOT_NULL(test_images_find(t, "two"));
    test_images_free(t);
}

TEST(images_that_sandboxes_use_are_not_removed)
{
    struct test_images *t = test_images_new();
    struct agx_image *i;

    test_images_make(t, "a", "text", "one");
    i = agx_image_pin(test_images_find(t, "one"));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_images_remove(t, "one"));
    ASSERT_MESSAGE(t->error, "in use by 1 sandbox");
    ASSERT_TRUE(test_images_find(t, "one") == i);
    agx_image_unpin(i);
    ASSERT_OK(test_images_remove(t, "one"));
    test_images_free(t);
}

/* As at the start of a daemon, which has yet to see whose they are. */
TEST(images_that_are_held_are_removed_or_refused_when_they_are_not_any_more)
{
    struct test_images *t = test_images_new();
    struct agx_image *i;

    test_images_make(t, "a", "text", "one");
    agx_images_hold(t->images);
    agx_images_hold(t->images);
    test_images_clear(t);
    agx_images_remove(t->images, AGX_STR("one"), test_images_removed, t);
    test_loop_run(t->loop);
    agx_images_unhold(t->images);
    test_loop_run(t->loop);
    ASSERT_FALSE(t->is_done);
    i = agx_image_pin(test_images_find(t, "one"));
    agx_images_unhold(t->images);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_images_run(t));
    ASSERT_TRUE(test_images_find(t, "one") == i);
    agx_image_unpin(i);
    ASSERT_OK(test_images_remove(t, "one"));
    test_images_free(t);
}

TEST(images_that_are_held_at_the_end_of_the_store_stay)
{
    struct test_images *t = test_images_new();
    struct test_images one = { 0 }, all = { 0 };

    test_images_make(t, "a", "text", "one");
    agx_images_hold(t->images);
    agx_images_remove(t->images, AGX_STR("one"), test_images_removed, &one);
    agx_images_prune(t->images, test_images_removed, &all);
    test_images_stop(t);
    ASSERT_TRUE(one.is_done && all.is_done);
    ASSERT_INT(AGX_CANCELLED, one.error->code);
    ASSERT_INT(AGX_CANCELLED, all.error->code);
    agx_error_free(one.error);
    agx_error_free(all.error);
    test_images_open(t);
    ASSERT_NOT_NULL(test_images_find(t, "one"));
    test_images_free(t);
}

TEST(images_prune_removes_those_without_name_and_pin)
{
    struct test_images *t = test_images_new();
    struct agx_image *pinned;
    size_t at = 0;

    test_images_make(t, "a", "first", "x");
    test_images_make(t, "a", "second", "x");
    pinned = agx_image_pin(test_images_find(t, "x"));
    test_images_make(t, "a", "third", "x");
    ASSERT_OK(test_images_prune(t));
    ASSERT_UINT(5, t->removed_bytes);
    ASSERT_TRUE(test_images_find(t, pinned->id) == pinned);
    ASSERT_NOT_NULL(test_images_find(t, "x"));
    agx_image_unpin(pinned);
    ASSERT_OK(test_images_prune(t));
    ASSERT_UINT(6, t->removed_bytes);
    ASSERT_NOT_NULL(agx_images_next(t->images, &at));
    ASSERT_NULL(agx_images_next(t->images, &at));
    ASSERT_OK(test_images_prune(t));
    ASSERT_CSTR("", t->removed);
    test_images_free(t);
}

TEST(images_layer_that_comes_while_it_goes_is_made_anew)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in;
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *sp;
    unsigned n = 0;

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    test_images_make(t, "a", "text", "one");
    test_images_clear(t);
    agx_images_remove(t->images, AGX_STR("one"), test_images_removed, t);
    in = agx_ingest_new(t->images);
    ASSERT_FALSE(agx_ingest_has(in, agx_str_from(diff_id)));
    sp = test_images_spool(t, agx_buf_peek(&tar.bytes));
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, count_done, &n, NULL));
    ASSERT_OK(test_images_run(t));
    ASSERT_UINT(1, n);
    ASSERT_TRUE(agx_ingest_has(in, agx_str_from(diff_id)));
    ASSERT_UINT(1, test_images_count(t, "layers"));
    agx_ingest_free(in);
    test_loop_run(t->loop);
    test_tar_done(&tar);
    test_images_free(t);
}

/* ---- what a crash or a bad disk leaves ---- */

TEST(images_open_removes_what_a_crash_left)
{
    struct test_images *t = test_images_new();
    char digest[AGX_DIGEST_SIZE], path[128];

    test_images_make(t, "a", "text", "one");
    ASSERT_INT(0, mkdirat(t->dirfd, "images/tmp/half", 0700));
    write_in_store(t, "tmp/half/file", AGX_STR("x"));
    write_in_store(t, AGX_PATH_TEMP "half", AGX_STR("{"));
    test_digest_of(AGX_STR("x"), digest);
    digest[6] = '-';
    snprintf(path, sizeof(path), "images/layers/%s", digest);
    ASSERT_INT(0, mkdirat(t->dirfd, path, 0700));
    snprintf(path, sizeof(path), "layers/%s/layer.json", digest);
    write_in_store(t, path, AGX_STR("{\"size\":1,\"entries\":1}"));
    snprintf(path, sizeof(path), "configs/%s", digest);
    write_in_store(t, path, AGX_STR("{\"rootfs\":{\"diff_ids\":[]}}"));
    snprintf(path, sizeof(path), "manifests/%s", digest);
    write_in_store(t, path, AGX_STR("{}"));
    test_images_reopen(t);
    ASSERT_UINT(0, test_images_count(t, "tmp"));
    ASSERT_INT(-1, faccessat(t->dirfd, "images/" AGX_PATH_TEMP "half", F_OK, 0));
    ASSERT_UINT(1, test_images_count(t, "layers"));
    ASSERT_UINT(1, test_images_count(t, "configs"));
    ASSERT_UINT(1, test_images_count(t, "manifests"));
    ASSERT_NOT_NULL(test_images_find(t, "one"));
    test_images_free(t);
}

TEST(images_open_with_a_damaged_list_keeps_the_images_by_their_ids)
{
    struct test_images *t = test_images_new();
    char id[AGX_DIGEST_SIZE];

    test_images_make(t, "a", "text", "one");
    snprintf(id, sizeof(id), "%s", test_images_find(t, "one")->id);
    write_in_store(t, "refs.json", AGX_STR("{\"version\":1,\"images\":"));
    test_images_reopen(t);
    ASSERT_NOT_NULL(strstr(t->notices, "lost their names"));
    ASSERT_NULL(test_images_find(t, "one"));
    ASSERT_NOT_NULL(test_images_find(t, id));
    test_images_make(t, "a", "text", "one");
    test_images_reopen(t);
    ASSERT_CSTR("", t->notices);
    ASSERT_CSTR(id, test_images_find(t, "one")->id);
    test_images_free(t);
}

TEST(images_open_leaves_out_an_image_whose_layer_or_configuration_is_damaged)
{
    struct test_images *t = test_images_new();
    const struct agx_image *i;
    char path[256], file[AGX_DIGEST_SIZE];

    test_images_make(t, "a", "one", "one");
    test_images_make(t, "b", "two", "two");
    test_images_make(t, "c", "three", "three");
    i = test_images_find(t, "one");
    snprintf(path, sizeof(path), "images/layers/%s/layer.json",
             agx_digest_file(i->config.diff_ids.items[0], file));
    ASSERT_INT(0, unlinkat(t->dirfd, path, 0));
    i = test_images_find(t, "two");
    snprintf(path, sizeof(path), "configs/%s", agx_digest_file(i->id, file));
    write_in_store(t, path, AGX_STR("{\"rootfs\":{\"diff_ids\":[]}}"));
    test_images_reopen(t);
    ASSERT_NOT_NULL(strstr(t->notices, "incomplete image"));
    ASSERT_NULL(test_images_find(t, "one"));
    ASSERT_NULL(test_images_find(t, "two"));
    ASSERT_NOT_NULL(test_images_find(t, "three"));
    ASSERT_UINT(1, test_images_count(t, "layers"));
    test_images_free(t);
}

TEST(images_stop_with_work_under_way_cancels_it)
{
    struct test_images *t = test_images_new();
    struct agx_ingest *in = agx_ingest_new(t->images);
    struct test_tar tar = test_images_tar("a", "text");
    char diff_id[AGX_DIGEST_SIZE];
    const struct agx_ingest_layer layer = { .diff_id = { diff_id, AGX_DIGEST_SIZE - 1 } };
    struct agx_spool *sp = test_images_spool(t, agx_buf_peek(&tar.bytes));
    struct test_images other = { 0 };

    test_digest_of(agx_buf_peek(&tar.bytes), diff_id);
    ASSERT_OK(agx_ingest_layer(in, &sp, &layer, test_images_done, &other, NULL));
    agx_images_remove(t->images, AGX_STR("none"), test_images_removed, t);
    agx_ingest_free(in);
    agx_images_stop(t->images, count_done, &t->removed_bytes);
    test_loop_run(t->loop);
    t->images = NULL;
    ASSERT_TRUE(other.is_done);
    ASSERT_TRUE(t->is_done);
    agx_error_free(other.error);
    test_tar_done(&tar);
    ASSERT_UINT(0, test_images_count(t, "layers"));
    test_images_free(t);
}

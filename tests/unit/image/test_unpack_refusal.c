/* Unpacking of tars that are hostile, too large or damaged: nothing outside its directory changes,
 * and the error gives the reason. */
#include "tests/support/unpack_box.h"

/* ---- hostile ---- */

TEST(unpack_of_a_name_with_dotdot_is_refused)
{
    static const char *const names[] = { "../victim", "a/../../victim", "..", "a/..",
                                         "./../victim" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        struct test_box *b = test_box_open();

        test_tar_add(&b->tar,
                     (struct test_tar_entry){ .name = names[i], .data = AGX_STR("overwritten") });
        test_box_refuses(b, AGX_INVALID_ARGUMENT, "its name has '..' in it");
    }
}

TEST(unpack_of_an_absolute_name_is_refused)
{
    struct test_box *b = test_box_open();
    char name[64];

    snprintf(name, sizeof(name), "%s/victim", b->dir);
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = name, .data = AGX_STR("overwritten") });
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "its name is absolute");
}

TEST(unpack_through_a_symlink_of_the_tar_is_refused)
{
    static const char *const targets[] = { "..", "/tmp", ".", "sub" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(targets); i++) {
        struct test_box *b = test_box_open();

        test_box_add(b, "sub/", '5', NULL);
        test_box_add(b, "way", '2', targets[i]);
        test_tar_add(&b->tar, (struct test_tar_entry){ .name = "way/victim",
                                                       .data = AGX_STR("overwritten") });
        test_box_refuses(b, AGX_INVALID_ARGUMENT, "a symlink");
    }
}

TEST(unpack_through_a_symlink_deep_in_a_path_is_refused)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "a/b/", '5', NULL);
    test_box_add(b, "a/b/way", '2', "../../..");
    test_box_add(b, "a/b/way/new/dir/", '5', NULL);
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "a symlink");
}

TEST(unpack_onto_a_symlink_replaces_it)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "victim", '2', "../victim");
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "victim", .data = AGX_STR("mine") });
    test_box_add(b, "dir", '2', "..");
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "dir", .type = '5', .mode = 0700 });
    test_box_add(b, "dir/file", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("mine", test_box_text(b->root, "victim"));
    ASSERT_TRUE(test_box_has(b, "dir/file"));
    test_box_close(b);
}

TEST(unpack_of_a_directory_that_becomes_a_symlink_changes_nothing_behind_it)
{
    struct test_box *b = test_box_open();
    struct stat before = { 0 }, after = { 0 };

    ASSERT_INT(0, fstat(b->dirfd, &before));
    test_tar_add(&b->tar,
                 (struct test_tar_entry){ .name = "dir", .type = '5', .mode = 0777, .mtime = 42 });
    test_box_add(b, "dir", '2', "..");
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_INT(0, fstat(b->dirfd, &after));
    ASSERT_UINT(before.st_mode, after.st_mode);
    ASSERT_TRUE(after.st_mtime != 42);
    test_box_close(b);
}

TEST(unpack_of_a_whiteout_through_a_symlink_is_refused)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "way", '2', "..");
    test_box_add(b, "way/.wh.victim", '0', NULL);
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "a symlink");
}

TEST(unpack_of_a_hard_link_to_outside_is_refused)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "a", '1', "../victim");
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "'..'");

    b = test_box_open();
    test_box_add(b, "a", '1', "/etc/passwd");
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "no such file");

    b = test_box_open();
    test_box_add(b, "way", '2', "..");
    test_box_add(b, "a", '1', "way/victim");
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "no such file");
}

TEST(unpack_of_a_hard_link_to_a_symlink_links_the_symlink)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "way", '2', "../victim");
    test_box_add(b, "again", '1', "way");
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "again", .data = AGX_STR("mine") });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("mine", test_box_text(b->root, "again"));
    test_box_close(b);
}

TEST(unpack_of_a_hard_link_to_itself_leaves_the_file)
{
    struct test_box *b = test_box_open();

    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a", .data = AGX_STR("text") });
    test_box_add(b, "a", '1', "./a");
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("text", test_box_text(b->root, "a"));
    test_box_close(b);
}

TEST(unpack_through_a_file_is_refused)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "file", '0', NULL);
    test_box_add(b, "file/below", '0', NULL);
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "not a directory");
}

TEST(unpack_of_something_else_than_a_directory_at_the_root_is_refused)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "./", '2', "/");
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "replace the root");
    b = test_box_open();
    test_box_add(b, ".", '0', NULL);
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "replace the root");
}

TEST(unpack_of_a_file_over_a_directory_replaces_the_tree)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "a/b/c/", '5', NULL);
    test_box_add(b, "a/b/c/file", '0', NULL);
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a/b", .data = AGX_STR("now a file") });
    test_box_add(b, "a/next", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("now a file", test_box_text(b->root, "a/b"));
    ASSERT_UINT(2, test_box_count(b->root, "a"));
    test_box_close(b);
}

TEST(unpack_of_names_too_long_or_too_deep_is_refused)
{
    struct test_box *b = test_box_open();
    char name[5000];

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    test_tar_long(&b->tar, name, (struct test_tar_entry){ 0 });
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "too long");

    b = test_box_open();
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 100 == 99 ? '/' : 'n';
    name[4500] = '\0';
    test_tar_long(&b->tar, name, (struct test_tar_entry){ 0 });
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "too long");

    b = test_box_open();
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 2 == 0 ? 'd' : '/';
    name[2 * AGX_UNPACK_DEPTH_MAX + 1] = '\0';
    test_tar_long(&b->tar, name, (struct test_tar_entry){ 0 });
    test_box_refuses(b, AGX_INVALID_ARGUMENT, "too many components");
}

/* ---- limits ---- */

TEST(unpack_over_the_limit_of_entries_is_resource_exhausted)
{
    struct test_box *b = test_box_open();

    b->params.limits.entries = 3;
    for (int i = 0; i < 4; i++)
        test_box_add(b, "same", '0', NULL);
    test_box_refuses(b, AGX_RESOURCE_EXHAUSTED, "more than 3 entries");
}

TEST(unpack_over_the_limit_of_bytes_is_resource_exhausted)
{
    struct test_box *b = test_box_open();

    b->params.limits.bytes = 2000;
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a", .size = 2001 });
    test_box_refuses(b, AGX_RESOURCE_EXHAUSTED, "2000 bytes");

    b = test_box_open();
    b->params.limits.bytes = 10000;
    for (int i = 0; i < 40; i++)
        test_box_add(b, "same", '0', NULL);
    test_box_refuses(b, AGX_RESOURCE_EXHAUSTED, "the tar is larger than 10000 bytes");
}

TEST(unpack_of_a_huge_hole_counts_as_its_size)
{
    struct test_box *b = test_box_open();
    const struct agx_str records = AGX_STR("22 GNU.sparse.major=1\n"
                                           "22 GNU.sparse.minor=0\n"
                                           "43 GNU.sparse.realsize=9000000000000000000\n");
    char data[TEST_TAR_BLOCK] = "0\n";

    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "x", .type = 'x', .data = records });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "holes",
                                                   .data = agx_str_bytes(data, sizeof(data)) });
    test_box_refuses(b, AGX_RESOURCE_EXHAUSTED, "the limit");
}

TEST(unpack_of_a_bomb_stops_at_the_ratio)
{
    struct test_box *b = test_box_open();
    char *zeros = calloc(1, 4 << 20);

    b->params.limits.ratio_from = 1 << 20;
    test_tar_add(&b->tar,
                 (struct test_tar_entry){ .name = "zeros", .data = agx_str_bytes(zeros, 4 << 20) });
    test_tar_end(&b->tar);
    test_tar_pack(&b->tar, archive_write_add_filter_zstd);
    b->piece = 64;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, test_box_unpack(b));
    ASSERT_MESSAGE(b->error, "200 times larger");
    free(zeros);
    test_box_close(b);
}

/* ---- damaged ---- */

TEST(unpack_of_what_is_no_tar_is_refused)
{
    struct test_box *b = test_box_open();

    ASSERT_OK(agx_buf_append(&b->tar.bytes, AGX_STR("This is only text, and not a tar at all.")));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, test_box_unpack(b));
    ASSERT_UINT(0, test_box_count(b->root, "."));
    test_box_close(b);
}

TEST(unpack_of_a_tar_that_is_cut_is_refused)
{
    struct test_box *b = test_box_open();

    test_tar_add(&b->tar, (struct test_tar_entry){
                              .name = "a", .size = 5000, .data = AGX_STR("only these") });
    ASSERT_CODE(AGX_INVALID_ARGUMENT, test_box_unpack(b));
    ASSERT_MESSAGE(b->error, "unpack 'a'");
    test_box_close(b);
}

TEST(unpack_of_damaged_compression_is_refused)
{
    struct test_box *b = test_box_open();

    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a", .data = AGX_STR("text") });
    test_tar_end(&b->tar);
    test_tar_pack(&b->tar, archive_write_add_filter_gzip);
    b->tar.bytes.len -= 20;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, test_box_unpack(b));
    test_box_close(b);
}

static ssize_t fail_to_give(void *user, void *buf, size_t size, struct agx_error **err)
{
    (void)user;
    (void)buf;
    (void)size;
    return agx_error_set(err, AGX_UNAVAILABLE, "the cable is out");
}

TEST(unpack_of_bytes_that_cannot_be_read_says_why)
{
    struct test_box *b = test_box_open();

    b->params.read = fail_to_give;
    ASSERT_CODE(AGX_UNAVAILABLE, test_box_unpack(b));
    ASSERT_MESSAGE(b->error, "the cable is out");
    test_box_close(b);
}

TEST(unpack_that_is_stopped_is_cancelled)
{
    struct test_box *b = test_box_open();
    atomic_bool stop = true;

    b->params.stop = &stop;
    test_box_refuses(b, AGX_CANCELLED, "cancelled");
}

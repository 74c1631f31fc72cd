/* Unpacking of valid tars: what it keeps, and where. test_unpack_refusal.c has refused tars. */
#include "tests/support/digest.h"
#include "tests/support/unpack_box.h"

#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* ---- what is kept ---- */

TEST(unpack_of_files_keeps_content_mode_owner_and_time)
{
    struct test_box *b = test_box_open();
    struct stat st;

    test_tar_add(&b->tar, (struct test_tar_entry){
                              .name = "./bin/", .type = '5', .mode = 0555, .mtime = 1000 });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "bin/su",
                                                   .mode = 04755,
                                                   .uid = 12,
                                                   .gid = 34,
                                                   .mtime = 2000,
                                                   .data = AGX_STR("program") });
    test_box_add(b, "bin/link", '2', "/etc/../victim");
    test_box_add(b, "bin/hard", '1', "bin/su");
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "pipe", .type = '6', .mode = 0620 });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));

    ASSERT_CSTR("program", test_box_text(b->root, "bin/su"));
    st = test_box_stat(b, "bin/su");
    ASSERT_UINT(04755, st.st_mode & 07777);
    ASSERT_INT(2000, st.st_mtime);
    ASSERT_UINT(2, st.st_nlink);
    ASSERT_UINT(st.st_ino, test_box_stat(b, "bin/hard").st_ino);
    if (geteuid() == 0) {
        ASSERT_UINT(12, st.st_uid);
        ASSERT_UINT(34, st.st_gid);
    }
    st = test_box_stat(b, "bin");
    ASSERT_UINT(0555, st.st_mode & 07777);
    ASSERT_INT(1000, st.st_mtime);
    ASSERT_TRUE(S_ISLNK(test_box_stat(b, "bin/link").st_mode));
    ASSERT_TRUE(S_ISFIFO(test_box_stat(b, "pipe").st_mode));
    ASSERT_UINT(0620, test_box_stat(b, "pipe").st_mode & 07777);
    ASSERT_UINT(5, b->result.entries);
    ASSERT_UINT(7, b->result.bytes);
    test_box_close(b);
}

TEST(unpack_with_shifted_ids_gives_files_to_those_of_the_sandbox)
{
    struct test_box *b = test_box_open();

    if (geteuid() != 0) {
        test_box_close(b);
        return;
    }
    b->params.idmap = (struct agx_idmap){ .on = true, .uid = 1000, .gid = 5 };
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "new/root", .data = AGX_STR("") });
    test_tar_add(&b->tar, (struct test_tar_entry){
                              .name = "user", .uid = 1000, .gid = 4, .data = AGX_STR("") });
    test_tar_add(&b->tar, (struct test_tar_entry){
                              .name = "far", .uid = 1048576, .gid = 5, .data = AGX_STR("") });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));

    ASSERT_UINT(1, test_box_stat(b, "new/root").st_uid);
    ASSERT_UINT(1, test_box_stat(b, "new/root").st_gid);
    ASSERT_UINT(1, test_box_stat(b, "new").st_uid);
    ASSERT_UINT(1, test_box_stat(b, "new").st_gid);
    ASSERT_UINT(0, test_box_stat(b, "user").st_uid);
    ASSERT_UINT(5, test_box_stat(b, "user").st_gid);
    ASSERT_UINT(65534, test_box_stat(b, "far").st_uid);
    ASSERT_UINT(0, test_box_stat(b, "far").st_gid);
    test_box_close(b);
}

TEST(unpack_of_the_root_s_own_entry_sets_its_mode_and_time)
{
    struct test_box *b = test_box_open();

    test_tar_add(&b->tar,
                 (struct test_tar_entry){ .name = "./", .type = '5', .mode = 0711, .mtime = 5000 });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "./a", .data = AGX_STR("x") });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_UINT(0711, test_box_stat(b, ".").st_mode & 07777);
    ASSERT_INT(5000, test_box_stat(b, ".").st_mtime);
    test_box_close(b);
}

static void check_packed(int (*add_filter)(struct archive *))
{
    struct test_box *b = test_box_open();
    char want[AGX_DIGEST_SIZE];

    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a/b", .data = AGX_STR("text") });
    test_tar_end(&b->tar);
    test_tar_zeros(&b->tar, 9000); /* behind the end, and part of the digest */
    test_digest_of(agx_buf_peek(&b->tar.bytes), want);
    if (add_filter)
        test_tar_pack(&b->tar, add_filter);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("text", test_box_text(b->root, "a/b"));
    ASSERT_CSTR(want, b->result.diff_id);
    ASSERT_UINT(0755, test_box_stat(b, "a").st_mode & 07777); /* which the tar does not have */
    test_box_close(b);
}

TEST(unpack_of_a_compressed_tar_gives_the_digest_of_the_plain_one)
{
    check_packed(NULL);
    check_packed(archive_write_add_filter_gzip);
    check_packed(archive_write_add_filter_zstd);
    check_packed(archive_write_add_filter_xz);
}

TEST(unpack_of_no_bytes_is_an_empty_layer)
{
    struct test_box *b = test_box_open();

    ASSERT_OK(test_box_unpack(b));
    ASSERT_UINT(0, test_box_count(b->root, "."));
    ASSERT_CSTR("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                b->result.diff_id);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_UINT(0, b->result.entries);
    test_box_close(b);
}

TEST(unpack_of_names_in_utf8_keeps_their_bytes)
{
    struct test_box *b = test_box_open();

    test_tar_long(&b->tar, "d/F\xc5\x91tan\xc3\xba.pem", (struct test_tar_entry){ .mode = 0600 });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "latin-\xe9" });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_TRUE(test_box_has(b, "d/F\xc5\x91tan\xc3\xba.pem"));
    ASSERT_TRUE(test_box_has(b, "latin-\xe9"));
    test_box_close(b);
}

TEST(unpack_of_attributes_keeps_capabilities_and_the_user_s_but_not_overlay_s)
{
    static const char cap[] = "\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0"; /* net_bind_service */
    struct test_box *b = test_box_open();
    char value[64];
    int fd;

    test_tar_pax(&b->tar, "SCHILY.xattr.user.note", AGX_STR("hello"));
    test_box_add(b, "noted", '0', NULL);
    test_tar_pax(&b->tar, "SCHILY.xattr.user.overlay.opaque", AGX_STR("y"));
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "dir", .type = '5', .mode = 0755 });
    test_tar_pax(&b->tar, "SCHILY.xattr.trusted.overlay.redirect", AGX_STR("/"));
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "dir2", .type = '5', .mode = 0755 });
    test_tar_pax(&b->tar, "SCHILY.xattr.security.capability", agx_str_bytes(cap, sizeof(cap) - 1));
    test_box_add(b, "able", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));

    fd = openat(b->root, "noted", O_RDONLY | O_CLOEXEC);
    if (fsetxattr(fd, "user.probe", "1", 1, 0) == 0) {
        ASSERT_INT(5, fgetxattr(fd, "user.note", value, sizeof(value)));
        close(fd);
        if (geteuid() == 0) {
            fd = openat(b->root, "able", O_RDONLY | O_CLOEXEC);
            ASSERT_INT(20, fgetxattr(fd, "security.capability", value, sizeof(value)));
            close(fd);
        }
        fd = openat(b->root, "dir", O_RDONLY | O_CLOEXEC);
        ASSERT_INT(-1, fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)));
        close(fd);
        fd = openat(b->root, "dir2", O_RDONLY | O_CLOEXEC);
        ASSERT_INT(-1, fgetxattr(fd, "trusted.overlay.redirect", value, sizeof(value)));
    }
    close(fd);
    test_box_close(b);
}

TEST(unpack_of_a_sparse_file_keeps_its_holes)
{
    struct test_box *b = test_box_open();
    const struct agx_str map = AGX_STR("1\n1048576\n4\n");
    const struct agx_str records = AGX_STR("22 GNU.sparse.major=1\n"
                                           "22 GNU.sparse.minor=0\n"
                                           "31 GNU.sparse.realsize=1048580\n");
    char data[TEST_TAR_BLOCK + 4] = { 0 };

    memcpy(data, map.ptr, map.len);
    memcpy(data + TEST_TAR_BLOCK, "tail", 4);
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "x", .type = 'x', .data = records });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "holes",
                                                   .data = agx_str_bytes(data, sizeof(data)) });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_INT(1048580, test_box_stat(b, "holes").st_size);
    ASSERT_TRUE(test_box_stat(b, "holes").st_blocks < 200);
    ASSERT_UINT(1048580, b->result.bytes);
    test_box_close(b);
}

TEST(unpack_leaves_device_nodes_out)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "dev/null", '3', NULL);
    test_box_add(b, "dev/disk", '4', NULL);
    test_box_add(b, "dev/file", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_UINT(2, b->result.left_out);
    ASSERT_FALSE(test_box_has(b, "dev/null"));
    ASSERT_TRUE(test_box_has(b, "dev/file"));
    test_box_close(b);
}

/* ---- whiteouts ---- */

static bool is_opaque(struct test_box *b, const char *path)
{
    int fd = openat(b->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char value[8];
    ssize_t n = fgetxattr(fd, "user.overlay.opaque", value, sizeof(value));

    close(fd);
    return n == 1 && value[0] == 'y';
}

static bool is_whiteout(struct test_box *b, const char *path)
{
    struct stat st = test_box_stat(b, path);

    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

TEST(unpack_of_whiteouts_makes_those_of_overlayfs)
{
    struct test_box *b = test_box_open();

    test_box_add(b, "gone/.wh.file", '0', NULL);
    test_box_add(b, "all/", '5', NULL);
    test_box_add(b, "all/.wh..wh..opq", '0', NULL);
    test_box_add(b, "all/new", '0', NULL);
    test_box_add(b, ".wh..wh.plnk/", '5', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_TRUE(is_whiteout(b, "gone/file"));
    ASSERT_FALSE(test_box_has(b, "gone/.wh.file"));
    ASSERT_TRUE(is_opaque(b, "all"));
    ASSERT_FALSE(test_box_has(b, ".wh..wh.plnk"));
    ASSERT_UINT(1, test_box_count(b->root, "all"));
    test_box_close(b);
}

TEST(unpack_of_a_whiteout_and_its_name_in_one_layer_hides_only_what_is_below)
{
    struct test_box *b = test_box_open();

    test_box_add(b, ".wh.before", '0', NULL);
    test_box_add(b, "before/", '5', NULL);
    test_box_add(b, "after/", '5', NULL);
    test_box_add(b, "after/file", '0', NULL);
    test_box_add(b, ".wh.after", '0', NULL);
    test_box_add(b, ".wh.file", '0', NULL);
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "file", .data = AGX_STR("new") });
    test_box_add(b, ".wh.file", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_TRUE(is_opaque(b, "before"));
    ASSERT_TRUE(is_opaque(b, "after"));
    ASSERT_TRUE(test_box_has(b, "after/file"));
    ASSERT_CSTR("new", test_box_text(b->root, "file"));
    test_box_close(b);
}

TEST(unpack_of_a_whiteout_of_no_name_is_refused)
{
    static const char *const names[] = { "a/.wh.", "a/.wh..", "a/.wh..." };

    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        struct test_box *b = test_box_open();

        test_box_add(b, names[i], '0', NULL);
        test_box_refuses(b, AGX_INVALID_ARGUMENT, "it hides no name");
    }
}

TEST(unpack_without_whiteouts_takes_their_names_for_files)
{
    struct test_box *b = test_box_open();

    b->params.whiteouts = false;
    test_box_add(b, ".wh.file", '0', NULL);
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_TRUE(S_ISREG(test_box_stat(b, ".wh.file").st_mode));
    test_box_close(b);
}

/* ---- into a root that has files ---- */

static struct test_box *root_open(void)
{
    struct test_box *b = test_box_open();

    b->params.whiteouts = false;
    b->params.into = "/home/me";
    ASSERT_INT(0, mkdirat(b->root, "usr", 0755));
    ASSERT_INT(0, symlinkat("/usr/people", b->root, "home"));
    ASSERT_INT(0, mkdirat(b->root, "usr/people", 0755));
    return b;
}

TEST(unpack_into_a_root_follows_its_symlinks_inside_it)
{
    struct test_box *b = root_open();

    ASSERT_INT(0, mkdirat(b->root, "usr/people/me", 0755));
    ASSERT_INT(0, symlinkat("../../../../../../usr", b->root, "usr/people/me/up"));
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a/b", .data = AGX_STR("text") });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "up/c", .data = AGX_STR("here") });
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "up", .type = '5', .mode = 0711 });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("text", test_box_text(b->root, "usr/people/me/a/b"));
    ASSERT_CSTR("here", test_box_text(b->root, "usr/c"));
    ASSERT_UINT(0711, test_box_stat(b, "usr").st_mode & 07777);
    ASSERT_TRUE(S_ISLNK(test_box_stat(b, "usr/people/me/up").st_mode));
    test_box_close(b);
}

TEST(unpack_into_a_root_makes_the_directories_that_are_missing)
{
    struct test_box *b = root_open();

    b->params.into = "/home/you/deep/down";
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "a", .data = AGX_STR("text") });
    test_tar_end(&b->tar);
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("text", test_box_text(b->root, "usr/people/you/deep/down/a"));
    b->params.into = "/";
    ASSERT_OK(test_box_unpack(b));
    ASSERT_CSTR("text", test_box_text(b->root, "a"));
    test_box_close(b);
}

TEST(unpack_into_a_root_replaces_files_but_no_directories)
{
    struct test_box *b = root_open();

    b->params.into = "/";
    ASSERT_INT(0, mkdirat(b->root, "usr/dir", 0755));
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = "usr/dir" });
    test_box_refuses(b, AGX_FAILED_PRECONDITION, "directory of that name");
}

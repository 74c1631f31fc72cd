/*
 * unpack_box.h: unpacks a tar made with tar.h, and checks that nothing outside the target directory
 * has changed.
 *
 *     struct test_box *b = test_box_open();
 *     test_box_add(b, "dir/", '5', NULL);
 *     test_tar_end(&b->tar);
 *     ASSERT_OK(test_box_unpack(b));
 *     test_box_close(b);
 */
#ifndef AGX_TESTS_UNPACK_BOX_H
#define AGX_TESTS_UNPACK_BOX_H

#include "base/fd.h"
#include "base/path.h"
#include "image/unpack.h"
#include "tests/support/tar.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* A directory `out` to unpack into, and beside it a file that must not change. */
struct test_box {
    char dir[32];
    int dirfd, root;
    struct test_tar tar;
    size_t given; /* bytes of the tar passed so far */
    size_t piece; /* bytes to pass at a time */
    struct agx_unpack_params params;
    struct agx_unpack_result result;
    struct agx_error *error;
};

static inline ssize_t test_box_give(void *user, void *buf, size_t size, struct agx_error **err)
{
    struct test_box *b = user;
    size_t n = AGX_MIN(AGX_MIN(size, b->piece), b->tar.bytes.len - b->given);

    (void)err;
    if (n > 0)
        memcpy(buf, b->tar.bytes.data + b->given, n);
    b->given += n;
    return (ssize_t)n;
}

static inline struct test_box *test_box_open(void)
{
    struct test_box *b = calloc(1, sizeof(*b));
    int fd;

    ASSERT_NOT_NULL(b);
    snprintf(b->dir, sizeof(b->dir), "/tmp/agx-unpack-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(b->dir));
    b->dirfd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_INT(0, mkdirat(b->dirfd, "out", 0755));
    b->root = openat(b->dirfd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(b->dirfd, "victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_INT(6, write(fd, "intact", 6));
    close(fd);
    b->tar = test_tar_new();
    b->piece = 1000;
    b->params = (struct agx_unpack_params){ .read = test_box_give,
                                            .user = b,
                                            .limits = AGX_UNPACK_LIMITS_INIT,
                                            .whiteouts = true,
                                            .owners = geteuid() == 0 };
    return b;
}

static inline int test_box_unpack(struct test_box *b)
{
    b->given = 0;
    b->error = agx_error_free(b->error);
    return agx_unpack(b->root, &b->params, &b->result, &b->error);
}

/* The text of a file beneath the box's own directory. */
static inline const char *test_box_text(int dirfd, const char *path)
{
    static char text[256];
    struct agx_buf out = AGX_BUF_INIT(sizeof(text) - 1);

    ASSERT_OK(agx_fd_read_file(dirfd, path, &out, NULL));
    memcpy(text, out.data ? (const char *)out.data : "", out.len);
    text[out.len] = '\0';
    agx_buf_done(&out);
    return text;
}

static inline unsigned test_box_count(int dirfd, const char *path)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    unsigned n = 0;

    ASSERT_NOT_NULL(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Asserts that nothing outside `out` has changed. */
static inline void test_box_close(struct test_box *b)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_CSTR("intact", test_box_text(b->dirfd, "victim"));
    ASSERT_UINT(2, test_box_count(b->dirfd, "."));
    close(b->root);
    close(b->dirfd);
    ASSERT_OK(agx_path_remove_tree(tmp, b->dir + strlen("/tmp/"), NULL));
    close(tmp);
    test_tar_done(&b->tar);
    agx_error_free(b->error);
    free(b);
}

/* Asserts that unpacking fails with this code and these words. */
static inline void test_box_refuses(struct test_box *b, enum agx_code code, const char *words)
{
    test_tar_end(&b->tar);
    ASSERT_CODE(code, test_box_unpack(b));
    ASSERT_MESSAGE(b->error, words);
    test_box_close(b);
}

static inline struct stat test_box_stat(struct test_box *b, const char *path)
{
    struct stat st = { 0 };

    if (fstatat(b->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        FAIL("there is no '%s'", path);
    return st;
}

static inline bool test_box_has(struct test_box *b, const char *path)
{
    return faccessat(b->root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void test_box_add(struct test_box *b, const char *name, char type, const char *link)
{
    test_tar_add(&b->tar, (struct test_tar_entry){ .name = name, .type = type, .link = link });
}

#endif

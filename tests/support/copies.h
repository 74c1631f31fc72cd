/* copies.h: a source to copy in tests, and the result of the copy. */
#ifndef AGX_TESTS_COPIES_H
#define AGX_TESTS_COPIES_H

#include "backend/files/copies.h"
#include "base/buf.h"
#include "base/path.h"
#include "tests/support/loop.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

struct test_copies {
    struct agx_loop *loop;
    struct agx_pool *pool;
    char dir[32]; /* the test's directory; the source is "src" in it */
    int src;      /* the source, when it is a directory */
    char source[40];
    struct agx_copy copy; /* of the source to "/home/me/to" */
    enum agx_copies_target there;
    size_t pipe_bytes;
    struct agx_copies *copies;
    struct agx_buf tar;
    unsigned n_more;
    bool ended;
    struct agx_error *error;
};

static inline struct test_copies test_copies_open(void)
{
    struct test_copies t = { .dir = "/tmp/agx-copies-XXXXXX",
                             .there = AGX_COPIES_DIRECTORY,
                             .pipe_bytes = 4096,
                             .tar = AGX_BUF_INIT((size_t)64 << 20) };
    const struct agx_pool_config c = { "copies", 2, 8 };

    t.loop = test_loop_open();
    ASSERT_OK(agx_pool_open(t.loop, &c, &t.pool, NULL));
    ASSERT_NOT_NULL(mkdtemp(t.dir));
    snprintf(t.source, sizeof(t.source), "%s/src", t.dir);
    ASSERT_INT(0, mkdir(t.source, 0755));
    t.src = open(t.source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_TRUE(t.src >= 0);
    ASSERT_OK(agx_text_set(&t.copy.source, t.source, NULL));
    ASSERT_OK(agx_text_set(&t.copy.target, "/home/me/to", NULL));
    return t;
}

/* Makes a file beneath the source, with its parent directories. */
static inline void test_copies_file(const struct test_copies *t, const char *path,
                                    struct agx_str content)
{
    const char *slash = strrchr(path, '/');
    int fd;

    if (slash) {
        char *above = agx_str_dup((struct agx_str){ path, (size_t)(slash - path) });

        fd = agx_path_mkdirs(t->src, above, 0755, NULL);
        ASSERT_OK(fd);
        close(fd);
        free(above);
    }
    fd = openat(t->src, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(content.len, write(fd, content.ptr, content.len));
    close(fd);
}

/* Reads until no bytes are left, or the end. */
static inline void test_copies_more(void *user)
{
    struct test_copies *t = user;
    char block[1000];
    ssize_t n;

    t->n_more++;
    while ((n = agx_copies_read(t->copies, block, sizeof(block))) > 0)
        ASSERT_OK(agx_buf_append(&t->tar, agx_str_bytes(block, (size_t)n)));
    if (n == -AGX_UNAVAILABLE)
        return;
    t->ended = true;
    t->error = agx_copies_take_error(t->copies);
    ASSERT_INT(t->error ? 1 : 0, n < 0);
    t->copies = agx_copies_close(t->copies);
}

static inline void test_copies_start(struct test_copies *t)
{
    const struct agx_copies_request q = { &t->copy, t->there, t->pipe_bytes, test_copies_more };

    t->tar.len = 0;
    t->n_more = 0;
    t->ended = false;
    t->error = agx_error_free(t->error);
    ASSERT_OK(agx_copies_open(t->loop, t->pool, &q, t, &t->copies, NULL));
}

/* Copies to the end. Returns 0, or the negative code with the error in t->error. */
static inline int test_copies_run(struct test_copies *t)
{
    test_copies_start(t);
    test_copies_more(t);
    test_loop_run(t->loop);
    ASSERT_TRUE(t->ended);
    return t->error ? -(int)t->error->code : 0;
}

static inline void test_copies_stopped(void *user, struct agx_error *error)
{
    (void)user;
    ASSERT_NULL(error);
}

static inline void test_copies_close(struct test_copies *t)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    agx_pool_stop(t->pool, 10000, test_copies_stopped, NULL);
    test_loop_run(t->loop);
    test_loop_close(t->loop);
    close(t->src);
    ASSERT_OK(agx_path_remove_tree(tmp, t->dir + strlen("/tmp/"), NULL));
    close(tmp);
    free(t->copy.source);
    free(t->copy.target);
    agx_words_done(&t->copy.exclude_patterns);
    agx_buf_done(&t->tar);
    t->error = agx_error_free(t->error);
}

/* ---- what is in the tar ---- */

struct test_copied {
    bool found;
    mode_t mode;
    uid_t uid;
    time_t mtime;
    int64_t size;
    char link[256], hardlink[256];
    char content[256]; /* its beginning */
    bool has_capability;
};

static inline struct archive *test_copies_tar(const struct test_copies *t)
{
    struct archive *a = archive_read_new();

    ASSERT_INT(ARCHIVE_OK, archive_read_support_format_tar(a));
    ASSERT_INT(ARCHIVE_OK, archive_read_open_memory(a, t->tar.data, t->tar.len));
    return a;
}

static inline unsigned test_copies_count(const struct test_copies *t)
{
    struct archive *a = test_copies_tar(t);
    struct archive_entry *e;
    unsigned n = 0;
    int r;

    while ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK)
        n++;
    ASSERT_INT(ARCHIVE_EOF, r);
    archive_read_free(a);
    return n;
}

static inline struct test_copied test_copies_find(const struct test_copies *t, const char *path)
{
    struct archive *a = test_copies_tar(t);
    struct test_copied c = { 0 };
    struct archive_entry *e;

    while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
        if (strcmp(archive_entry_pathname(e), path) != 0)
            continue;
        ASSERT_FALSE(c.found);
        c.found = true;
        c.mode = archive_entry_mode(e);
        c.uid = (uid_t)archive_entry_uid(e);
        c.mtime = archive_entry_mtime(e);
        c.size = archive_entry_size(e);
        c.has_capability = archive_entry_xattr_count(e) > 0;
        if (archive_entry_symlink(e))
            snprintf(c.link, sizeof(c.link), "%s", archive_entry_symlink(e));
        if (archive_entry_hardlink(e))
            snprintf(c.hardlink, sizeof(c.hardlink), "%s", archive_entry_hardlink(e));
        ASSERT_TRUE(archive_read_data(a, c.content, sizeof(c.content) - 1) >= 0);
    }
    archive_read_free(a);
    return c;
}

static inline bool test_copies_has(const struct test_copies *t, const char *path)
{
    return test_copies_find(t, path).found;
}

#endif

/* Resource usage of a native sandbox: parses the figures of links, and sizes an untrusted tree. */
#include "backend/native/limits/treesize.h"
#include "backend/native/resource_usage.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/banned.h"

#define HEAD                                                                                       \
    "Inter-|   Receive                                                |  Transmit\n"               \
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"

TEST(links_are_added_up_but_for_loopback)
{
    struct agx_resource_usage u = { 0 };

    agx_native_usage_links(AGX_STR(HEAD "    lo:  999  9 0 0 0 0 0 0  999 9 0 0 0 0 0 0\n"
                                        "  eth0: 1000 10 0 0 0 0 0 0  200 2 0 0 0 0 0 0\n"
                                        "tap0:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n"),
                           &u);
    ASSERT_UINT(1U << AGX_USAGE_RX | 1U << AGX_USAGE_RX_PACKETS | 1U << AGX_USAGE_TX |
                    1U << AGX_USAGE_TX_PACKETS,
                u.known);
    ASSERT_UINT(1005, u.figures[AGX_USAGE_RX]);
    ASSERT_UINT(11, u.figures[AGX_USAGE_RX_PACKETS]);
    ASSERT_UINT(206, u.figures[AGX_USAGE_TX]);
    ASSERT_UINT(3, u.figures[AGX_USAGE_TX_PACKETS]);
}

TEST(what_is_no_link_leaves_no_figure)
{
    static const char *const texts[] = {
        "",
        HEAD,
        HEAD "    lo: 999 9 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n",
        "eth0: 1 2 3\n",
        "eth0: a 2 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n",
        "eth0: 99999999999999999999999 2 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n",
        ":::\n\n:",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        struct agx_resource_usage u = { 0 };

        agx_native_usage_links(agx_str_from(texts[i]), &u);
        ASSERT_UINT(0, u.known);
    }
}

/* ---- trees ---- */

struct tree {
    char path[64];
    int fd; /* of the directory that the tree "t" is in */
};

static void make_tree(struct tree *t)
{
    (void)snprintf(t->path, sizeof(t->path), "/tmp/agx-treesize-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(t->path));
    t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_TRUE(t->fd >= 0);
    ASSERT_INT(0, mkdirat(t->fd, "t", 0700));
}

static void remove_tree(struct tree *t)
{
    ASSERT_OK(agx_path_remove_tree(t->fd, "t", NULL));
    (void)close(t->fd);
    ASSERT_INT(0, rmdir(t->path));
}

static void write_file(const struct tree *t, const char *name, size_t size)
{
    int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char block[4096];

    memset(block, 'x', sizeof(block));
    ASSERT_TRUE(fd >= 0);
    for (size_t i = 0; i < size; i += sizeof(block))
        ASSERT_INT((int)sizeof(block), (int)write(fd, block, sizeof(block)));
    ASSERT_INT(0, fsync(fd)); /* some file systems count blocks when they write them */
    (void)close(fd);
}

static void make_sparse(const struct tree *t, const char *name)
{
    int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(0, ftruncate(fd, (off_t)1 << 30));
    (void)close(fd);
}

static struct agx_treesize_limits limits(void)
{
    return (struct agx_treesize_limits){ .depth = AGX_NATIVE_USAGE_DEPTH,
                                         .deadline_ns = UINT64_MAX };
}

static uint64_t size_of(const struct tree *t)
{
    const struct agx_treesize_limits l = limits();
    uint64_t bytes = 0;

    ASSERT_OK(agx_treesize(t->fd, "t", &l, &bytes, NULL));
    return bytes;
}

TEST(a_tree_is_as_large_as_its_files)
{
    struct tree t;
    uint64_t before;

    make_tree(&t);
    ASSERT_INT(0, mkdirat(t.fd, "t/a", 0700));
    ASSERT_INT(0, mkdirat(t.fd, "t/a/b", 0700));
    before = size_of(&t);
    write_file(&t, "t/one", 65536);
    write_file(&t, "t/a/b/two", 65536);
    ASSERT_UINT(before + 2 * 65536, size_of(&t));
    /* Another name for a file is no other file. */
    ASSERT_INT(0, linkat(t.fd, "t/one", t.fd, "t/a/same", 0));
    ASSERT_UINT(before + 2 * 65536, size_of(&t));
    /* A large file with nothing in it takes nothing. */
    make_sparse(&t, "t/sparse");
    ASSERT_UINT(before + 2 * 65536, size_of(&t));
    remove_tree(&t);
}

TEST(symlinks_and_devices_lead_nowhere)
{
    struct tree t;
    uint64_t before;

    make_tree(&t);
    before = size_of(&t);
    ASSERT_INT(0, symlinkat("/usr", t.fd, "t/usr"));
    ASSERT_INT(0, symlinkat(".", t.fd, "t/self"));
    ASSERT_INT(0, mkfifoat(t.fd, "t/fifo", 0600));
    ASSERT_TRUE(size_of(&t) <= before + 3 * 4096);
    remove_tree(&t);
}

TEST(a_tree_that_is_too_deep_or_too_large_is_given_up)
{
    struct agx_treesize_limits l = limits();
    struct agx_error *err = NULL;
    atomic_bool stop = true;
    uint64_t bytes = 77;
    struct tree t;

    make_tree(&t);
    ASSERT_INT(0, mkdirat(t.fd, "t/a", 0700));
    ASSERT_INT(0, mkdirat(t.fd, "t/a/b", 0700));
    l.depth = 2;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_treesize(t.fd, "t", &l, &bytes, &err));
    ASSERT_MESSAGE(err, "more than 2 deep");
    agx_error_freep(&err);
    l.depth = 3;
    ASSERT_OK(agx_treesize(t.fd, "t", &l, &bytes, NULL));
    bytes = 77;
    l.deadline_ns = agx_clock_ns();
    ASSERT_CODE(AGX_DEADLINE_EXCEEDED, agx_treesize(t.fd, "t", &l, &bytes, NULL));
    l = limits();
    l.stop = &stop;
    ASSERT_CODE(AGX_CANCELLED, agx_treesize(t.fd, "t", &l, &bytes, NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_treesize(t.fd, "none", &l, &bytes, NULL));
    ASSERT_UINT(77, bytes);
    remove_tree(&t);
}

/* A directory in a directory, `levels` times, some with files. Returns the size of all. */
static uint64_t make_deep(const struct tree *t, unsigned levels)
{
    int at = openat(t->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    uint64_t bytes;

    ASSERT_TRUE(at >= 0);
    for (unsigned i = 0; i < levels; i++) {
        const struct tree here = { .fd = at };
        int next;

        /* Entries before and after the directory, wherever the file system lists them. */
        if (i % 1000 == 0) {
            write_file(&here, "a", 4096);
            write_file(&here, "z", 4096);
        }
        ASSERT_INT(0, mkdirat(at, "m", 0700));
        next = openat(at, "m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_TRUE(next >= 0);
        (void)close(at);
        at = next;
    }
    write_file(&(struct tree){ .fd = at }, "bottom", 65536);
    ASSERT_INT(0, fstat(at, &st));
    (void)close(at);
    bytes = (uint64_t)st.st_blocks * 512 * (levels + 1);
    return bytes + (levels + 999) / 1000 * 2 * 4096 + 65536;
}

TEST(all_files_of_a_deep_tree_are_counted)
{
    static const unsigned levels[] = { 15, 16, 17, 140, 3000 };

    for (size_t i = 0; i < AGX_ARRAY_LEN(levels); i++) {
        uint64_t bytes;
        struct tree t;

        make_tree(&t);
        bytes = make_deep(&t, levels[i]);
        ASSERT_UINT(bytes, size_of(&t));
        remove_tree(&t);
    }
}

TEST(a_deep_tree_needs_few_descriptors)
{
    struct rlimit old, few;
    struct tree t;

    make_tree(&t);
    (void)make_deep(&t, 140);
    ASSERT_INT(0, getrlimit(RLIMIT_NOFILE, &old));
    few = old;
    few.rlim_cur = (rlim_t)t.fd + 20;
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    (void)size_of(&t);
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &old));
    remove_tree(&t);
}

TEST(a_tree_beyond_the_limit_of_levels_is_given_up_with_the_reason)
{
    struct agx_treesize_limits l = limits();
    struct agx_error *err = NULL;
    uint64_t bytes = 77;
    struct tree t;

    make_tree(&t);
    (void)make_deep(&t, 140);
    l.depth = 140;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_treesize(t.fd, "t", &l, &bytes, &err));
    ASSERT_MESSAGE(err, "more than 140 deep");
    ASSERT_UINT(77, bytes);
    agx_error_freep(&err);
    l.depth = 141;
    ASSERT_OK(agx_treesize(t.fd, "t", &l, &bytes, NULL));
    remove_tree(&t);
}

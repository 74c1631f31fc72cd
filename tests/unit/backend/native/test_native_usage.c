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

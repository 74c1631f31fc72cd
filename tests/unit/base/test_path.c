#include "base/fd.h"
#include "base/path.h"
#include "base/path_internal.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* A directory of the test's own, with a file, directories, and symlinks that lead astray. */
struct tree {
    char root[64];
    int fd;
};

static void tree_init(struct tree *t)
{
    int fd;

    (void)snprintf(t->root, sizeof(t->root), "/tmp/agx-test-path-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(t->root));
    t->fd = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_TRUE(t->fd >= 0);
    fd = agx_path_mkdirs(t->fd, "a/b/c", 0755, NULL);
    ASSERT_OK(fd);
    ASSERT_INT(0, close(fd));
    ASSERT_OK(agx_path_write_file(t->fd, "a/b/f", AGX_STR("content"), 0644, NULL));
    ASSERT_INT(0, symlinkat("b", t->fd, "a/inner"));
    ASSERT_INT(0, symlinkat("/etc", t->fd, "outer"));
    ASSERT_INT(0, symlinkat("b/f", t->fd, "a/file"));
}

static void tree_done(struct tree *t)
{
    int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_INT(0, close(t->fd));
    ASSERT_OK(agx_path_remove_tree(parent, t->root + 5, NULL));
    ASSERT_INT(-1, access(t->root, F_OK));
    ASSERT_INT(0, close(parent));
}

static const struct {
    const char *path;
    int flags, want; /* an errno, or 0 */
} opens[] = {
    { "a/b/f", O_RDONLY, 0 },
    { "a/b", O_RDONLY | O_DIRECTORY, 0 },
    { ".", O_RDONLY, 0 },
    { "a/b", O_PATH, 0 },
    { "a/b/f", O_PATH, 0 },
    { "a/inner/f", O_RDONLY, ELOOP },
    { "a/inner/f", O_PATH, ELOOP },
    { "outer/passwd", O_RDONLY, ELOOP },
    { "a/file", O_RDONLY, ELOOP },
    { "a/file", O_PATH, ELOOP },
    { "a/file", O_PATH | O_NOFOLLOW, 0 },
    { "a/file", O_WRONLY | O_CREAT, ELOOP },
    { "a/file", O_WRONLY | O_CREAT | O_EXCL, EEXIST },
    { "a/inner", O_RDONLY | O_DIRECTORY, ELOOP },
    { "a/x/y", O_RDONLY, ENOENT },
    { "a/b/f/x", O_RDONLY, ENOTDIR },
    { "a/b/f", O_RDONLY | O_DIRECTORY, ENOTDIR },
    { "a/new", O_RDWR | O_CREAT, 0 },
};

TEST(path_open_by_the_kernel_and_by_walking_give_the_same)
{
    struct tree t;

    tree_init(&t);
    for (size_t i = 0; i < AGX_ARRAY_LEN(opens); i++) {
        for (int walk = 0; walk < 2; walk++) {
            int flags = opens[i].flags | O_CLOEXEC, fd, got;

            fd = walk ? path_open_walk(t.fd, opens[i].path, flags, 0600)
                      : path_open_kernel(t.fd, opens[i].path, flags, 0600);
            got = fd < 0 ? errno : 0;
            if (got == ENOSYS)
                SKIP("the kernel has no openat2");
            if (got != opens[i].want)
                FAIL("'%s' %s: errno %d, expected %d", opens[i].path, walk ? "walk" : "kernel", got,
                     opens[i].want);
            if (fd >= 0)
                ASSERT_INT(0, close(fd));
        }
    }
    tree_done(&t);
}

TEST(path_open_takes_odd_spellings_and_refuses_what_leads_out)
{
    static const char *const good[] = { "./a//b/./f", "a/b/f" }, *const dirs[] = { "a/b/", "a/." };
    static const char *const bad[] = { "", "/", "/etc", "..", "a/..", "a/../b", "../x" };
    struct tree t;
    int fd;

    tree_init(&t);
    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++) {
        fd = agx_path_open(t.fd, good[i], O_RDONLY, 0, NULL);
        ASSERT_OK(fd);
        ASSERT_INT(FD_CLOEXEC, fcntl(fd, F_GETFD));
        ASSERT_INT(0, close(fd));
        fd = agx_path_open(t.fd, dirs[i], O_RDONLY, 0, NULL);
        ASSERT_OK(fd);
        ASSERT_INT(0, close(fd));
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_open(t.fd, bad[i], O_RDONLY, 0, &err));
        ASSERT_MESSAGE(err, "path '");
    }
    ASSERT_CODE(AGX_NOT_FOUND, agx_path_open(t.fd, "a/b/f/", O_RDONLY, 0, NULL));
    tree_done(&t);
}

TEST(path_open_of_a_symlink_names_the_path)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct tree t;

    tree_init(&t);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_path_open(t.fd, "outer/passwd", O_RDONLY, 0, &err));
    ASSERT_MESSAGE(err, "open 'outer/passwd': Too many levels of symbolic links");
    tree_done(&t);
}

TEST(path_too_long_is_invalid)
{
    char path[PATH_MAX + 10];
    struct tree t;

    tree_init(&t);
    memset(path, 'x', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_open(t.fd, path, O_RDONLY, 0, NULL));
    path[NAME_MAX + 1] = '\0';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_open(t.fd, path, O_RDONLY, 0, NULL));
    ASSERT_INT(-1, path_open_walk(t.fd, path, O_RDONLY, 0));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_mkdirs(t.fd, path, 0755, NULL));
    tree_done(&t);
}

struct swapper {
    int dir;
    _Atomic bool stop;
};

/* Exchanges the directory "d" and the symlink "link", which leads to "secret". */
static void *swap(void *user)
{
    struct swapper *s = user;

    while (!s->stop)
        (void)!renameat2(s->dir, "d", s->dir, "link", RENAME_EXCHANGE);
    return NULL;
}

TEST(path_open_while_a_directory_turns_into_a_symlink_never_follows_it)
{
    struct swapper s = { .stop = false };
    struct tree t;
    pthread_t thread;

    tree_init(&t);
    s.dir = t.fd;
    ASSERT_INT(0, mkdirat(t.fd, "d", 0755));
    ASSERT_INT(0, mkdirat(t.fd, "secret", 0755));
    ASSERT_INT(0, symlinkat("secret", t.fd, "link"));
    ASSERT_OK(agx_path_write_file(t.fd, "secret/f", AGX_STR("secret"), 0644, NULL));
    ASSERT_INT(0, pthread_create(&thread, NULL, swap, &s));
    for (int i = 0; i < 4000; i++) { /* "d" as a directory has no "f" */
        ASSERT_INT(-1, path_open_walk(t.fd, "d/f", O_RDONLY, 0));
        ASSERT_TRUE(agx_path_open(t.fd, "d/f", O_RDONLY, 0, NULL) < 0);
    }
    s.stop = true;
    ASSERT_INT(0, pthread_join(thread, NULL));
    tree_done(&t);
}

TEST(path_mkdirs_makes_what_is_missing_and_follows_no_symlink)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct tree t;
    struct stat st;
    int fd;

    tree_init(&t);
    fd = agx_path_mkdirs(t.fd, "a/b/d//e/", 0700, NULL);
    ASSERT_OK(fd);
    ASSERT_INT(0, fstat(fd, &st));
    ASSERT_INT(S_IFDIR | 0700, st.st_mode);
    ASSERT_INT(0, close(fd));
    fd = agx_path_mkdirs(t.fd, "a/b/d/e", 0700, NULL);
    ASSERT_OK(fd);
    ASSERT_INT(0, close(fd));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_path_mkdirs(t.fd, "a/inner/x", 0700, &err));
    ASSERT_MESSAGE(err, "open directory 'inner' of 'a/inner/x'");
    ASSERT_INT(-1, faccessat(t.fd, "a/b/x", F_OK, 0));
    ASSERT_CODE(AGX_NOT_FOUND, agx_path_mkdirs(t.fd, "a/b/f/x", 0700, NULL));
    tree_done(&t);
}

static void check_content(int dir, const char *path, struct agx_str want, mode_t mode)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    struct stat st;

    ASSERT_OK(agx_fd_read_file(dir, path, &b, NULL));
    ASSERT_STR(want, agx_buf_peek(&b));
    ASSERT_INT(0, fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW));
    ASSERT_INT(S_IFREG | mode, st.st_mode);
}

TEST(path_write_file_replaces_the_whole_file_and_a_symlink_itself)
{
    struct tree t;

    tree_init(&t);
    ASSERT_OK(agx_path_write_file(t.fd, "a/b/f", AGX_STR("n"), 0666, NULL));
    check_content(t.fd, "a/b/f", AGX_STR("n"), 0666);
    ASSERT_OK(agx_path_write_file(t.fd, "top", AGX_STR(""), 0600, NULL));
    check_content(t.fd, "top", AGX_STR(""), 0600);
    ASSERT_OK(agx_path_write_file(t.fd, "a/file", AGX_STR("new"), 0600, NULL));
    check_content(t.fd, "a/file", AGX_STR("new"), 0600);
    check_content(t.fd, "a/b/f", AGX_STR("n"), 0666);
    tree_done(&t);
}

TEST(path_write_file_that_fails_leaves_nothing_behind)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct tree t;

    tree_init(&t);
    ASSERT_TRUE(agx_path_write_file(t.fd, "a/b/c", AGX_STR("x"), 0600, &err) < 0);
    ASSERT_MESSAGE(err, "write file 'a/b/c': rename");
    ASSERT_CODE(AGX_NOT_FOUND, agx_path_write_file(t.fd, "no/f", AGX_STR("x"), 0600, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_write_file(t.fd, "f/", AGX_STR("x"), 0600, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_path_write_file(t.fd, "a/inner/f", AGX_STR("x"), 0600, NULL));
    check_content(t.fd, "a/b/f", AGX_STR("content"), 0644);
    ASSERT_INT(0, unlinkat(t.fd, "a/b/f", 0));
    ASSERT_INT(0, unlinkat(t.fd, "a/b/c", AT_REMOVEDIR));
    ASSERT_INT(0, unlinkat(t.fd, "a/b", AT_REMOVEDIR)); /* so no temporary file is in it */
    tree_done(&t);
}

TEST(path_remove_tree_leaves_what_symlinks_point_to)
{
    struct tree t;

    tree_init(&t);
    ASSERT_OK(agx_path_write_file(t.fd, "kept", AGX_STR("kept"), 0600, NULL));
    ASSERT_INT(0, symlinkat("../kept", t.fd, "a/up"));
    ASSERT_INT(0, symlinkat("..", t.fd, "a/b/dots"));
    ASSERT_OK(agx_path_remove_tree(t.fd, "a", NULL));
    ASSERT_INT(-1, faccessat(t.fd, "a", F_OK, 0));
    check_content(t.fd, "kept", AGX_STR("kept"), 0600);
    ASSERT_OK(agx_path_remove_tree(t.fd, "outer", NULL));
    ASSERT_INT(0, access("/etc/passwd", F_OK));
    tree_done(&t);
}

TEST(path_remove_tree_of_what_is_not_there_succeeds_and_bad_names_fail)
{
    struct tree t;

    tree_init(&t);
    ASSERT_OK(agx_path_remove_tree(t.fd, "none", NULL));
    ASSERT_OK(agx_path_remove_tree(t.fd, "none/below", NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_path_remove_tree(t.fd, "a/inner/f", NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_remove_tree(t.fd, ".", NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_remove_tree(t.fd, "a/..", NULL));
    ASSERT_INT(0, faccessat(t.fd, "a/b/f", F_OK, 0));
    tree_done(&t);
}

TEST(path_remove_tree_is_not_stopped_by_depth)
{
    enum { DEPTH = 1200 }; /* more than a process has descriptors, by default */
    struct tree t;
    int at, next;

    tree_init(&t);
    at = agx_path_open(t.fd, "a", O_RDONLY | O_DIRECTORY, 0, NULL);
    for (int i = 0; i < DEPTH; i++) {
        ASSERT_INT(0, mkdirat(at, "deeper", 0755));
        next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_TRUE(next >= 0);
        ASSERT_INT(0, symlinkat("..", next, "up"));
        ASSERT_INT(0, close(at));
        at = next;
    }
    ASSERT_INT(0, close(at));
    ASSERT_OK(agx_path_remove_tree(t.fd, "a", NULL));
    tree_done(&t);
}

/* Directories of a width at each level, some of them deeper than what is open at a time. */
static void grow(int at, int levels)
{
    char name[16];

    for (int i = 0; i < 2 && levels > 0; i++) {
        int next, file;

        (void)snprintf(name, sizeof(name), "d%d", i);
        ASSERT_INT(0, mkdirat(at, name, 0755));
        next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_TRUE(next >= 0);
        file = openat(next, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_TRUE(file >= 0);
        ASSERT_INT(0, close(file));
        grow(next, i == 0 ? levels - 1 : AGX_MIN(levels - 1, 2));
        ASSERT_INT(0, close(next));
    }
}

TEST(path_remove_tree_is_stopped_neither_by_width_nor_by_open_levels)
{
    struct rlimit few, old;
    struct tree t;
    int r;

    tree_init(&t);
    grow(t.fd, 24);
    ASSERT_INT(0, getrlimit(RLIMIT_NOFILE, &old));
    few = old;
    few.rlim_cur = 40; /* as many as a depth of sixteen takes, and what the test has */
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    r = agx_path_remove_tree(t.fd, "d0", NULL);
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &old));
    ASSERT_OK(r);
    ASSERT_INT(-1, faccessat(t.fd, "d0", F_OK, 0));
    ASSERT_INT(0, faccessat(t.fd, "d1/f", F_OK, 0));
    tree_done(&t);
}

TEST(path_remove_tree_by_its_owner_is_not_stopped_by_modes)
{
    enum { NOBODY = 65534 };
    struct tree t;
    int r, fd;

    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    tree_init(&t);
    ASSERT_INT(0, fchmod(t.fd, 0777));
    ASSERT_INT(0, seteuid(NOBODY));
    fd = agx_path_mkdirs(t.fd, "n/o/p/q", 0755, NULL);
    r = fd < 0 ? fd : close(fd);
    r |= fchmodat(t.fd, "n/o/p", 0, 0) | fchmodat(t.fd, "n/o", 0500, 0) | fchmodat(t.fd, "n", 0, 0);
    if (r == 0)
        r = agx_path_remove_tree(t.fd, "n", NULL);
    ASSERT_INT(0, seteuid(0));
    ASSERT_OK(r);
    ASSERT_INT(-1, faccessat(t.fd, "n", F_OK, 0));
    tree_done(&t);
}

TEST(path_remove_tree_stops_at_a_mount)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char source[128], target[128];
    struct tree t;

    if (unshare(CLONE_NEWNS) < 0)
        SKIP("mount namespaces need privileges");
    /* In a chroot "/" is no mount point (EINVAL): there the end of the test undoes the mount. */
    ASSERT_TRUE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL);
    tree_init(&t);
    ASSERT_INT(0, mkdirat(t.fd, "precious", 0755));
    ASSERT_OK(agx_path_write_file(t.fd, "precious/f", AGX_STR("kept"), 0600, NULL));
    (void)snprintf(source, sizeof(source), "%s/precious", t.root);
    (void)snprintf(target, sizeof(target), "%s/a/b/c", t.root);
    ASSERT_INT(0, mount(source, target, NULL, MS_BIND, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_path_remove_tree(t.fd, "a", &err));
    ASSERT_MESSAGE(err, "remove 'a'");
    check_content(t.fd, "precious/f", AGX_STR("kept"), 0600);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_path_remove_tree(t.fd, "a/b/c", NULL));
    check_content(t.fd, "precious/f", AGX_STR("kept"), 0600);
    ASSERT_INT(0, umount2(target, MNT_DETACH));
    tree_done(&t);
}

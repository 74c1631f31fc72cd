#include "backend/files/hostpath.h"
#include "backend/files/sources.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define OTHER 12345 /* a user who is nobody of ours */

/* A directory of the test's own, and what is opened in it. */
struct world {
    char root[40];
    struct agx_writables writables;
    struct agx_hostpath_rules rules;
    struct agx_hostpath got;
    struct agx_error *err;
};

static void setup(struct world *w)
{
    *w = (struct world){ .root = "/tmp/agx-hostpath-XXXXXX", .got = AGX_HOSTPATH_INIT };
    ASSERT_NOT_NULL(mkdtemp(w->root));
    ASSERT_OK(agx_writables_init(&w->writables, NULL));
    w->rules = (struct agx_hostpath_rules){ .caller = geteuid(), .writables = &w->writables };
}

static void teardown(struct world *w)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    agx_hostpath_done(&w->got);
    agx_error_free(w->err);
    agx_writables_done(&w->writables);
    ASSERT_OK(agx_path_remove_tree(tmp, w->root + strlen("/tmp/"), NULL));
    (void)close(tmp);
}

/* A few at a time. */
static const char *at(const struct world *w, const char *path)
{
    static char texts[16][200];
    static unsigned n;
    char *out = texts[n++ % AGX_ARRAY_LEN(texts)];

    (void)snprintf(out, sizeof(texts[0]), "%s/%s", w->root, path);
    return out;
}

static void make_dir(struct world *w, const char *path, mode_t mode)
{
    ASSERT_INT(0, mkdir(at(w, path), 0700));
    ASSERT_INT(0, chmod(at(w, path), mode));
}

static void make_link(struct world *w, const char *text, const char *path)
{
    ASSERT_INT(0, symlink(text, at(w, path)));
}

static int walk(struct world *w, const char *path)
{
    agx_hostpath_done(&w->got);
    w->err = agx_error_free(w->err);
    return agx_hostpath_open(path[0] == '/' ? path : at(w, path), &w->rules, &w->got, &w->err);
}

/* The path leads to `to`. */
static void leads(struct world *w, const char *path, const char *to)
{
    struct stat got, want;

    ASSERT_OK(walk(w, path));
    ASSERT_INT(0, fstat(w->got.fd, &got));
    ASSERT_INT(0, lstat(at(w, to), &want));
    ASSERT_UINT(want.st_ino, got.st_ino);
    ASSERT_UINT(want.st_ino, w->got.id.ino);
    ASSERT_UINT(want.st_dev, w->got.id.dev);
    ASSERT_UINT(want.st_mode, w->got.mode);
    ASSERT_CSTR(at(w, to), w->got.path);
}

/* That symlink on its way is not followed, with these words. */
static void refused(struct world *w, const char *path, const char *link, const char *why)
{
    ASSERT_CODE(AGX_INVALID_ARGUMENT, walk(w, path));
    ASSERT_MESSAGE(w->err, at(w, link));
    ASSERT_MESSAGE(w->err, why);
    ASSERT_INT(-1, w->got.fd);
}

/* As a sandbox had it. */
static void give(struct world *w, const char *path)
{
    struct agx_hostpath h = AGX_HOSTPATH_INIT;
    const struct agx_hostpath_rules rules = { .caller = geteuid() };

    ASSERT_OK(agx_hostpath_open(at(w, path), &rules, &h, NULL));
    ASSERT_OK(agx_writables_load(&w->writables, &(struct agx_writable){ h.id, h.path }, NULL));
    agx_hostpath_done(&h);
}

TEST(way_without_symlinks_is_walked_to_its_end)
{
    struct world w;

    setup(&w);
    make_dir(&w, "a", 0777);
    make_dir(&w, "a/b", 0700);
    leads(&w, "a/b", "a/b");
    leads(&w, "a/./b//", "a/b");
    leads(&w, "a/../a/b/..", "a");
    ASSERT_OK(walk(&w, "/"));
    ASSERT_CSTR("/", w.got.path);
    ASSERT_OK(walk(&w, "/../.."));
    ASSERT_CSTR("/", w.got.path);
    ASSERT_CODE(AGX_NOT_FOUND, walk(&w, "a/c"));
    ASSERT_MESSAGE(w.err, "lstat");
    ASSERT_CODE(AGX_NOT_FOUND, walk(&w, "c/b"));
    teardown(&w);
}

TEST(way_through_a_file_and_names_that_are_too_long_are_errors_of_the_kernel)
{
    char longer[400];
    struct world w;
    int fd;

    setup(&w);
    fd = open(at(&w, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_TRUE(fd >= 0);
    (void)close(fd);
    leads(&w, "file", "file");
    ASSERT_TRUE(walk(&w, "file/x") < 0);
    ASSERT_INT(ENOTDIR, w.err->sys_errno);
    memset(longer, 'x', sizeof(longer) - 1);
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    ASSERT_TRUE(walk(&w, longer) < 0);
    ASSERT_INT(ENAMETOOLONG, w.err->sys_errno);
    teardown(&w);
}

TEST(symlinks_of_ours_in_directories_of_ours_are_followed)
{
    struct world w;

    setup(&w);
    make_dir(&w, "a", 0755);
    make_dir(&w, "a/b", 0755);
    make_link(&w, "a", "relative");
    make_link(&w, at(&w, "a"), "absolute");
    make_link(&w, "../a/../relative/b", "a/up");
    leads(&w, "relative/b", "a/b");
    leads(&w, "absolute/b", "a/b");
    ASSERT_OK(walk(&w, "a/up/."));
    ASSERT_CSTR(at(&w, "a/b"), w.got.path);
    teardown(&w);
}

TEST(symlink_at_the_end_is_opened_itself_unless_it_is_to_be_followed)
{
    struct world w;

    setup(&w);
    make_dir(&w, "a", 0755);
    make_link(&w, "a", "link");
    leads(&w, "link", "link");
    ASSERT_TRUE(S_ISLNK(w.got.mode));
    w.rules.follow_last = true;
    leads(&w, "link", "a");
    teardown(&w);
}

TEST(symlink_in_a_directory_that_others_may_write_to_is_refused)
{
    static const mode_t modes[] = { 0775, 0757, 0777 };
    struct world w;

    setup(&w);
    make_dir(&w, "to", 0755);
    make_dir(&w, "open", 0755);
    make_link(&w, at(&w, "to"), "open/link");
    leads(&w, "open/link/.", "to");
    for (size_t i = 0; i < AGX_ARRAY_LEN(modes); i++) {
        ASSERT_INT(0, chmod(at(&w, "open"), modes[i]));
        refused(&w, "open/link/.", "open/link", "others may write to its directory");
    }
    ASSERT_INT(0, chmod(at(&w, "open"), 01777));
    leads(&w, "open/link/.", "to");
    teardown(&w);
}

TEST(symlink_of_another_user_is_refused_and_the_callers_is_not)
{
    struct world w;

    if (geteuid() != 0)
        SKIP("only root may give files away");
    setup(&w);
    make_dir(&w, "to", 0755);
    make_dir(&w, "dir", 01777);
    make_link(&w, "../to", "dir/link");
    ASSERT_INT(0, lchown(at(&w, "dir/link"), OTHER, OTHER));
    refused(&w, "dir/link/.", "dir/link", "it belongs to another user");
    w.rules.caller = OTHER;
    leads(&w, "dir/link/.", "to");
    ASSERT_INT(0, chown(at(&w, "dir"), OTHER + 1, OTHER));
    refused(&w, "dir/link/.", "dir/link", "its directory belongs to another user");
    teardown(&w);
}

/* Ids that are not mapped may be root's, but not where they could be everybody's. */
TEST(symlink_without_an_id_here_is_followed_where_only_root_makes_one)
{
    struct world w;

    if (geteuid() != 0)
        SKIP("only root may give files away");
    setup(&w);
    make_dir(&w, "to", 0755);
    make_dir(&w, "dir", 0755);
    make_link(&w, "../to", "dir/link");
    ASSERT_INT(0, lchown(at(&w, "dir/link"), OTHER, OTHER));
    ASSERT_INT(0, chown(at(&w, "dir"), OTHER, OTHER));
    refused(&w, "dir/link/.", "dir/link", "belongs to another user");
    w.rules.unmapped = OTHER;
    leads(&w, "dir/link/.", "to");
    ASSERT_INT(0, chmod(at(&w, "dir"), 01777));
    refused(&w, "dir/link/.", "dir/link", "it belongs to another user");
    ASSERT_INT(0, lchown(at(&w, "dir/link"), 0, 0));
    leads(&w, "dir/link/.", "to");
    teardown(&w);
}

/* `mv a o; ln -s / a`, by root of a sandbox, who is root on disk. */
TEST(symlink_where_a_sandbox_could_make_it_is_refused)
{
    struct world w;

    setup(&w);
    make_dir(&w, "proj", 0755);
    make_dir(&w, "proj/a", 0755);
    make_dir(&w, "proj/a/etc", 0755);
    leads(&w, "proj/a/etc", "proj/a/etc");
    ASSERT_INT(0, rename(at(&w, "proj/a"), at(&w, "proj/o")));
    make_link(&w, "/", "proj/a");
    ASSERT_OK(walk(&w, "proj/a/etc")); /* nobody was given it yet */
    ASSERT_CSTR("/etc", w.got.path);
    give(&w, "proj");
    refused(&w, "proj/a/etc", "proj/a", "a sandbox may have made it");
    make_link(&w, "../a", "proj/o/link");
    refused(&w, "proj/o/link/etc", "proj/o/link", "a sandbox may have made it");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, walk(&w, "proj/o/.."));
    ASSERT_MESSAGE(w.err, "may have moved");
    make_link(&w, "proj/o", "beside");
    leads(&w, "beside/etc", "proj/o/etc");
    make_link(&w, "proj/a", "by");
    refused(&w, "by/etc", "proj/a", "a sandbox may have made it");
    teardown(&w);
}

TEST(directory_that_a_sandbox_had_is_known_by_another_name_and_by_another_number)
{
    struct world w;

    setup(&w);
    make_dir(&w, "proj", 0755);
    make_link(&w, "/etc", "proj/link");
    give(&w, "proj");
    ASSERT_INT(0, rename(at(&w, "proj"), at(&w, "renamed")));
    refused(&w, "renamed/link/.", "renamed/link", "a sandbox may have made it");
    make_dir(&w, "proj", 0755);
    make_link(&w, "/etc", "proj/link");
    refused(&w, "proj/link/.", "proj/link", "a sandbox may have made it");
    teardown(&w);
}

TEST(symlinks_in_a_circle_end_like_those_of_the_kernel)
{
    char path[64], text[64];
    struct world w;

    setup(&w);
    make_link(&w, "b", "a");
    make_link(&w, "a", "b");
    ASSERT_TRUE(walk(&w, "a/x") < 0);
    ASSERT_INT(ELOOP, w.err->sys_errno);
    make_dir(&w, "0", 0755);
    for (int i = 1; i <= 41; i++) {
        (void)snprintf(path, sizeof(path), "%d", i);
        (void)snprintf(text, sizeof(text), "%d", i - 1);
        make_link(&w, text, path);
    }
    leads(&w, "40/.", "0");
    ASSERT_TRUE(walk(&w, "41/.") < 0);
    ASSERT_INT(ELOOP, w.err->sys_errno);
    teardown(&w);
}

TEST(symlinks_of_proc_are_refused)
{
    struct world w;

    setup(&w);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, walk(&w, "/proc/self/root/etc"));
    ASSERT_MESSAGE(w.err, "one of /proc");
    teardown(&w);
}

TEST(what_is_marked_is_found_beneath_and_by_every_way)
{
    struct agx_file_id mark;
    struct world w;

    setup(&w);
    make_dir(&w, "mine", 0755);
    make_dir(&w, "mine/in", 0755);
    make_dir(&w, "mine-too", 0755);
    make_link(&w, "mine/in", "link");
    ASSERT_OK(walk(&w, "mine"));
    ASSERT_FALSE(w.got.marked);
    mark = w.got.id;
    w.rules.marks = &mark;
    w.rules.n_marks = 1;
    ASSERT_OK(walk(&w, "mine"));
    ASSERT_TRUE(w.got.marked);
    ASSERT_OK(walk(&w, "mine/in"));
    ASSERT_TRUE(w.got.marked);
    ASSERT_OK(walk(&w, "link/."));
    ASSERT_TRUE(w.got.marked);
    ASSERT_OK(walk(&w, "mine/../mine-too"));
    ASSERT_FALSE(w.got.marked);
    teardown(&w);
}

/* ---- what is kept ---- */

struct store {
    unsigned calls;
    size_t n;
    char path[200];
    agx_done_fn done;
    void *user;
    bool fails;
};

static int store_rows(void *user, const struct agx_writable *dirs, size_t n, agx_done_fn done,
                      void *done_user, struct agx_error **err)
{
    struct store *s = user;

    if (s->fails)
        return agx_error_set(err, AGX_UNAVAILABLE, "no store");
    s->calls++;
    s->n = n;
    (void)snprintf(s->path, sizeof(s->path), "%s", dirs[0].path);
    s->done = done;
    s->user = done_user;
    return 0;
}

static void on_kept(void *user, struct agx_error *error)
{
    *(int *)user += error ? 100 : 1;
    agx_error_free(error);
}

TEST(directory_is_stored_once_and_known_at_once)
{
    const struct agx_writable dirs[] = { { { 1, 2, 3 }, "/a" }, { { 1, 4, 3 }, "/b" } };
    struct agx_writables_keep *keep = NULL;
    struct agx_writables w;
    struct agx_error *err = NULL;
    struct store s = { .fails = true };
    int kept = 0;

    ASSERT_OK(agx_writables_init(&w, NULL));
    agx_writables_set_store(&w, store_rows, &s);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_writables_keep(&w, dirs, 1, on_kept, &kept, &keep, NULL));
    s.fails = false;
    ASSERT_INT(0, agx_writables_keep(&w, dirs, 1, on_kept, &kept, &keep, NULL));
    ASSERT_CSTR("/a", s.path);
    ASSERT_TRUE(agx_writables_has(&w, &dirs[0].id, "/elsewhere"));
    ASSERT_TRUE(agx_writables_has(&w, &(struct agx_file_id){ 9, 9, 9 }, "/a"));
    ASSERT_FALSE(agx_writables_has(&w, &dirs[1].id, "/b"));
    (void)agx_error_set(&err, AGX_UNAVAILABLE, "not stored");
    s.done(s.user, err);
    ASSERT_INT(100, kept);
    ASSERT_INT(0, agx_writables_keep(&w, dirs, 2, on_kept, &kept, &keep, NULL));
    ASSERT_UINT(2, s.n);
    s.done(s.user, NULL);
    ASSERT_INT(101, kept);
    ASSERT_INT(1, agx_writables_keep(&w, dirs, 2, on_kept, &kept, &keep, NULL));
    ASSERT_UINT(2, s.calls);
    agx_writables_done(&w);
}

TEST(keep_that_is_abandoned_tells_nobody)
{
    const struct agx_writable dir = { { 1, 2, 3 }, "/a" };
    struct agx_writables_keep *keep = NULL;
    struct agx_writables w;
    struct store s = { 0 };
    int kept = 0;

    ASSERT_OK(agx_writables_init(&w, NULL));
    agx_writables_set_store(&w, store_rows, &s);
    ASSERT_INT(0, agx_writables_keep(&w, &dir, 1, on_kept, &kept, &keep, NULL));
    agx_writables_abandon(keep);
    s.done(s.user, NULL);
    ASSERT_INT(0, kept);
    ASSERT_INT(1, agx_writables_keep(&w, &dir, 1, on_kept, &kept, &keep, NULL));
    agx_writables_done(&w);
}

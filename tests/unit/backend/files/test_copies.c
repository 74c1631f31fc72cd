#include "tests/support/copies.h"

#include "base/limits.h"

#include <sys/time.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <sys/xattr.h>

static void exclude(struct test_copies *t, const char *pattern)
{
    ASSERT_OK(agx_words_add(&t->copy.exclude_patterns, agx_str_from(pattern), NULL));
}

/* The source is `name` in what was the source. */
static void narrow(struct test_copies *t, const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", t->source, name);
    ASSERT_OK(agx_text_set(&t->copy.source, path, NULL));
}

static void resize(const struct test_copies *t, const char *name, off_t size)
{
    int fd = openat(t->src, name, O_WRONLY | O_CLOEXEC);

    ASSERT_INT(0, ftruncate(fd, size));
    close(fd);
}

TEST(copy_of_a_directory_is_its_content_with_modes_owners_and_times)
{
    struct test_copies t = test_copies_open();
    const struct timespec times[2] = { { 1000000, 5 }, { 1234567, 890 } };
    struct test_copied c;

    test_copies_file(&t, "a/b/file", AGX_STR("hello"));
    test_copies_file(&t, "run", AGX_STR("#!"));
    ASSERT_INT(0, mkdirat(t.src, "empty", 0700));
    ASSERT_INT(0, fchmodat(t.src, "run", 04755, 0));
    ASSERT_INT(0, utimensat(t.src, "run", times, 0));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(5, test_copies_count(&t)); /* and none for the source itself */
    c = test_copies_find(&t, "a/b/file");
    ASSERT_TRUE(S_ISREG(c.mode));
    ASSERT_CSTR("hello", c.content);
    ASSERT_UINT(getuid(), c.uid);
    c = test_copies_find(&t, "run");
    ASSERT_INT(04755, c.mode & 07777);
    ASSERT_INT(1234567, c.mtime);
    c = test_copies_find(&t, "empty/");
    ASSERT_TRUE(S_ISDIR(c.mode));
    ASSERT_INT(0700, c.mode & 07777);
    ASSERT_TRUE(test_copies_has(&t, "a/"));
    ASSERT_TRUE(test_copies_has(&t, "a/b/"));
    test_copies_close(&t);
}

TEST(copy_of_an_empty_directory_is_an_empty_tar)
{
    struct test_copies t = test_copies_open();

    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(0, test_copies_count(&t));
    test_copies_close(&t);
}

TEST(copy_to_what_is_missing_brings_the_target_along)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "file", AGX_STR("x"));
    ASSERT_INT(0, chmod(t.source, 0710));
    t.there = AGX_COPIES_MISSING;
    ASSERT_CSTR("/", agx_copies_unpack_at(&t.copy, t.there));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(2, test_copies_count(&t));
    ASSERT_INT(0710, test_copies_find(&t, "home/me/to/").mode & 07777);
    ASSERT_CSTR("x", test_copies_find(&t, "home/me/to/file").content);
    test_copies_close(&t);
}

TEST(copy_of_a_file_into_a_directory_keeps_its_name_and_elsewhere_takes_the_targets)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "file", AGX_STR("x"));
    narrow(&t, "file");
    ASSERT_CSTR("/home/me/to", agx_copies_unpack_at(&t.copy, t.there));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(1, test_copies_count(&t));
    ASSERT_CSTR("x", test_copies_find(&t, "file").content);
    for (t.there = AGX_COPIES_MISSING; t.there <= AGX_COPIES_OTHER; t.there += 2) {
        ASSERT_CSTR("/", agx_copies_unpack_at(&t.copy, t.there));
        ASSERT_INT(0, test_copies_run(&t));
        ASSERT_UINT(1, test_copies_count(&t));
        ASSERT_CSTR("x", test_copies_find(&t, "home/me/to").content);
    }
    test_copies_close(&t);
}

TEST(copy_of_a_directory_onto_a_file_is_refused)
{
    struct test_copies t = test_copies_open();

    t.there = AGX_COPIES_OTHER;
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "not a directory: /home/me/to");
    test_copies_close(&t);
}

TEST(copy_leaves_out_what_is_excluded_and_all_beneath_it)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "keep", AGX_STR(""));
    test_copies_file(&t, "a/x.pyc", AGX_STR(""));
    test_copies_file(&t, "a/x.py", AGX_STR(""));
    test_copies_file(&t, "a/node_modules/deep/file", AGX_STR(""));
    test_copies_file(&t, "b/one", AGX_STR(""));
    exclude(&t, "*.pyc");
    exclude(&t, "node_modules");
    exclude(&t, "b/on?");
    exclude(&t, "[");
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(4, test_copies_count(&t));
    ASSERT_TRUE(test_copies_has(&t, "keep"));
    ASSERT_TRUE(test_copies_has(&t, "a/"));
    ASSERT_TRUE(test_copies_has(&t, "a/x.py"));
    ASSERT_TRUE(test_copies_has(&t, "b/"));
    test_copies_close(&t);
}

TEST(copy_keeps_symlinks_that_stay_within_the_source)
{
    struct test_copies t = test_copies_open();
    char inside[64];

    snprintf(inside, sizeof(inside), "%s/./a/../b", t.source);
    test_copies_file(&t, "a/file", AGX_STR(""));
    ASSERT_INT(0, symlinkat("file", t.src, "a/up"));
    ASSERT_INT(0, symlinkat("../nothing", t.src, "a/broken"));
    ASSERT_INT(0, symlinkat("../../src/a", t.src, "a/round"));
    ASSERT_INT(0, symlinkat(inside, t.src, "absolute"));
    ASSERT_INT(0, symlinkat("..//a/.", t.src, "a/dir"));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_CSTR("file", test_copies_find(&t, "a/up").link);
    ASSERT_CSTR("../nothing", test_copies_find(&t, "a/broken").link);
    ASSERT_CSTR("../../src/a", test_copies_find(&t, "a/round").link);
    ASSERT_CSTR("..//a/.", test_copies_find(&t, "a/dir").link);
    ASSERT_CSTR(inside, test_copies_find(&t, "absolute").link);
    ASSERT_FALSE(test_copies_has(&t, "a/dir/file"));
    test_copies_close(&t);
}

TEST(copy_with_a_symlink_that_leads_out_fails_and_names_it)
{
    static const char *const out[] = { "..", "../src2/x", "/etc/passwd", "/", "a/../../b", "/tmp" };
    struct test_copies t = test_copies_open();
    char sibling[64];

    for (size_t i = 0; i < AGX_ARRAY_LEN(out); i++) {
        ASSERT_INT(0, symlinkat(out[i], t.src, "link"));
        ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
        ASSERT_MESSAGE(t.error, "copy source contains external symlink: ");
        ASSERT_MESSAGE(t.error, "/src/link");
        ASSERT_INT(0, unlinkat(t.src, "link", 0));
    }
    snprintf(sibling, sizeof(sibling), "%s2/x", t.source);
    ASSERT_INT(0, symlinkat(sibling, t.src, "link"));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    exclude(&t, "link");
    ASSERT_INT(0, test_copies_run(&t));
    test_copies_close(&t);
}

TEST(copy_skips_an_external_symlink_that_the_gitignore_of_the_root_covers)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, ".gitignore", AGX_STR("*.lnk\n!bad.lnk\n"));
    test_copies_file(&t, "plain.lnk", AGX_STR("ignored, and copied"));
    ASSERT_INT(0, symlinkat("/etc", t.src, "a.lnk"));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(2, test_copies_count(&t));
    ASSERT_TRUE(test_copies_has(&t, "plain.lnk"));
    ASSERT_TRUE(test_copies_has(&t, ".gitignore"));
    ASSERT_INT(0, symlinkat("/etc", t.src, "bad.lnk"));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    test_copies_close(&t);
}

TEST(copy_does_not_read_the_gitignore_of_another_directory)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "sub/.gitignore", AGX_STR("*"));
    ASSERT_INT(0, symlinkat("/etc", t.src, "sub/link"));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    test_copies_close(&t);
}

TEST(copy_skips_a_covered_directory_whole_when_a_symlink_in_it_leads_out)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, ".gitignore", AGX_STR("venv/\n/build\n"));
    test_copies_file(&t, "x/venv/bin/activate", AGX_STR(""));
    test_copies_file(&t, "x/venv/lib/deep/site", AGX_STR(""));
    ASSERT_INT(0, symlinkat("/usr/bin/python3", t.src, "x/venv/lib/deep/python"));
    test_copies_file(&t, "build/out/file", AGX_STR(""));
    test_copies_file(&t, "x/file", AGX_STR(""));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(6, test_copies_count(&t));
    ASSERT_FALSE(test_copies_has(&t, "x/venv/"));
    ASSERT_TRUE(test_copies_has(&t, "x/file"));
    ASSERT_TRUE(test_copies_has(&t, "build/out/file"));
    test_copies_close(&t);
}

TEST(copy_with_a_gitignore_that_is_too_large_fails)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, ".gitignore", AGX_STR("x\n"));
    resize(&t, ".gitignore", AGX_COPIES_GITIGNORE_MAX + 1);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "read '.gitignore'");
    test_copies_close(&t);
}

TEST(copy_of_a_tree_with_a_fifo_or_socket_fails_and_names_it)
{
    struct test_copies t = test_copies_open();
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT_INT(0, mkfifoat(t.src, "pipe", 0600));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "contains a FIFO: ");
    ASSERT_MESSAGE(t.error, "/src/pipe");
    exclude(&t, "pipe");
    ASSERT_INT(0, test_copies_run(&t));
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", t.source);
    ASSERT_INT(0, bind(s, (struct sockaddr *)&addr, sizeof(addr)));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "contains a socket: ");
    narrow(&t, "sock");
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "must be a file or directory");
    close(s);
    test_copies_close(&t);
}

TEST(copy_of_a_source_that_is_gone_or_a_symlink_fails_and_names_it)
{
    struct test_copies t = test_copies_open();

    ASSERT_INT(0, symlinkat("..", t.src, "link"));
    narrow(&t, "link");
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_copies_run(&t));
    ASSERT_INT(0, unlinkat(t.src, "link", 0));
    ASSERT_CODE(AGX_NOT_FOUND, test_copies_run(&t));
    ASSERT_MESSAGE(t.error, "/src/link");
    test_copies_close(&t);
}

TEST(copy_keeps_hard_links_among_its_files)
{
    struct test_copies t = test_copies_open();
    struct test_copied one, two;

    test_copies_file(&t, "one", AGX_STR("same"));
    ASSERT_INT(0, linkat(t.src, "one", t.src, "two", 0));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(2, test_copies_count(&t));
    one = test_copies_find(&t, "one");
    two = test_copies_find(&t, "two");
    ASSERT_TRUE(one.found && two.found);
    /* Whichever came first has the content. */
    ASSERT_CSTR("same", one.hardlink[0] ? two.content : one.content);
    ASSERT_CSTR(one.hardlink[0] ? "two" : "one", one.hardlink[0] ? one.hardlink : two.hardlink);
    test_copies_close(&t);
}

TEST(copy_keeps_file_capabilities)
{
    /* Revision 2, CAP_NET_RAW permitted and effective. */
    static const uint8_t capability[20] = { 1, 0, 0, 2, 0, 0x20 };
    struct test_copies t = test_copies_open();
    int fd;

    test_copies_file(&t, "ping", AGX_STR("x"));
    test_copies_file(&t, "plain", AGX_STR("x"));
    fd = openat(t.src, "ping", O_WRONLY | O_CLOEXEC);
    if (fsetxattr(fd, "security.capability", capability, sizeof(capability), 0) < 0) {
        close(fd);
        test_copies_close(&t);
        SKIP("file capabilities cannot be set here");
    }
    close(fd);
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_TRUE(test_copies_find(&t, "ping").has_capability);
    ASSERT_FALSE(test_copies_find(&t, "plain").has_capability);
    test_copies_close(&t);
}

TEST(copy_takes_names_of_any_bytes_and_great_length)
{
    struct test_copies t = test_copies_open();
    char path[600];

    memset(path, 'a', sizeof(path));
    for (size_t i = 100; i < 505; i += 101)
        path[i] = '/';
    path[510] = '\0';
    test_copies_file(&t, path, AGX_STR("deep"));
    test_copies_file(&t, "\xff\xfe name\n", AGX_STR("bytes"));
    test_copies_file(&t, "größe", AGX_STR("text"));
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(8, test_copies_count(&t));
    ASSERT_CSTR("deep", test_copies_find(&t, path).content);
    ASSERT_CSTR("bytes", test_copies_find(&t, "\xff\xfe name\n").content);
    ASSERT_CSTR("text", test_copies_find(&t, "größe").content);
    test_copies_close(&t);
}

TEST(copy_of_a_deep_tree_takes_no_more_descriptors_than_a_flat_one)
{
    enum { DEPTH = 1500 };
    struct test_copies t = test_copies_open();
    char path[2 * DEPTH + 1];
    int fd;

    for (size_t i = 0; i < DEPTH; i++)
        memcpy(path + 2 * i, "d/", 2);
    path[2 * DEPTH - 1] = '\0';
    fd = agx_path_mkdirs(t.src, path, 0755, NULL);
    ASSERT_OK(fd);
    close(fd);
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_UINT(DEPTH, test_copies_count(&t));
    test_copies_close(&t);
}

TEST(copy_through_a_small_pipe_brings_every_byte)
{
    enum { SIZE = 3000000 };
    struct test_copies t = test_copies_open();
    char *bytes = malloc(SIZE);
    struct archive *a;
    struct archive_entry *e;
    char *back = malloc(SIZE + 1);

    ASSERT_TRUE(bytes && back);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    test_copies_file(&t, "large", agx_str_bytes(bytes, SIZE));
    t.pipe_bytes = 777;
    ASSERT_INT(0, test_copies_run(&t));
    ASSERT_TRUE(t.n_more > 1);
    a = test_copies_tar(&t);
    ASSERT_INT(ARCHIVE_OK, archive_read_next_header(a, &e));
    ASSERT_INT(SIZE, archive_read_data(a, back, SIZE + 1));
    ASSERT_INT(0, memcmp(bytes, back, SIZE));
    archive_read_free(a);
    free(bytes);
    free(back);
    test_copies_close(&t);
}

/* Reads until the thread has filled the pipe and waits. */
static void start_and_take_one_byte(struct test_copies *t)
{
    char byte;

    test_copies_start(t);
    while (agx_copies_read(t->copies, &byte, 1) != 1)
        usleep(1000);
    ASSERT_OK(agx_buf_append(&t->tar, agx_str_bytes(&byte, 1)));
}

TEST(copy_of_a_file_that_shrinks_meanwhile_fails_and_of_one_that_grows_is_cut)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "file", AGX_STR("x"));
    resize(&t, "file", 1000000);
    start_and_take_one_byte(&t);
    resize(&t, "file", 2000000);
    test_copies_more(&t);
    test_loop_run(t.loop);
    ASSERT_TRUE(t.ended && !t.error);
    ASSERT_INT(1000000, test_copies_find(&t, "file").size);
    start_and_take_one_byte(&t);
    resize(&t, "file", 100);
    test_copies_more(&t);
    test_loop_run(t.loop);
    ASSERT_TRUE(t.ended);
    ASSERT_INT(AGX_ABORTED, t.error->code);
    ASSERT_MESSAGE(t.error, "'file' became shorter");
    test_copies_close(&t);
}

TEST(copy_closed_in_the_middle_ends_its_thread_and_says_nothing_more)
{
    struct test_copies t = test_copies_open();

    test_copies_file(&t, "file", AGX_STR("x"));
    resize(&t, "file", 10000000);
    start_and_take_one_byte(&t);
    t.copies = agx_copies_close(t.copies);
    test_loop_run(t.loop);
    ASSERT_UINT(0, t.n_more);
    test_copies_close(&t);
}

TEST(copy_closed_before_its_turn_never_runs)
{
    struct test_copies t = test_copies_open();
    struct agx_copies *kept[10] = { 0 };
    const struct agx_copies_request q = { &t.copy, t.there, 100, test_copies_more };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    size_t n = 0;

    test_copies_file(&t, "file", AGX_STR("x"));
    while (n < AGX_ARRAY_LEN(kept) && agx_copies_open(t.loop, t.pool, &q, &t, &kept[n], &err) == 0)
        n++;
    ASSERT_TRUE(n >= 8);
    if (err)
        ASSERT_INT(AGX_RESOURCE_EXHAUSTED, err->code);
    for (size_t i = n; i-- > 0;)
        agx_copies_close(kept[i]);
    test_loop_run(t.loop);
    ASSERT_UINT(0, t.n_more);
    test_copies_close(&t);
}

TEST(copy_whose_pool_stops_ends_cancelled)
{
    struct test_copies t = test_copies_open();
    const struct agx_pool_config c = { "other", 1, 1 };
    struct agx_pool *other = t.pool;

    test_copies_file(&t, "file", AGX_STR("x"));
    resize(&t, "file", 10000000);
    ASSERT_OK(agx_pool_open(t.loop, &c, &t.pool, NULL));
    start_and_take_one_byte(&t);
    agx_pool_stop(t.pool, 10000, test_copies_stopped, NULL);
    test_copies_more(&t);
    t.pool = other;
    test_loop_run(t.loop);
    ASSERT_TRUE(t.ended);
    ASSERT_INT(AGX_CANCELLED, t.error->code);
    test_copies_close(&t);
}

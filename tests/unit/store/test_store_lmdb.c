/* The store on disk: its files, and files that were changed while no store was open. */
#include "tests/support/store_dir.h"

#include "base/fd.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct agx_store_batch *batch_put(unsigned table, const char *key, struct agx_str value)
{
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, table, agx_str_from(key), value);
    return b;
}

/* A closed store with `n` records of 100 bytes. */
static void make_store(const struct test_dir *d, unsigned n)
{
    struct agx_store *st = test_dir_open(d);
    struct agx_store_batch *b = agx_store_batch_new();

    for (unsigned i = 0; i < n; i++) {
        char key[16], value[100];

        snprintf(key, sizeof(key), "key-%06u", i);
        memset(value, 'v', sizeof(value));
        agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key),
                            agx_str_bytes(value, sizeof(value)));
    }
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    test_dir_close(st);
}

static mode_t mode_of(const struct test_dir *d, const char *name)
{
    struct stat about;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", d->store, name);
    ASSERT_INT(0, stat(path, &about));
    return about.st_mode & 07777;
}

static off_t size_of(const char *path)
{
    struct stat about;

    ASSERT_INT(0, stat(path, &about));
    return about.st_size;
}

TEST(what_was_committed_is_there_after_closing_and_opening_again)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    test_store_put(st, TEST_EVENTS, "a", "2");
    test_dir_close(st);
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_store_has(st, TEST_EVENTS, "a", "2");
    test_dir_close(st);
    test_dir_remove(&d);
}

TEST(directory_and_files_are_closed_to_others_and_not_inherited)
{
    struct test_dir d = test_dir_make();
    mode_t before = umask(0);
    struct agx_store *st;
    unsigned n_ours = 0;
    struct dirent *entry;
    DIR *fds;

    ASSERT_INT(0, mkdir(d.store, 0777));
    st = test_dir_open(&d);
    umask(before);
    ASSERT_INT(0700, mode_of(&d, "."));
    ASSERT_INT(0600, mode_of(&d, "data.mdb"));
    ASSERT_INT(0600, mode_of(&d, "lock.mdb"));
    ASSERT_INT(0600, mode_of(&d, "lock"));
    ASSERT_INT(0600, mode_of(&d, "state"));
    fds = opendir("/proc/self/fd");
    ASSERT_NOT_NULL(fds);
    while ((entry = readdir(fds))) {
        char link[300], target[300] = "";
        uint64_t fd;

        snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
        if (readlink(link, target, sizeof(target) - 1) < 0 || !strstr(target, d.store) ||
            !agx_parse_u64(agx_str_from(entry->d_name), INT32_MAX, &fd))
            continue;
        n_ours++;
        ASSERT_TRUE(fcntl((int)fd, F_GETFD) & FD_CLOEXEC);
    }
    closedir(fds);
    ASSERT_TRUE(n_ours >= 4);
    test_dir_close(st);
    test_dir_remove(&d);
}

/* A child that is about to execute its program has the lock until then. */
TEST(the_store_of_a_killed_process_is_waited_for_while_a_child_of_it_has_its_lock)
{
    struct test_dir d = test_dir_make();
    int ends[2];
    char byte;
    pid_t child;

    ASSERT_INT(0, pipe(ends));
    child = fork();
    if (child == 0) {
        (void)test_dir_open(&d);
        if (fork() == 0) {
            ASSERT_INT(1, write(ends[1], "x", 1));
            (void)usleep(50000);
            _exit(0);
        }
        while (true)
            (void)pause();
    }
    ASSERT_INT(1, read(ends[0], &byte, 1));
    ASSERT_INT(0, kill(child, SIGKILL));
    ASSERT_INT(child, waitpid(child, NULL, 0));
    test_dir_close(test_dir_open(&d));
    (void)close(ends[0]);
    (void)close(ends[1]);
    test_dir_remove(&d);
}

TEST(a_store_in_use_is_refused_with_the_process_that_uses_it)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    char words[64];
    int status = 0;
    pid_t pid;

    snprintf(words, sizeof(words), "is in use by process '%d'", (int)getpid());
    test_dir_refuses(&d, &test_store_layout, AGX_FAILED_PRECONDITION, words);
    pid = fork();
    if (pid == 0) {
        const struct agx_store_lmdb_config c = test_dir_config(&d);
        struct agx_loop *l = NULL;
        struct agx_store *other = NULL;
        int r = agx_loop_open(&l, NULL);

        _exit(r == 0 && agx_store_lmdb_open(l, &c, &test_store_layout, &other, NULL) ==
                            -AGX_FAILED_PRECONDITION
                  ? 0
                  : 1);
    }
    ASSERT_TRUE(pid > 0 && waitpid(pid, &status, 0) == pid);
    ASSERT_INT(0, status);
    test_store_put(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    test_dir_remove(&d);
}

TEST(map_grows_by_itself_from_1_to_64_mib_while_reads_go_on)
{
    static char value[450000];
    struct test_dir d = test_dir_make();
    struct agx_store_lmdb_config c = test_dir_config(&d);
    struct agx_loop *l = test_loop_open();
    struct agx_store *st = NULL;
    struct agx_store_stats stats;
    const struct agx_store_range all = { .table = TEST_EVENTS };

    c.map_bytes = (size_t)1 << 20;
    ASSERT_OK(agx_store_lmdb_open(l, &c, &test_store_layout, &st, NULL));
    for (unsigned i = 0; i < 80; i++) {
        char key[16];

        snprintf(key, sizeof(key), "%u", i);
        ASSERT_INT(AGX_OK, test_store_commit(st, batch_put(TEST_EVENTS, key,
                                                           agx_str_bytes(value, sizeof(value)))));
        ASSERT_UINT(i + 1, test_store_count(st, &all));
    }
    agx_store_stats(st, &stats);
    ASSERT_UINT((size_t)64 << 20, stats.map_bytes);
    ASSERT_UINT(6, stats.map_growths);
    ASSERT_TRUE(stats.file_bytes > 80 * sizeof(value) && stats.file_bytes <= stats.map_bytes);
    ASSERT_UINT(80, stats.commits);
    test_store_close(st);
    /* And a store that is larger than the map it is opened with. */
    ASSERT_OK(agx_store_lmdb_open(l, &c, &test_store_layout, &st, NULL));
    ASSERT_UINT(80, test_store_count(st, &all));
    test_store_close(st);
    test_loop_close(l);
    test_dir_remove(&d);
}

TEST(a_store_at_its_largest_size_refuses_batches_and_takes_smaller_ones)
{
    static char value[300000];
    struct test_dir d = test_dir_make();
    struct agx_store_lmdb_config c = test_dir_config(&d);
    struct agx_loop *l = test_loop_open();
    struct agx_store *st = NULL;
    struct test_result big, small;
    struct agx_store_stats stats;

    c.map_bytes = 65536;
    c.map_max = (size_t)256 << 10;
    ASSERT_OK(agx_store_lmdb_open(l, &c, &test_store_layout, &st, NULL));
    test_store_submit(st, batch_put(TEST_EVENTS, "big", agx_str_bytes(value, sizeof(value))), &big);
    test_store_submit(st, batch_put(TEST_EVENTS, "small", AGX_STR("1")), &small);
    test_loop_run(l);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, big.code);
    ASSERT_NOT_NULL(strstr(big.text, "has reached its limit of 262144 bytes"));
    ASSERT_INT(AGX_OK, small.code);
    test_store_has(st, TEST_EVENTS, "big", NULL);
    test_store_has(st, TEST_EVENTS, "small", "1");
    agx_store_stats(st, &stats);
    ASSERT_UINT(1, stats.failed);
    test_store_close(st);
    test_loop_close(l);
    test_dir_remove(&d);
}

TEST(batches_of_one_turn_share_a_commit_unless_grouping_is_off)
{
    for (int grouping = 0; grouping < 2; grouping++) {
        struct test_dir d = test_dir_make();
        struct agx_store_lmdb_config c = test_dir_config(&d);
        struct agx_loop *l = test_loop_open();
        struct agx_store *st = NULL;
        struct agx_store_stats stats;
        struct test_result r[10];

        c.grouping = grouping;
        ASSERT_OK(agx_store_lmdb_open(l, &c, &test_store_layout, &st, NULL));
        for (int i = 0; i < 10; i++)
            test_store_submit(st, batch_put(TEST_EVENTS, "k", AGX_STR("v")), &r[i]);
        test_loop_run(l);
        agx_store_stats(st, &stats);
        ASSERT_UINT(10, stats.batches);
        ASSERT_UINT(grouping ? 1 : 10, stats.commits);
        ASSERT_UINT(grouping ? 10 : 1, stats.group_max);
        test_store_close(st);
        test_loop_close(l);
        test_dir_remove(&d);
    }
}

/* A store of that version, with one record. */
static void make_store_of_version(const struct test_dir *d, uint32_t version)
{
    struct agx_store_layout layout = test_store_layout;
    struct agx_store_lmdb_config c = test_dir_config(d);
    struct agx_loop *l = test_loop_open();
    struct agx_store *st = NULL;

    layout.version = version;
    ASSERT_OK(agx_store_lmdb_open(l, &c, &layout, &st, NULL));
    test_store_put(st, TEST_SANDBOXES, "a", "x");
    test_store_close(st);
    test_loop_close(l);
}

/* Neither is anything changed: the program that wrote the data goes on with them. */
static void refuses_version(uint32_t written, uint32_t wanted, const char *to_do)
{
    struct agx_store_layout layout = test_store_layout;
    struct test_dir d = test_dir_make();
    struct agx_store_lmdb_config c = test_dir_config(&d);
    struct agx_loop *l = test_loop_open();
    struct agx_store *st = NULL;
    char words[200];

    make_store_of_version(&d, written);
    layout.version = wanted;
    snprintf(words, sizeof(words), "'%s' has data of version %u; this program wants version %u: %s",
             d.store, written, wanted, to_do);
    test_dir_refuses(&d, &layout, AGX_FAILED_PRECONDITION, words);
    layout.version = written;
    ASSERT_OK(agx_store_lmdb_open(l, &c, &layout, &st, NULL));
    test_store_has(st, TEST_SANDBOXES, "a", "x");
    test_store_close(st);
    test_loop_close(l);
    test_dir_remove(&d);
}

TEST(data_of_a_newer_version_are_refused_with_what_to_do)
{
    refuses_version(7, 1, "use the newer program, or a backup from before it");
}

TEST(data_of_an_older_version_are_refused_with_what_to_do)
{
    refuses_version(1, 2, "use the older program, or another directory");
}

/* Every length that leaves something missing is refused, none ends us with a signal. */
TEST(a_truncated_file_is_refused_with_its_name_and_what_to_do)
{
    struct test_dir d = test_dir_make();
    off_t size;

    make_store(&d, 2000);
    size = size_of(d.data);
    for (off_t at = size - 4096; at > 0; at -= AGX_MAX(size / 9, 1)) {
        ASSERT_INT(0, truncate(d.data, at));
        test_dir_refuses(&d, &test_store_layout, AGX_DATA_LOSS, "restore a backup");
        test_dir_refuses(&d, &test_store_layout, AGX_DATA_LOSS, d.data);
    }
    ASSERT_INT(0, truncate(d.data, 100));
    test_dir_refuses(&d, &test_store_layout, AGX_DATA_LOSS, "ends within its first pages");
    ASSERT_INT(0, truncate(d.data, 0));
    test_dir_refuses(&d, &test_store_layout, AGX_DATA_LOSS, "missing or empty");
    ASSERT_INT(0, unlink(d.data));
    test_dir_refuses(&d, &test_store_layout, AGX_DATA_LOSS, "missing or empty");
    test_dir_remove(&d);
}

static void flip(const char *path, off_t at, unsigned char bits)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(1, pread(fd, &byte, 1, at));
    byte ^= bits;
    ASSERT_INT(1, pwrite(fd, &byte, 1, at));
    close(fd);
}

static void rewrite(const char *path, struct agx_str bytes)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_fd_write_all(fd, bytes, NULL));
    close(fd);
}

static int add_up(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    (void)err;
    (void)key;
    *(size_t *)user += value.len;
    return 0;
}

/* What opens after a byte was flipped must still have everything: the byte was in no record. */
static bool opens_whole(const struct test_dir *d, unsigned n)
{
    const struct agx_store_lmdb_config c = test_dir_config(d);
    const struct agx_store_range all = { .table = TEST_SANDBOXES };
    struct agx_loop *l = test_loop_open();
    struct agx_error *err = NULL;
    struct agx_store *st = NULL;
    size_t bytes = 0;
    int r = agx_store_lmdb_open(l, &c, &test_store_layout, &st, &err);

    if (r == 0) {
        ASSERT_OK(agx_store_scan(st, &all, add_up, &bytes, NULL));
        ASSERT_UINT(n * 100, bytes);
        test_store_close(st);
    } else {
        ASSERT_TRUE(r == -AGX_DATA_LOSS || r == -AGX_FAILED_PRECONDITION);
        agx_error_free(err);
    }
    test_loop_close(l);
    return r == 0;
}

TEST(a_flipped_byte_is_found_or_hurts_nobody)
{
    struct test_dir d = test_dir_make();
    unsigned refused = 0, tried = 0;
    _cleanup_buf_ struct agx_buf good = AGX_BUF_INIT((size_t)4 << 20);

    make_store(&d, 500);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, d.data, &good, NULL));
    for (off_t at = 1; at < (off_t)good.len; at += (off_t)good.len / 101, tried++) {
        flip(d.data, at, (unsigned char)(1 << at % 8));
        refused += !opens_whole(&d, 500);
        rewrite(d.data, agx_buf_peek(&good));
    }
    printf("# %u of %u flipped bytes were found\n", refused, tried);
    ASSERT_TRUE(refused > tried / 3); /* most bytes are in records */
    ASSERT_TRUE(opens_whole(&d, 500));
    test_dir_remove(&d);
}

TEST(a_byte_that_flips_while_the_store_is_open_is_data_loss_when_it_is_read)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    _cleanup_buf_ struct agx_buf file = AGX_BUF_INIT((size_t)1 << 20), out = AGX_BUF_INIT(100);
    const struct agx_store_range all = { .table = TEST_SANDBOXES };
    struct agx_error *err = NULL;
    size_t n = 0;
    char *at;

    test_store_put(st, TEST_SANDBOXES, "a", "a-needle-in-the-file");
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, d.data, &file, NULL));
    at = memmem(file.data, file.len, "a-needle", 8);
    ASSERT_NOT_NULL(at);
    flip(d.data, at - (char *)file.data, 1);
    ASSERT_CODE(AGX_DATA_LOSS, agx_store_get(st, TEST_SANDBOXES, AGX_STR("a"), &out, &err));
    ASSERT_MESSAGE(err, "the checksum of 'a' in 'sandboxes' differs");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_DATA_LOSS, agx_store_scan(st, &all, add_up, &n, &err));
    agx_error_free(err);
    /* Others are served as before. */
    test_store_put(st, TEST_SANDBOXES, "b", "2");
    test_store_has(st, TEST_SANDBOXES, "b", "2");
    test_dir_close(st);
    test_dir_remove(&d);
}

TEST(backup_taken_while_commits_go_on_opens_as_a_store)
{
    struct test_dir d = test_dir_make(), copy = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct test_result backup = { 0 }, r[50];
    int fd;

    test_store_put(st, TEST_SANDBOXES, "before", "1");
    ASSERT_INT(0, mkdir(copy.store, 0700));
    fd = open(copy.data, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_store_backup(st, fd, test_on_done, &backup, NULL));
    for (int i = 0; i < 50; i++)
        test_store_submit(st, batch_put(TEST_EVENTS, "e", AGX_STR("x")), &r[i]);
    test_loop_run(st->loop);
    close(fd);
    ASSERT_INT(AGX_OK, backup.code);
    ASSERT_INT(AGX_OK, r[49].code);
    test_dir_close(st);
    st = test_dir_open(&copy);
    test_store_has(st, TEST_SANDBOXES, "before", "1");
    test_store_put(st, TEST_SANDBOXES, "after", "2");
    test_dir_close(st);
    test_dir_remove(&copy);
    test_dir_remove(&d);
}

TEST(close_waits_for_a_backup)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct test_result backup = { 0 };
    int fd = open(d.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    ASSERT_OK(agx_store_backup(st, fd, test_on_done, &backup, NULL));
    test_dir_close(st);
    ASSERT_UINT(1, backup.n);
    close(fd);
    test_dir_remove(&d);
}

TEST(a_directory_that_cannot_be_made_is_named)
{
    struct test_dir d = test_dir_make();

    snprintf(d.store, sizeof(d.store), "%s/no/store", d.path);
    test_dir_refuses(&d, &test_store_layout, AGX_NOT_FOUND, "/no/store'");
    test_dir_remove(&d);
}

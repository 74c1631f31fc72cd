/* Full or read-only disks: small file systems in a mount namespace of this process. */
#include "tests/support/store_dir.h"

#include <sched.h>
#include <sys/mount.h>

/* A tmpfs of that size over the test's directory. It goes with the process, at the latest. */
static struct test_dir make_disk(const char *options)
{
    static bool apart;
    struct test_dir d = test_dir_make();

    /* In a chroot "/" is no mount point (EINVAL): there the end of each test undoes its mount. */
    if (!apart && (unshare(CLONE_NEWNS) < 0 ||
                   (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 && errno != EINVAL))) {
        test_dir_remove(&d);
        SKIP("needs the right to mount");
    }
    apart = true;
    ASSERT_INT(0, mount("tmpfs", d.path, "tmpfs", 0, options));
    return d;
}

static void drop_disk(const struct test_dir *d)
{
    ASSERT_INT(0, umount(d->path));
    test_dir_remove(d);
}

/* Takes all space that is left. */
static void fill_disk(const struct test_dir *d)
{
    static char block[4096];
    char path[80];
    int fd;

    snprintf(path, sizeof(path), "%s/filler", d->path);
    fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_TRUE(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    ASSERT_INT(ENOSPC, errno);
    close(fd);
}

static void empty_disk(const struct test_dir *d)
{
    char path[80];

    snprintf(path, sizeof(path), "%s/filler", d->path);
    ASSERT_INT(0, unlink(path));
}

static struct agx_store_batch *batch_big(const char *key)
{
    static char value[20000];
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, TEST_EVENTS, agx_str_from(key), agx_str_bytes(value, sizeof(value)));
    return b;
}

TEST(a_full_disk_refuses_batches_serves_reads_and_recovers_by_itself)
{
    struct test_dir d = make_disk("size=2m");
    struct agx_store *st = test_dir_open(&d);
    struct agx_store_stats stats;
    struct test_result r[3];

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    fill_disk(&d);
    for (int i = 0; i < 3; i++)
        test_store_submit(st, batch_big("big"), &r[i]);
    test_loop_run(st->loop);
    for (int i = 0; i < 3; i++) {
        ASSERT_INT(AGX_RESOURCE_EXHAUSTED, r[i].code);
        ASSERT_NOT_NULL(strstr(r[i].text, "data.mdb': No space left on device"));
    }
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_store_has(st, TEST_EVENTS, "big", NULL);
    agx_store_stats(st, &stats);
    ASSERT_UINT(3, stats.failed);
    empty_disk(&d);
    ASSERT_INT(AGX_OK, test_store_commit(st, batch_big("big")));
    test_dir_close(st);
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    drop_disk(&d);
}

TEST(a_store_on_a_full_disk_can_be_opened_and_read)
{
    struct test_dir d = make_disk("size=2m");
    struct agx_store *st = test_dir_open(&d);

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    fill_disk(&d);
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, test_store_commit(st, batch_big("big")));
    test_dir_close(st);
    drop_disk(&d);
}

TEST(a_new_store_on_a_full_disk_is_resource_exhausted_and_can_be_made_later)
{
    struct test_dir d = make_disk("size=1m");
    struct agx_store *st;

    fill_disk(&d);
    test_dir_refuses(&d, &test_store_layout, AGX_RESOURCE_EXHAUSTED, "No space left on device");
    empty_disk(&d);
    st = test_dir_open(&d);
    test_store_put(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    drop_disk(&d);
}

TEST(a_backup_onto_a_full_disk_fails_and_the_store_goes_on)
{
    struct test_dir d = test_dir_make(), full = make_disk("size=64k");
    struct agx_store *st = test_dir_open(&d);
    struct test_result r = { 0 };
    int fd = open(full.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    for (int i = 0; i < 10; i++) {
        char key[8];

        snprintf(key, sizeof(key), "%d", i);
        ASSERT_INT(AGX_OK, test_store_commit(st, batch_big(key)));
    }
    ASSERT_OK(agx_store_backup(st, fd, test_on_done, &r, NULL));
    test_loop_run(st->loop);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "No space left on device"));
    test_store_put(st, TEST_SANDBOXES, "a", "1");
    close(fd);
    test_dir_close(st);
    drop_disk(&full);
    test_dir_remove(&d);
}

TEST(a_store_on_a_read_only_file_system_is_refused)
{
    struct test_dir d = make_disk("size=1m");
    struct agx_store *st = test_dir_open(&d);

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    ASSERT_INT(0, mount("none", d.path, NULL, MS_REMOUNT | MS_RDONLY, NULL));
    test_dir_refuses(&d, &test_store_layout, AGX_PERMISSION_DENIED, "Read-only file system");
    ASSERT_INT(0, mount("none", d.path, NULL, MS_REMOUNT, NULL));
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    drop_disk(&d);
}

/*
 * Failing disks and slow disks. This program has its own write(), pwrite() and fdatasync(), which
 * LMDB's library finds before libc's. They call the real functions unless a test makes them fail or
 * wait.
 */
#include "tests/support/store_dir.h"

#include "base/fd.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static atomic_int sync_errno, meta_errno; /* the next call fails with it; 0: none does */
static atomic_bool slow;                  /* fdatasync() tells `reached` and waits for `gate` */
static sem_t reached, gate;
static atomic_int slow_fd = -1; /* the next write() to it does the same */

int fdatasync(int fd) __attribute__((visibility("default")));
ssize_t write(int fd, const void *bytes, size_t n) __attribute__((visibility("default")));
/* By its name for the linker: our headers may turn pwrite into pwrite64, which LMDB does not call.
 */
ssize_t faulty_pwrite(int fd, const void *bytes, size_t n, off_t at) __asm__("pwrite")
    __attribute__((visibility("default")));

static void wait_for(sem_t *s)
{
    while (sem_wait(s) < 0)
        ;
}

int fdatasync(int fd)
{
    int fail = atomic_exchange(&sync_errno, 0);

    if (atomic_exchange(&slow, false)) {
        sem_post(&reached);
        wait_for(&gate);
    }
    if (fail != 0) {
        errno = fail;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    int expected = fd;

    if (fd >= 0 && atomic_compare_exchange_strong(&slow_fd, &expected, -1)) {
        sem_post(&reached);
        wait_for(&gate);
    }
    return syscall(SYS_write, fd, bytes, n);
}

/* LMDB writes its meta pages through a descriptor with O_DSYNC. */
ssize_t faulty_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    int fail = fcntl(fd, F_GETFL) & O_DSYNC ? atomic_exchange(&meta_errno, 0) : 0;

    if (fail != 0) {
        errno = fail;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}

static struct agx_store_batch *batch_put(const char *key, const char *value)
{
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key), agx_str_from(value));
    return b;
}

/* With `fault` set, a batch fails with that code; afterwards the store is as before and goes on. */
static void survive(atomic_int *fault, int sys_errno, enum agx_code code, const char *words)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct test_result r;

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    *fault = sys_errno;
    test_store_submit(st, batch_put("a", "2"), &r);
    test_loop_run(st->loop);
    ASSERT_INT(0, *fault);
    ASSERT_INT(code, r.code);
    ASSERT_NOT_NULL(strstr(r.text, words));
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    ASSERT_INT(AGX_OK, test_store_commit(st, batch_put("b", "2")));
    test_dir_close(st);
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_store_has(st, TEST_SANDBOXES, "b", "2");
    test_dir_close(st);
    test_dir_remove(&d);
}

TEST(a_failed_sync_fails_the_batch_and_the_store_goes_on)
{
    survive(&sync_errno, EIO, AGX_UNAVAILABLE, "data.mdb': Input/output error");
    survive(&sync_errno, EROFS, AGX_UNAVAILABLE, "Read-only file system");
    survive(&sync_errno, EDQUOT, AGX_RESOURCE_EXHAUSTED, "Disk quota exceeded");
}

TEST(a_failed_write_of_the_meta_page_fails_the_batch_and_the_store_goes_on)
{
    survive(&meta_errno, EIO, AGX_UNAVAILABLE, "data.mdb': Input/output error");
    survive(&meta_errno, ENOSPC, AGX_RESOURCE_EXHAUSTED, "No space left on device");
}

TEST(a_group_that_fails_is_tried_batch_by_batch)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct test_result r[3];

    sync_errno = EIO; /* of the group; each alone works */
    for (int i = 0; i < 3; i++)
        test_store_submit(st, batch_put("k", "v"), &r[i]);
    test_loop_run(st->loop);
    for (int i = 0; i < 3; i++) {
        ASSERT_INT(AGX_OK, r[i].code);
        ASSERT_UINT(r[0].order + (unsigned)i, r[i].order);
    }
    test_store_has(st, TEST_SANDBOXES, "k", "v");
    test_dir_close(st);
    test_dir_remove(&d);
}

/* One turn of the loop that does not wait. */
static void turn(struct agx_store *st)
{
    (void)uv_run(agx_loop_uv(st->loop), UV_RUN_NOWAIT);
}

TEST(reads_go_on_while_the_disk_is_slow_and_what_comes_meanwhile_shares_a_commit)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct agx_store_stats before, after;
    struct test_result first, r[20];

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    agx_store_stats(st, &before);
    ASSERT_INT(0, sem_init(&reached, 0, 0));
    ASSERT_INT(0, sem_init(&gate, 0, 0));
    slow = true;
    test_store_submit(st, batch_put("a", "2"), &first);
    turn(st);
    wait_for(&reached);
    for (int i = 0; i < 20; i++) { /* each in a turn of its own */
        test_store_submit(st, batch_put("b", "1"), &r[i]);
        turn(st);
        test_store_has(st, TEST_SANDBOXES, "a", "1");
    }
    ASSERT_UINT(0, first.n);
    sem_post(&gate);
    test_loop_run(st->loop);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(AGX_OK, r[19].code);
    test_store_has(st, TEST_SANDBOXES, "a", "2");
    agx_store_stats(st, &after);
    ASSERT_UINT(21, after.batches - before.batches);
    ASSERT_UINT(2, after.commits - before.commits);
    ASSERT_UINT(20, after.group_max);
    test_dir_close(st);
    test_dir_remove(&d);
}

TEST(state_says_open_while_the_store_is_in_use_and_clean_afterwards)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    char state[96];
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(200);

    snprintf(state, sizeof(state), "%.70s/state", d.store);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, state, &text, NULL));
    ASSERT_TRUE(agx_str_starts(agx_buf_peek(&text), AGX_STR("open ")));
    test_dir_close(st);
    agx_buf_clear(&text);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, state, &text, NULL));
    ASSERT_TRUE(agx_str_starts(agx_buf_peek(&text), AGX_STR("clean ")));
    test_dir_remove(&d);
}

/* A file beneath that directory is open in this process. */
static bool is_open(const char *dir)
{
    DIR *fds = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;

    ASSERT_NOT_NULL(fds);
    while ((entry = readdir(fds))) {
        char target[300] = "";

        if (readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1) > 0)
            found = found || strstr(target, dir);
    }
    closedir(fds);
    return found;
}

TEST(close_gives_a_backup_up_that_hangs_and_the_store_is_checked_at_the_next_start)
{
    struct test_dir d = test_dir_make();
    struct agx_store *st = test_dir_open(&d);
    struct agx_loop *l = st->loop;
    struct test_result backup = { 0 }, closed = { 0 };
    int fd = open(d.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    ASSERT_INT(0, sem_init(&reached, 0, 0));
    ASSERT_INT(0, sem_init(&gate, 0, 0));
    slow_fd = fd;
    ASSERT_OK(agx_store_backup(st, fd, test_on_done, &backup, NULL));
    wait_for(&reached);
    agx_store_close(st, test_on_done, &closed);
    test_loop_run(l);
    ASSERT_UINT(1, backup.n);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, backup.code);
    ASSERT_UINT(1, closed.n);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, closed.code);
    test_loop_close(l);
    sem_post(&gate); /* its thread goes on, and closes LMDB */
    while (is_open(d.store))
        usleep(1000);
    st = test_dir_open(&d);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_dir_close(st);
    close(fd);
    test_dir_remove(&d);
}

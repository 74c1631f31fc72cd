/* A capped log on a full or failing disk, or with a writer that dies between any two writes. */
#include "base/caplog.h"
#include "tests/support/caplog.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* From the so-many-th write on each of them fails; 0: none. As if the process were gone. */
static unsigned fail_from, n_writes;
static int fail_once; /* only that one */

static bool write_fails(void)
{
    n_writes++;
    if (fail_from == 0 || n_writes < fail_from)
        return false;
    errno = EIO;
    return !fail_once || n_writes == fail_from;
}

/* In front of libc's, for this program. */
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return write_fails() ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int ftruncate(int fd, off_t size)
{
    return write_fails() ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

static void arm(unsigned n, bool once)
{
    fail_from = n;
    fail_once = once;
    n_writes = 0;
}

/* True when it did fail. */
static bool disarm(void)
{
    bool hit = fail_from > 0 && n_writes >= fail_from;

    fail_from = 0;
    return hit;
}

TEST(a_writer_that_dies_between_any_two_writes_of_finish_leaves_every_kept_byte)
{
    bool hit = true;

    for (unsigned n = 1; hit; n++) {
        struct test_caplog t;

        test_caplog_open(&t, 100, 40000);
        for (int i = 0; i < 100; i++)
            test_caplog_append(&t.writer, 777);
        arm(n, false);
        agx_caplog_finish(&t.writer);
        hit = disarm();
        ASSERT_TRUE(test_caplog_read_all(&t, 5000, NULL) >= (n == 1 ? 30000 : 40100));
        ASSERT_OK(agx_caplog_init(&t.writer, t.data_fd, t.index_fd, 1, 1));
        agx_caplog_finish(&t.writer);
        test_caplog_is_text(&t, 100, t.writer.index.total - t.writer.index.tail_from);
        test_caplog_close(&t);
    }
}

TEST(a_writer_that_dies_between_any_two_writes_of_append_leaves_bytes_at_their_offsets)
{
    bool hit = true;

    for (unsigned n = 1; hit; n++) {
        uint64_t total;
        struct test_caplog t;

        test_caplog_open(&t, 100, 1000);
        arm(n, false);
        for (int i = 0; i < 30; i++)
            test_caplog_append(&t.writer, 77);
        hit = disarm();
        ASSERT_OK(agx_caplog_init(&t.writer, t.data_fd, t.index_fd, 1, 1));
        total = t.writer.index.total;
        (void)test_caplog_read_all(&t, 333, NULL);
        test_caplog_append(&t.writer, 2000);
        ASSERT_UINT(total + 2000, test_caplog_read(&t, 0, 1).total);
        (void)test_caplog_read_all(&t, 333, NULL);
        test_caplog_close(&t);
    }
}

TEST(a_write_that_fails_once_costs_its_own_bytes_and_no_count)
{
    bool hit = true;

    for (unsigned n = 1; hit; n++) {
        uint64_t skipped, got;
        struct test_caplog t;

        test_caplog_open(&t, 100, 1000);
        arm(n, true);
        for (int i = 0; i < 30; i++)
            test_caplog_append(&t.writer, 77);
        hit = disarm();
        test_caplog_append(&t.writer, 1);
        got = test_caplog_read_all(&t, 333, &skipped);
        ASSERT_UINT(30 * 77 + 1, got + skipped);
        agx_caplog_finish(&t.writer);
        (void)test_caplog_read_all(&t, 333, NULL);
        test_caplog_close(&t);
    }
}

/* No file of ours grows past `bytes`. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ASSERT_TRUE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ASSERT_INT(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = bytes;
    ASSERT_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
}

TEST(a_full_disk_shrinks_the_cap_to_what_was_written)
{
    for (rlim_t room = 64; room < 2000; room += 111) {
        struct agx_caplog_piece p;
        struct test_caplog t;
        uint64_t skipped;

        test_caplog_open(&t, 400, 1000);
        limit_files(room);
        for (int i = 0; i < 50; i++)
            test_caplog_append(&t.writer, 77);
        agx_caplog_finish(&t.writer);
        limit_files(RLIM_INFINITY);
        ASSERT_UINT(AGX_MIN(room, 1400), test_caplog_read_all(&t, 100, &skipped));
        ASSERT_UINT(50 * 77 - AGX_MIN(room, 1400), skipped);
        p = test_caplog_read(&t, 50 * 77 - 1, 10);
        ASSERT_UINT(1, p.len); /* the newest is there */
        ASSERT_TRUE(p.ended);
        p = test_caplog_read(&t, 0, 10);
        ASSERT_UINT(10, p.len);       /* and the oldest */
        agx_caplog_finish(&t.writer); /* room again: it becomes text */
        test_caplog_is_text(&t, t.writer.index.head_max, t.writer.index.tail_max);
        test_caplog_close(&t);
    }
}

TEST(a_disk_without_any_room_is_an_error_of_init)
{
    struct agx_caplog w;
    int data = test_caplog_file(), index = test_caplog_file();

    limit_files(10);
    ASSERT_TRUE(agx_caplog_init(&w, data, index, 100, 100) < 0);
    limit_files(RLIM_INFINITY);
    close(data);
    close(index);
}

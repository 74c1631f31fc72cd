#include "base/caplog.h"
#include "tests/support/caplog.h"
#include "tests/support/random.h"

#include <signal.h>
#include <sys/wait.h>

TEST(up_to_the_cap_the_file_is_the_stream)
{
    struct test_caplog t;
    uint64_t skipped;
    char file[100];

    test_caplog_open(&t, 10, 10);
    test_caplog_append(&t.writer, 13);
    test_caplog_append(&t.writer, 7);
    ASSERT_UINT(20, test_caplog_file_bytes(&t, file, sizeof(file)));
    for (size_t i = 0; i < 20; i++)
        ASSERT_INT(test_caplog_byte(i), file[i]);
    ASSERT_UINT(20, test_caplog_read_all(&t, 7, &skipped));
    ASSERT_UINT(0, skipped);
    agx_caplog_finish(&t.writer);
    ASSERT_UINT(20, test_caplog_file_bytes(&t, file, sizeof(file)));
    ASSERT_TRUE(test_caplog_read(&t, 20, 1).ended);
    test_caplog_close(&t);
}

TEST(past_the_cap_head_and_newest_bytes_are_kept_and_the_file_grows_no_more)
{
    struct test_caplog t;
    uint64_t skipped;
    char file[1000];

    test_caplog_open(&t, 10, 40);
    for (int i = 0; i < 100; i++)
        test_caplog_append(&t.writer, 7);
    ASSERT_UINT(50, test_caplog_file_bytes(&t, file, sizeof(file)));
    ASSERT_UINT(700 - test_caplog_read_all(&t, 9, &skipped), skipped);
    ASSERT_TRUE(skipped >= 650 && skipped <= 660); /* the index runs ahead by a quarter */
    test_caplog_close(&t);
}

TEST(finish_of_a_capped_log_makes_it_readable_text_and_offsets_stay)
{
    struct test_caplog t;
    uint64_t skipped;

    test_caplog_open(&t, 10, 40);
    for (int i = 0; i < 100; i++)
        test_caplog_append(&t.writer, 7);
    agx_caplog_finish(&t.writer);
    test_caplog_is_text(&t, 10, 40);
    ASSERT_UINT(50, test_caplog_read_all(&t, 9, &skipped));
    ASSERT_UINT(650, skipped);
    agx_caplog_finish(&t.writer);
    test_caplog_append(&t.writer, 1); /* after the end: nothing */
    test_caplog_is_text(&t, 10, 40);
    ASSERT_UINT(700, test_caplog_read(&t, 0, 1).total);
    test_caplog_close(&t);
}

TEST(end_without_unrolling_reads_the_same_and_can_be_finished_later)
{
    struct test_caplog t;
    uint64_t skipped;
    char file[100];

    test_caplog_open(&t, 10, 40);
    for (int i = 0; i < 100; i++)
        test_caplog_append(&t.writer, 7);
    agx_caplog_end(&t.writer);
    ASSERT_TRUE(test_caplog_read(&t, 0, 1).ended);
    ASSERT_UINT(50, test_caplog_file_bytes(&t, file, sizeof(file)));
    ASSERT_UINT(50, test_caplog_read_all(&t, 9, &skipped));
    ASSERT_UINT(650, skipped);
    agx_caplog_finish(&t.writer);
    test_caplog_is_text(&t, 10, 40);
    test_caplog_close(&t);
}

/* Appends, skips, appends: what is kept of it, and that every byte is where it says. */
static void check_hole(uint64_t before, uint64_t hole, uint64_t after, uint64_t kept)
{
    struct test_caplog t;
    uint64_t skipped;

    test_caplog_open(&t, 10, 40);
    test_caplog_append(&t.writer, before);
    agx_caplog_skip(&t.writer, hole);
    test_caplog_append(&t.writer, after);
    ASSERT_UINT(before + hole + after, test_caplog_read(&t, 0, 1).total);
    ASSERT_OK(agx_caplog_init(&t.writer, t.data_fd, t.index_fd, 0, 0)); /* another writer */
    for (int i = 0; i < 2; i++) {
        ASSERT_UINT(kept, test_caplog_read_all(&t, 7, &skipped));
        ASSERT_UINT(before + hole + after - kept, skipped);
        agx_caplog_finish(&t.writer);
    }
    agx_caplog_skip(&t.writer, 1); /* after the end: nothing */
    ASSERT_UINT(before + hole + after, test_caplog_read(&t, 0, 1).total);
    test_caplog_close(&t);
}

TEST(bytes_that_never_come_are_left_out_and_the_rest_stands_where_it_was)
{
    check_hole(0, 5, 20, 20);
    check_hole(4, 3, 20, 24);
    check_hole(4, 1000, 20, 24);
    check_hole(10, 7, 33, 43);
    check_hole(30, 7, 5, 15); /* what stood in the tail before the hole goes */
    check_hole(700, 7, 30, 40);
    check_hole(4, 0, 3, 7);
}

TEST(head_or_tail_may_be_nothing)
{
    const struct {
        uint64_t head, tail;
    } caps[] = { { 10, 0 }, { 0, 10 }, { 0, 0 } };

    for (size_t i = 0; i < AGX_ARRAY_LEN(caps); i++) {
        struct test_caplog t;

        test_caplog_open(&t, caps[i].head, caps[i].tail);
        test_caplog_append(&t.writer, 25);
        agx_caplog_finish(&t.writer);
        test_caplog_is_text(&t, caps[i].head, caps[i].tail);
        ASSERT_UINT(caps[i].head + caps[i].tail, test_caplog_read_all(&t, 100, NULL));
        test_caplog_close(&t);
    }
}

TEST(a_read_says_how_much_is_left_out_and_where_the_stream_stands)
{
    struct agx_caplog_piece p;
    struct test_caplog t;

    test_caplog_open(&t, 10, 40);
    p = test_caplog_read(&t, 0, 100);
    ASSERT_UINT(0, p.len + p.total);
    test_caplog_append(&t.writer, 100);
    agx_caplog_finish(&t.writer);
    p = test_caplog_read(&t, 4, 100);
    ASSERT_UINT(0, p.skipped);
    ASSERT_UINT(6, p.len);
    p = test_caplog_read(&t, 10, 100);
    ASSERT_UINT(50, p.skipped);
    ASSERT_UINT(40, p.len);
    ASSERT_UINT(100, p.total);
    p = test_caplog_read(&t, 95, 2);
    ASSERT_UINT(0, p.skipped);
    ASSERT_UINT(2, p.len);
    p = test_caplog_read(&t, 1000, 2);
    ASSERT_UINT(0, p.skipped + p.len);
    test_caplog_close(&t);
}

TEST(init_refuses_caps_that_cannot_be_added)
{
    struct agx_caplog w;
    int data = test_caplog_file(), index = test_caplog_file();

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_caplog_init(&w, data, index, UINT64_MAX, 1));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_caplog_init(&w, data, index, 1, AGX_CAPLOG_CAP_MAX));
    close(data);
    close(index);
}

TEST(an_index_that_nobody_wrote_is_an_empty_stream)
{
    struct test_caplog t = { .data_fd = test_caplog_file(), .index_fd = test_caplog_file() };
    struct agx_caplog_piece p = test_caplog_read(&t, 5, 10);

    ASSERT_UINT(0, p.len + p.skipped + p.total);
    ASSERT_FALSE(p.ended);
    test_caplog_close(&t);
}

TEST(a_damaged_index_is_data_loss_for_reader_and_writer)
{
    struct agx_caplog_piece p;
    struct agx_error *err = NULL;
    struct agx_caplog w;
    struct test_caplog t;
    uint8_t out[10];

    test_caplog_open(&t, 10, 10);
    test_caplog_append(&t.writer, 5);
    for (off_t at = 0; at < AGX_CAPLOG_INDEX_SIZE; at++) {
        uint8_t was, other;

        ASSERT_INT(1, pread(t.index_fd, &was, 1, at));
        other = was ^ 0x10;
        ASSERT_INT(1, pwrite(t.index_fd, &other, 1, at));
        ASSERT_CODE(AGX_DATA_LOSS,
                    agx_caplog_read(t.data_fd, t.index_fd, 0, out, sizeof(out), &p, NULL));
        ASSERT_CODE(AGX_DATA_LOSS, agx_caplog_init(&w, t.data_fd, t.index_fd, 10, 10));
        ASSERT_INT(1, pwrite(t.index_fd, &was, 1, at));
    }
    ASSERT_INT(0, ftruncate(t.index_fd, AGX_CAPLOG_INDEX_SIZE - 1));
    ASSERT_CODE(AGX_DATA_LOSS,
                agx_caplog_read(t.data_fd, t.index_fd, 0, out, sizeof(out), &p, &err));
    ASSERT_MESSAGE(err, "index of a log is damaged");
    agx_error_free(err);
    test_caplog_close(&t);
}

TEST(bytes_that_the_data_file_lacks_count_as_left_out)
{
    struct test_caplog t;
    uint64_t skipped;

    test_caplog_open(&t, 10, 10);
    test_caplog_append(&t.writer, 20);
    ASSERT_INT(0, ftruncate(t.data_fd, 3));
    ASSERT_UINT(3, test_caplog_read_all(&t, 100, &skipped));
    ASSERT_UINT(17, skipped);
    test_caplog_close(&t);
}

TEST(a_descriptor_that_is_no_file_is_an_error)
{
    struct agx_caplog_piece p;
    uint8_t out[10];
    struct agx_caplog w;
    int ends[2];

    ASSERT_INT(0, pipe(ends));
    ASSERT_TRUE(agx_caplog_read(ends[0], ends[0], 0, out, sizeof(out), &p, NULL) < 0);
    ASSERT_TRUE(agx_caplog_init(&w, ends[1], ends[1], 1, 1) < 0);
    close(ends[0]);
    close(ends[1]);
}

/* What a log of that stream must have, whatever the pieces it came in. */
static void check_model(const struct test_caplog *t, struct test_random *r, uint64_t head,
                        uint64_t tail)
{
    const uint64_t total = t->writer.index.total;
    uint64_t skipped, got = test_caplog_read_all(t, 1 + test_random_below(r, 300), &skipped);

    ASSERT_UINT(total, got + skipped);
    if (total <= head + tail)
        ASSERT_UINT(0, skipped);
    else
        ASSERT_TRUE(got <= head + tail && got >= head + tail / 2);
}

TEST(random_appends_resumes_and_reads_agree_with_the_stream)
{
    const uint64_t rounds = test_from_env("AGX_CAPLOG_ROUNDS", 2000);
    struct test_random r;

    test_random_init(&r, "AGX_CAPLOG_SEED");
    printf("# AGX_CAPLOG_SEED=%ju\n", (uintmax_t)r.seed);
    for (uint64_t i = 0; i < rounds; i++) {
        const uint64_t head = test_random_below(&r, 200), tail = test_random_below(&r, 200);
        struct test_caplog t;

        test_caplog_open(&t, head, tail);
        for (uint64_t n = test_random_below(&r, 20); n > 0; n--) {
            test_caplog_append(&t.writer, test_random_below(&r, 150));
            if (test_random_below(&r, 4) == 0)
                ASSERT_OK(agx_caplog_init(&t.writer, t.data_fd, t.index_fd, 1, 1));
            check_model(&t, &r, head, tail);
        }
        agx_caplog_finish(&t.writer);
        check_model(&t, &r, head, tail);
        if (t.writer.index.total > head + tail)
            test_caplog_is_text(&t, head, t.writer.index.total - t.writer.index.tail_from);
        test_caplog_close(&t);
    }
}

/* A child that writes the stream in odd pieces; `total` 0: until it is killed. */
static pid_t fork_writer(struct test_caplog *t, uint64_t total, size_t piece)
{
    pid_t pid = fork();

    ASSERT_TRUE(pid >= 0);
    if (pid > 0)
        return pid;
    while (total == 0 || t->writer.index.total < total) {
        size_t n = 1 + t->writer.index.total % piece;

        test_caplog_append(&t->writer, total > 0 ? AGX_MIN(n, total - t->writer.index.total) : n);
    }
    agx_caplog_finish(&t->writer);
    _exit(0);
}

static void read_beside_writer(uint64_t head, uint64_t tail, size_t piece)
{
    enum { TOTAL = 5000000 };
    uint64_t offset = 0, total = 0;
    struct agx_caplog_piece p;
    struct test_caplog t;
    pid_t pid;
    int status;

    test_caplog_open(&t, head, tail);
    pid = fork_writer(&t, TOTAL, piece);
    do {
        p = test_caplog_read(&t, offset, 10000); /* checks every byte */
        offset += p.skipped + p.len;
        ASSERT_TRUE(p.total >= total);
        total = p.total;
    } while (!p.ended || offset < p.total);
    ASSERT_UINT(TOTAL, offset);
    ASSERT_TRUE(waitpid(pid, &status, 0) == pid && status == 0);
    t.writer.index.total = TOTAL;
    ASSERT_UINT(head + tail, test_caplog_read_all(&t, 4096, NULL));
    test_caplog_is_text(&t, head, tail);
    test_caplog_close(&t);
}

TEST(a_reader_beside_the_writer_never_sees_a_byte_of_another_offset)
{
    read_beside_writer(100, 300, 97);
    read_beside_writer(1000, 100000, 8191);
    read_beside_writer(0, 300000, 60001);
}

TEST(a_killed_writer_leaves_a_log_that_reads_and_goes_on)
{
    for (unsigned i = 0; i < 20; i++) {
        uint64_t total;
        struct test_caplog t;
        pid_t pid;

        test_caplog_open(&t, 500, 5000);
        pid = fork_writer(&t, 0, 997);
        while (test_caplog_read(&t, 0, 1).total < 1000 * (uint64_t)i * i + 1)
            continue;
        ASSERT_INT(0, kill(pid, SIGKILL));
        ASSERT_TRUE(waitpid(pid, NULL, 0) == pid);
        total = test_caplog_read(&t, 0, 1).total;
        ASSERT_FALSE(test_caplog_read(&t, total, 1).ended);
        (void)test_caplog_read_all(&t, 1000, NULL);
        ASSERT_OK(agx_caplog_init(&t.writer, t.data_fd, t.index_fd, 1, 1));
        ASSERT_UINT(total, t.writer.index.total);
        test_caplog_append(&t.writer, 20000);
        ASSERT_UINT(total + 20000, test_caplog_read(&t, 0, 1).total);
        agx_caplog_finish(&t.writer);
        test_caplog_is_text(&t, 500, 5000);
        test_caplog_close(&t);
    }
}

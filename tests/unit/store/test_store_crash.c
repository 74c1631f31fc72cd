/*
 * kill -9 in the middle of commits: every acknowledged batch is stored, and none is stored in part.
 * AGX_SEED repeats a run.
 */
#include "tests/support/store_dir.h"

#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define ROUNDS 30
#define IN_FLIGHT 8

/* The process that writes, until it is killed. */
struct writer {
    struct agx_store *st;
    uint32_t next; /* number of the next batch */
    int acks;      /* where the numbers of those that are stored go */
};

struct write_slot {
    struct writer *w;
    uint32_t number;
};

static void make_key(char key[16], uint32_t number)
{
    snprintf(key, 16, "%010u", number);
}

/* Some of them need several pages. */
static struct agx_str make_value(char *text, size_t size, uint32_t number)
{
    size_t len = number % 7 == 0 ? size : 50 + number % 500;

    memset(text, 'a' + (int)(number % 26), len);
    return agx_str_bytes(text, len);
}

static void on_stored(void *user, struct agx_error *error);

static void write_next(struct write_slot *slot)
{
    struct agx_store_batch *b = agx_store_batch_new();
    char key[16], before[16], value[9000];

    slot->number = slot->w->next++;
    make_key(key, slot->number);
    agx_store_batch_expect_absent(b, TEST_SANDBOXES, agx_str_from(key));
    agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key),
                        make_value(value, sizeof(value), slot->number));
    agx_store_batch_put(b, TEST_EVENTS, agx_str_from(key), agx_str_from(key));
    if (slot->number >= 100) { /* so that pages become free and are used again */
        make_key(before, slot->number - 100);
        agx_store_batch_delete(b, TEST_EVENTS, agx_str_from(before));
    }
    if (agx_store_commit(slot->w->st, &b, on_stored, slot, NULL) < 0)
        _exit(2);
}

static void on_stored(void *user, struct agx_error *error)
{
    struct write_slot *slot = user;

    if (error || write(slot->w->acks, &slot->number, sizeof(slot->number)) < 0)
        _exit(3);
    write_next(slot);
}

static _Noreturn void run_writer(const struct test_dir *d, uint32_t first, int acks)
{
    struct writer w = { .next = first, .acks = acks };
    struct write_slot slots[IN_FLIGHT];
    const struct agx_store_lmdb_config c = test_dir_config(d);
    struct agx_loop *l = NULL;

    if (agx_loop_open(&l, NULL) < 0 ||
        agx_store_lmdb_open(l, &c, &test_store_layout, &w.st, NULL) < 0)
        _exit(4);
    for (int i = 0; i < IN_FLIGHT; i++) {
        slots[i].w = &w;
        write_next(&slots[i]);
    }
    agx_loop_run(l);
    _exit(5);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 33;
}

/* Lets a writer run for up to 40 ms, from its start or (`at_work`) from its first batch on, and
 * kills it. How many batches it has had acknowledged. */
static uint32_t run_and_kill(const struct test_dir *d, uint32_t first, bool at_work, uint64_t *seed)
{
    struct timespec wait = { .tv_nsec = (long)(next_random(seed) % 40000000) };
    uint32_t number, n = 0;
    int fds[2], status = 0;
    pid_t pid;

    ASSERT_INT(0, pipe2(fds, O_CLOEXEC));
    pid = fork();
    if (pid == 0)
        run_writer(d, first, fds[1]);
    close(fds[1]);
    if (at_work)
        ASSERT_INT(1, poll(&(struct pollfd){ .fd = fds[0], .events = POLLIN }, 1, -1));
    nanosleep(&wait, NULL);
    kill(pid, SIGKILL);
    while (read(fds[0], &number, sizeof(number)) == sizeof(number)) {
        ASSERT_UINT(first + n, number); /* in the order of commits */
        n++;
    }
    close(fds[0]);
    ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
    if (!WIFSIGNALED(status))
        FAIL("the writer ended by itself with %d", WEXITSTATUS(status));
    return n;
}

/* All of the first `acked` batches and none by halves; the number of those that are there. */
static uint32_t check_store(const struct test_dir *d, uint32_t acked)
{
    const struct agx_store_range all = { .table = TEST_SANDBOXES };
    struct agx_store *st = test_dir_open(d);
    char want[9000], key[16];
    uint64_t n = test_store_count(st, &all);

    if (n < acked)
        FAIL("%u batches were acknowledged, %u are there", acked, (unsigned)n);
    for (uint32_t i = 0; i < n; i++) {
        _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(sizeof(want));

        make_key(key, i);
        ASSERT_INT(1, agx_store_get(st, TEST_SANDBOXES, agx_str_from(key), &got, NULL));
        ASSERT_STR(make_value(want, sizeof(want), i), agx_buf_peek(&got));
        test_store_has(st, TEST_EVENTS, key, i + 100 < n ? NULL : key);
    }
    test_dir_close(st);
    return (uint32_t)n;
}

TEST(kill_at_random_moments_loses_no_acknowledged_batch)
{
    const char *given = getenv("AGX_SEED");
    struct test_dir d = test_dir_make();
    uint64_t seed = agx_clock_ns();
    uint32_t n = 0, acked = 0;

    if (given)
        ASSERT_TRUE(agx_parse_u64(agx_str_from(given), UINT64_MAX, &seed));
    printf("# AGX_SEED=%ju\n", (uintmax_t)seed);
    fflush(stdout); /* or each child has it too */
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t more = run_and_kill(&d, n, round % 2, &seed);

        acked += more;
        n = check_store(&d, n + more);
    }
    printf("# %u batches stored, %u of them acknowledged, in %d rounds\n", n, acked, ROUNDS);
    ASSERT_TRUE(acked > 0);
    test_dir_remove(&d);
}

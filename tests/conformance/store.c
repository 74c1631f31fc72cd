/* The suite that every store passes; store_<kind>.c opens the store. */
#include "tests/conformance/store.h"

#include "store/store_mem.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct agx_store *open_store(void)
{
    return conformance_store_open(test_loop_open());
}

static void close_store(struct agx_store *st)
{
    struct agx_loop *l = st->loop;

    test_store_close(st);
    test_loop_close(l);
    conformance_store_remove();
}

static struct agx_store_batch *batch_put(const char *key, const char *value)
{
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key), agx_str_from(value));
    return b;
}

/* What a scan has seen: "key=value " for each record. */
struct seen {
    char text[1024];
    size_t stop_after; /* 0: never */
    size_t n;
};

static int see(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct seen *s = user;
    size_t used = strlen(s->text);

    (void)err;
    snprintf(s->text + used, sizeof(s->text) - used, "%.*s=%.*s ", AGX_STR_ARG(key),
             AGX_STR_ARG(value));
    return ++s->n == s->stop_after;
}

static void ASSERT_SCAN(struct agx_store *st, const struct agx_store_range *range, const char *want)
{
    struct seen s = { 0 };

    ASSERT_OK(agx_store_scan(st, range, see, &s, NULL));
    ASSERT_CSTR(want, s.text);
}

static void fill(struct agx_store *st, const char *keys)
{
    struct agx_store_batch *b = agx_store_batch_new();

    for (; *keys; keys++)
        agx_store_batch_put(b, TEST_EVENTS, agx_str_bytes(keys, 1), agx_str_bytes(keys, 1));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
}

TEST(get_of_an_absent_key_is_0_and_leaves_the_buffer)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(10);
    struct agx_store *st = open_store();

    ASSERT_OK(agx_buf_append(&out, AGX_STR("x")));
    ASSERT_INT(0, agx_store_get(st, TEST_SANDBOXES, AGX_STR("a"), &out, NULL));
    ASSERT_INT(0, agx_store_get(st, TEST_SANDBOXES, AGX_STR(""), &out, NULL));
    ASSERT_STR(AGX_STR("x"), agx_buf_peek(&out));
    close_store(st);
}

TEST(commit_stores_all_changes_of_the_batch_in_their_order)
{
    struct agx_store *st = open_store();
    struct agx_store_batch *b = batch_put("a", "1");

    agx_store_batch_put(b, TEST_SANDBOXES, AGX_STR("b"), AGX_STR("first"));
    agx_store_batch_delete(b, TEST_SANDBOXES, AGX_STR("b"));
    agx_store_batch_put(b, TEST_SANDBOXES, AGX_STR("b"), AGX_STR("second"));
    agx_store_batch_put(b, TEST_SANDBOXES, AGX_STR("c"), AGX_STR("gone"));
    agx_store_batch_delete(b, TEST_SANDBOXES, AGX_STR("c"));
    agx_store_batch_delete(b, TEST_SANDBOXES, AGX_STR("never was"));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_store_has(st, TEST_SANDBOXES, "b", "second");
    test_store_has(st, TEST_SANDBOXES, "c", NULL);
    close_store(st);
}

TEST(tables_have_keys_of_their_own)
{
    struct agx_store *st = open_store();

    test_store_put(st, TEST_SANDBOXES, "a", "sandbox");
    test_store_put(st, TEST_EVENTS, "a", "event");
    test_store_has(st, TEST_SANDBOXES, "a", "sandbox");
    test_store_has(st, TEST_EVENTS, "a", "event");
    close_store(st);
}

TEST(done_comes_once_for_each_batch_in_the_order_of_commits)
{
    struct agx_store *st = open_store();
    struct test_result r[20];

    for (unsigned i = 0; i < 20; i++) {
        struct agx_store_batch *b = batch_put("k", "v");

        if (i % 3 == 1)
            agx_store_batch_expect_absent(b, TEST_SANDBOXES, AGX_STR("k"));
        test_store_submit(st, b, &r[i]);
    }
    test_loop_run(st->loop);
    for (unsigned i = 0; i < 20; i++) {
        ASSERT_UINT(1, r[i].n);
        ASSERT_INT(i % 3 == 1 ? AGX_ALREADY_EXISTS : AGX_OK, r[i].code);
        ASSERT_UINT(r[0].order + i, r[i].order);
    }
    close_store(st);
}

TEST(expect_absent_that_fails_refuses_its_batch_and_no_other)
{
    struct agx_store *st = open_store();
    struct agx_store_batch *b = batch_put("b", "no");
    struct test_result before, refused, after;

    agx_store_batch_expect_absent(b, TEST_SANDBOXES, AGX_STR("a"));
    agx_store_batch_put(b, TEST_SANDBOXES, AGX_STR("c"), AGX_STR("no"));
    test_store_submit(st, batch_put("a", "1"), &before);
    test_store_submit(st, b, &refused);
    test_store_submit(st, batch_put("d", "4"), &after);
    test_loop_run(st->loop);
    ASSERT_INT(AGX_OK, before.code);
    ASSERT_INT(AGX_ALREADY_EXISTS, refused.code);
    ASSERT_CSTR("'a' exists already in 'sandboxes'", refused.text);
    ASSERT_INT(AGX_OK, after.code);
    test_store_has(st, TEST_SANDBOXES, "a", "1");
    test_store_has(st, TEST_SANDBOXES, "b", NULL);
    test_store_has(st, TEST_SANDBOXES, "c", NULL);
    test_store_has(st, TEST_SANDBOXES, "d", "4");
    close_store(st);
}

TEST(expectations_see_the_batches_before_theirs_and_not_their_own)
{
    struct agx_store *st = open_store();
    struct agx_store_batch *first = agx_store_batch_new();
    struct agx_store_batch *second = batch_put("a", "2"), *own = batch_put("own", "1");
    struct test_result r[3];

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    agx_store_batch_delete(first, TEST_SANDBOXES, AGX_STR("a"));
    agx_store_batch_expect_absent(second, TEST_SANDBOXES, AGX_STR("a"));
    agx_store_batch_expect_absent(own, TEST_SANDBOXES, AGX_STR("own"));
    test_store_submit(st, first, &r[0]);
    test_store_submit(st, second, &r[1]);
    test_store_submit(st, own, &r[2]);
    test_loop_run(st->loop);
    for (int i = 0; i < 3; i++)
        ASSERT_INT(AGX_OK, r[i].code);
    test_store_has(st, TEST_SANDBOXES, "a", "2");
    close_store(st);
}

TEST(delete_range_takes_the_keys_between_its_ends)
{
    const struct agx_store_range all = { .table = TEST_EVENTS };
    struct agx_store *st = open_store();
    struct agx_store_batch *b = agx_store_batch_new();

    fill(st, "abcdefgh");
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR("bb"), AGX_STR("e"));
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR("g"), AGX_STR(""));
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR(""), AGX_STR("a"));
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR("z"), AGX_STR("b"));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    ASSERT_SCAN(st, &all, "a=a b=b e=e f=f ");
    b = agx_store_batch_new();
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR(""), AGX_STR(""));
    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("x"), AGX_STR("y"));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    ASSERT_SCAN(st, &all, "x=y ");
    close_store(st);
}

TEST(scan_visits_the_range_in_order_forward_and_backward)
{
    struct agx_store *st = open_store();
    struct agx_store_range range = { .table = TEST_EVENTS };

    ASSERT_SCAN(st, &range, "");
    fill(st, "dacb");
    ASSERT_SCAN(st, &range, "a=a b=b c=c d=d ");
    range.from = AGX_STR("b");
    ASSERT_SCAN(st, &range, "b=b c=c d=d ");
    range.to = AGX_STR("d");
    ASSERT_SCAN(st, &range, "b=b c=c ");
    range.backward = true;
    ASSERT_SCAN(st, &range, "c=c b=b ");
    range.from = AGX_STR("");
    ASSERT_SCAN(st, &range, "c=c b=b a=a ");
    range.to = AGX_STR("zz");
    ASSERT_SCAN(st, &range, "d=d c=c b=b a=a ");
    range.to = AGX_STR("");
    range.limit = 2;
    ASSERT_SCAN(st, &range, "d=d c=c ");
    range = (struct agx_store_range){ TEST_EVENTS, AGX_STR("c"), AGX_STR("b"), false, 0 };
    ASSERT_SCAN(st, &range, "");
    range.backward = true;
    ASSERT_SCAN(st, &range, "");
    range = (struct agx_store_range){ TEST_EVENTS, AGX_STR(""), AGX_STR("a"), true, 0 };
    ASSERT_SCAN(st, &range, "");
    close_store(st);
}

TEST(keys_are_in_the_order_of_their_unsigned_bytes)
{
    static const struct agx_str keys[] = { { "\0", 1 },      { "\0\0", 2 }, { "a", 1 },
                                           { "a\0", 2 },     { "aa", 2 },   { "b", 1 },
                                           { "\x80", 1 },    { "\xff", 1 }, { "\xff\0", 2 },
                                           { "\xff\xff", 2 } };
    struct agx_store *st = open_store();
    struct agx_store_batch *b = agx_store_batch_new();

    for (size_t i = AGX_ARRAY_LEN(keys); i-- > 0;)
        agx_store_batch_put(b, TEST_EVENTS, keys[i], AGX_STR(""));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    for (size_t i = 0; i < AGX_ARRAY_LEN(keys); i++) {
        struct agx_store_range below = { .table = TEST_EVENTS, .to = keys[i] };
        ASSERT_UINT(i, test_store_count(st, &below));
    }
    close_store(st);
}

static int fail_visit(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    (void)user;
    (void)value;
    return agx_error_set(err, AGX_DATA_LOSS, "cannot read '%.*s'", AGX_STR_ARG(key));
}

TEST(scan_ends_when_its_visitor_says_so)
{
    const struct agx_store_range all = { .table = TEST_EVENTS };
    struct seen s = { .stop_after = 2 };
    struct agx_store *st = open_store();
    struct agx_error *err = NULL;

    fill(st, "abc");
    ASSERT_INT(0, agx_store_scan(st, &all, see, &s, NULL));
    ASSERT_CSTR("a=a b=b ", s.text);
    ASSERT_CODE(AGX_DATA_LOSS, agx_store_scan(st, &all, fail_visit, NULL, &err));
    ASSERT_MESSAGE(err, "cannot read 'a'");
    agx_error_free(err);
    ASSERT_SCAN(st, &all, "a=a b=b c=c ");
    close_store(st);
}

static uint64_t count(struct agx_store *st, const char *from, const char *to, size_t limit)
{
    struct agx_store_range r = { TEST_EVENTS, agx_str_from(from), agx_str_from(to), false, limit };
    return test_store_count(st, &r);
}

TEST(scan_visits_as_many_as_the_range_has)
{
    struct agx_store *st = open_store();

    ASSERT_UINT(0, count(st, "", "", 0));
    fill(st, "abcdef");
    ASSERT_UINT(6, count(st, "", "", 0));
    ASSERT_UINT(5, count(st, "b", "", 0));
    ASSERT_UINT(2, count(st, "b", "d", 0));
    ASSERT_UINT(1, count(st, "", "b", 0));
    ASSERT_UINT(4, count(st, "", "", 4));
    ASSERT_UINT(0, count(st, "e", "b", 0));
    close_store(st);
}

TEST(values_may_be_empty_or_large_and_keys_as_long_as_the_limit)
{
    static char big[1 << 20], key[AGX_STORE_KEY_MAX + 1];
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(sizeof(big));
    struct agx_store *st = open_store();
    struct agx_store_batch *b = agx_store_batch_new();
    struct agx_error *err = NULL;

    memset(big, 'x', sizeof(big));
    memset(key, 'k', sizeof(key));
    agx_store_batch_put(b, TEST_EVENTS, agx_str_bytes(key, AGX_STORE_KEY_MAX), AGX_STR(""));
    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("big"), agx_str_bytes(big, sizeof(big)));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
    ASSERT_INT(1,
               agx_store_get(st, TEST_EVENTS, agx_str_bytes(key, AGX_STORE_KEY_MAX), &out, NULL));
    ASSERT_UINT(0, out.len);
    ASSERT_INT(1, agx_store_get(st, TEST_EVENTS, AGX_STR("big"), &out, NULL));
    ASSERT_STR(agx_str_bytes(big, sizeof(big)), agx_buf_peek(&out));
    /* No room left for it. */
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_store_get(st, TEST_EVENTS, AGX_STR("big"), &out, &err));
    ASSERT_MESSAGE(err, "1048576");
    err = agx_error_free(err);
    ASSERT_INT(0, agx_store_get(st, TEST_EVENTS, agx_str_bytes(key, sizeof(key)), &out, NULL));
    close_store(st);
}

/* The batch is refused at once and stays ours. */
static void ASSERT_SPOILT(struct agx_store *st, struct agx_store_batch *b, enum agx_code code,
                          const char *words)
{
    struct test_result r = { 0 };

    for (int i = 0; i < 2; i++) {
        struct agx_error *err = NULL;

        ASSERT_CODE(code, agx_store_commit(st, &b, test_on_done, &r, &err));
        ASSERT_MESSAGE(err, words);
        agx_error_free(err);
        ASSERT_NOT_NULL(b);
    }
    ASSERT_CODE(code, agx_store_commit(st, &b, test_on_done, &r, NULL));
    agx_store_batch_free(b);
    test_loop_run(st->loop);
    ASSERT_UINT(0, r.n);
}

TEST(a_spoilt_batch_is_refused_at_once_with_what_spoilt_it)
{
    static char big[AGX_STORE_BATCH_MAX + 1];
    struct agx_store *st = open_store();
    struct agx_store_batch *b = batch_put("", "empty key");

    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("good"), AGX_STR("too late"));
    ASSERT_SPOILT(st, b, AGX_INVALID_ARGUMENT, "a key of 0 bytes");
    b = agx_store_batch_new();
    agx_store_batch_delete(b, TEST_EVENTS, agx_str_bytes(big, AGX_STORE_KEY_MAX + 1));
    ASSERT_SPOILT(st, b, AGX_INVALID_ARGUMENT, "a key of 512 bytes");
    b = agx_store_batch_new();
    agx_store_batch_delete_range(b, TEST_EVENTS, AGX_STR(""), agx_str_bytes(big, 600));
    ASSERT_SPOILT(st, b, AGX_INVALID_ARGUMENT, "more than 511 bytes");
    b = agx_store_batch_new();
    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("k"), agx_str_bytes(big, sizeof(big)));
    ASSERT_SPOILT(st, b, AGX_RESOURCE_EXHAUSTED, "a batch of more than 16777216 bytes");
    test_store_has(st, TEST_EVENTS, "good", NULL);
    close_store(st);
}

TEST(a_range_with_an_end_past_the_limit_is_an_invalid_argument)
{
    static char big[AGX_STORE_KEY_MAX + 1];
    const struct agx_store_range range = { .table = TEST_EVENTS,
                                           .to = { big, AGX_STORE_KEY_MAX + 1 } };
    struct agx_store *st = open_store();
    struct seen s = { 0 };

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_store_scan(st, &range, see, &s, NULL));
    close_store(st);
}

TEST(commit_is_refused_while_too_many_bytes_wait_and_taken_again_afterwards)
{
    struct agx_store *st = open_store();
    struct agx_store_batch *b = batch_put("b", "2");
    struct agx_error *err = NULL;
    struct test_result first, second;

    st->queue_max = 30; /* one such batch, not two */
    test_store_submit(st, batch_put("a", "1"), &first);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_store_commit(st, &b, test_on_done, NULL, &err));
    ASSERT_MESSAGE(err, "the limit is 30");
    agx_error_free(err);
    test_loop_run(st->loop);
    test_store_submit(st, b, &second);
    test_loop_run(st->loop);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(AGX_OK, second.code);
    close_store(st);
}

/* Commits again from its `done`, until `left` is 0. */
struct chain {
    struct agx_store *st;
    unsigned left, seen;
};

static void on_link(void *user, struct agx_error *error)
{
    struct chain *c = user;
    struct agx_store_batch *b;
    char key[16];

    ASSERT_NULL(error);
    snprintf(key, sizeof(key), "%u", c->left);
    test_store_has(c->st, TEST_SANDBOXES, key, "link"); /* read your writes */
    c->seen++;
    if (--c->left == 0)
        return;
    snprintf(key, sizeof(key), "%u", c->left);
    b = batch_put(key, "link");
    ASSERT_OK(agx_store_commit(c->st, &b, on_link, c, NULL));
}

TEST(done_may_read_what_it_stored_and_commit_again)
{
    struct chain c = { .st = open_store(), .left = 5 };
    struct agx_store_batch *b = batch_put("5", "link");

    ASSERT_OK(agx_store_commit(c.st, &b, on_link, &c, NULL));
    test_loop_run(c.st->loop);
    ASSERT_UINT(5, c.seen);
    close_store(c.st);
}

TEST(close_finishes_what_was_committed_and_takes_no_more)
{
    struct agx_store *st = open_store();
    struct agx_loop *l = st->loop;
    struct agx_store_batch *late = batch_put("b", "2");
    struct test_result stored, closed = { 0 };

    test_store_submit(st, batch_put("a", "1"), &stored);
    agx_store_close(st, test_on_done, &closed);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_store_commit(st, &late, test_on_done, NULL, NULL));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_store_backup(st, 0, test_on_done, NULL, NULL));
    agx_store_batch_free(late);
    test_loop_run(l);
    ASSERT_INT(AGX_OK, stored.code);
    ASSERT_UINT(1, stored.n);
    ASSERT_UINT(1, closed.n);
    ASSERT_UINT(stored.order + 1, closed.order);
    test_loop_close(l);
    conformance_store_remove();
}

TEST(stats_count_batches_stored_refused_and_their_bytes)
{
    struct agx_store *st = open_store();
    struct agx_store_stats before, after;
    struct agx_store_batch *b = batch_put("c", "3");
    struct test_result r[3];

    agx_store_stats(st, &before);
    agx_store_batch_expect_absent(b, TEST_SANDBOXES, AGX_STR("a"));
    test_store_submit(st, batch_put("a", "1"), &r[0]);
    test_store_submit(st, b, &r[1]);
    test_store_submit(st, batch_put("b", "2"), &r[2]);
    test_loop_run(st->loop);
    agx_store_stats(st, &after);
    ASSERT_UINT(1, after.commits - before.commits);
    ASSERT_UINT(2, after.batches - before.batches);
    ASSERT_UINT(1, after.refused - before.refused);
    ASSERT_UINT(2, after.group_max);
    ASSERT_UINT(0, after.failed);
    ASSERT_TRUE(after.bytes > before.bytes);
    close_store(st);
}

static int temp_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    return fd;
}

TEST(backup_fills_an_empty_file_and_one_runs_at_a_time)
{
    struct agx_store *st = open_store();
    struct test_result first = { 0 };
    struct agx_error *err = NULL;
    struct stat about;
    int fd = temp_file(), other = temp_file(), fds[2];

    test_store_put(st, TEST_SANDBOXES, "a", "1");
    ASSERT_OK(agx_store_backup(st, fd, test_on_done, &first, NULL));
    ASSERT_UINT(0, first.n);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_store_backup(st, other, test_on_done, NULL, &err));
    ASSERT_MESSAGE(err, "another backup is running");
    err = agx_error_free(err);
    test_loop_run(st->loop);
    ASSERT_UINT(1, first.n);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(0, fstat(fd, &about));
    ASSERT_TRUE(about.st_size > 0);
    /* Neither into a file that has something, nor into what may block. */
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_store_backup(st, fd, test_on_done, NULL, NULL));
    ASSERT_INT(0, pipe2(fds, O_CLOEXEC));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_store_backup(st, fds[1], test_on_done, NULL, NULL));
    close(fds[0]);
    close(fds[1]);
    close(other);
    close(fd);
    close_store(st);
}

/* A small generator of its own: the same numbers everywhere. */
static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 33;
}

static struct agx_store_batch *random_batch(uint64_t *seed)
{
    struct agx_store_batch *b = agx_store_batch_new();

    for (uint64_t n = 1 + next_random(seed) % 6; n > 0; n--) {
        unsigned table = next_random(seed) % 2, kind = next_random(seed) % 16;
        char key[8], value[600];
        struct agx_str k = { key, 0 }, v = { value, next_random(seed) % sizeof(value) };

        k.len = (size_t)snprintf(key, sizeof(key), "%u", (unsigned)(next_random(seed) % 300));
        memset(value, (int)(next_random(seed) % 256), sizeof(value));
        if (kind < 9)
            agx_store_batch_put(b, table, k, v);
        else if (kind < 13)
            agx_store_batch_delete(b, table, k);
        else if (kind == 13)
            agx_store_batch_delete_range(b, table, k, agx_str_from("2"));
        else
            agx_store_batch_expect_absent(b, table, k);
    }
    return b;
}

static int add_row(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct agx_buf *out = user;

    (void)err;
    ASSERT_OK(agx_buf_append(out, key));
    ASSERT_OK(agx_buf_push(out, 0));
    ASSERT_OK(agx_buf_append(out, value));
    return 0;
}

static void ASSERT_SAME(struct agx_store *a, struct agx_store *b)
{
    for (unsigned table = 0; table < 2; table++) {
        _cleanup_buf_ struct agx_buf in_a = AGX_BUF_INIT((size_t)16 << 20);
        _cleanup_buf_ struct agx_buf in_b = AGX_BUF_INIT((size_t)16 << 20);
        const struct agx_store_range all = { .table = table };

        ASSERT_OK(agx_store_scan(a, &all, add_row, &in_a, NULL));
        ASSERT_OK(agx_store_scan(b, &all, add_row, &in_b, NULL));
        ASSERT_STR(agx_buf_peek(&in_a), agx_buf_peek(&in_b));
    }
}

TEST(random_batches_leave_what_they_leave_in_the_store_in_memory)
{
    struct agx_store *st = open_store(), *model = NULL;
    uint64_t seed = 1, same;

    ASSERT_OK(agx_store_mem_open(st->loop, &test_store_layout, &model, NULL));
    for (int turn = 0; turn < 60; turn++) {
        struct test_result ours[8], theirs[8];
        unsigned n = 1 + (unsigned)(next_random(&seed) % 8);

        for (unsigned i = 0; i < n; i++) {
            same = seed;
            test_store_submit(st, random_batch(&seed), &ours[i]);
            test_store_submit(model, random_batch(&same), &theirs[i]);
        }
        test_loop_run(st->loop);
        for (unsigned i = 0; i < n; i++)
            ASSERT_INT(theirs[i].code, ours[i].code);
        ASSERT_SAME(st, model);
    }
    test_store_close(model);
    close_store(st);
}

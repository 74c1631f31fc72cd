#include "loop/conn_internal.h"
#include "tests/support/loop.h"

#include <sys/socket.h>

/* A connection over a socketpair; the test holds the other end and turns the loop by hand. */
struct fixture {
    struct agx_loop *loop;
    struct agx_conn_group *group;
    struct agx_conn *conn;
    int peer;
    struct agx_buf got;  /* what data() took */
    struct agx_buf room; /* what came straight into our room */
    size_t want;         /* bytes to ask for in want() */
    size_t take;         /* data() takes at most so many bytes at a time */
    unsigned n_data, n_eof, n_drained, n_expired, n_closed;
    unsigned refills; /* drained() queues more so often */
    uint64_t deadline_at_data;
    bool close_at_eof;
    char error[200];
};

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct fixture *f = user;
    size_t n = AGX_MIN(len, f->take);

    f->n_data++;
    if (f->deadline_at_data)
        agx_conn_deadline(f->conn, f->deadline_at_data);
    ASSERT_OK(agx_buf_append(&f->got, agx_str_bytes(data, n)));
    return n;
}

static void on_want(void *user, uint8_t **ret_room, size_t *ret_len)
{
    struct fixture *f = user;

    if (f->want == 0)
        return;
    ASSERT_OK(agx_buf_reserve(&f->room, f->want));
    *ret_room = f->room.data + f->room.len;
    *ret_len = f->want;
}

static void on_filled(void *user, size_t n)
{
    struct fixture *f = user;

    f->room.len += n;
    f->want -= n;
}

static void on_eof(void *user)
{
    struct fixture *f = user;

    f->n_eof++;
    if (f->close_at_eof)
        agx_conn_close(f->conn);
}

static void queue_bytes(struct fixture *f, size_t n)
{
    struct agx_buf *out = agx_conn_out(f->conn);

    ASSERT_OK(agx_buf_reserve(out, n));
    for (size_t i = 0; i < n; i++)
        out->data[out->len + i] = (uint8_t)(i % 251);
    out->len += n;
}

static void on_drained(void *user)
{
    struct fixture *f = user;

    if (f->n_drained++ < f->refills)
        queue_bytes(f, 1001);
    else if (f->refills > 0)
        agx_loop_stop(f->loop);
}

static void on_expired(void *user)
{
    ((struct fixture *)user)->n_expired++;
}

static void on_closed(void *user, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_closed++;
    f->conn = NULL;
    if (error)
        agx_error_format(error, f->error, sizeof(f->error));
    agx_error_free(error);
}

static const struct agx_conn_ops ops = { on_data,    on_want,    on_filled, on_eof,
                                         on_drained, on_expired, on_closed };

static void setup(struct fixture *f, const struct agx_conn_config *config)
{
    int fds[2];

    *f = (struct fixture){ .loop = test_loop_open(),
                           .got = AGX_BUF_INIT((size_t)16 << 20),
                           .room = AGX_BUF_INIT((size_t)16 << 20),
                           .take = SIZE_MAX,
                           .close_at_eof = true };
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    f->peer = fds[1];
    ASSERT_OK(agx_conn_group_open(f->loop, config, &f->group, NULL));
    ASSERT_OK(agx_conn_open(f->group, &fds[0], &ops, f, &f->conn, NULL));
    ASSERT_INT(-1, fds[0]);
}

static void teardown(struct fixture *f)
{
    if (f->peer >= 0)
        close(f->peer);
    f->group = agx_conn_group_close(f->group);
    test_loop_run(f->loop);
    ASSERT_UINT(1, f->n_closed);
    test_loop_close(f->loop);
    agx_buf_done(&f->got);
    agx_buf_done(&f->room);
}

static void turn(struct fixture *f)
{
    (void)uv_run(agx_loop_uv(f->loop), UV_RUN_NOWAIT);
}

/* Turns the loop until the condition holds; the test's own time limit ends it otherwise. */
#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    turn(f)

static void peer_send(struct fixture *f, struct agx_str s)
{
    ASSERT_INT((ssize_t)s.len, send(f->peer, s.ptr, s.len, MSG_NOSIGNAL));
}

/* Reads what has come to the peer. */
static size_t peer_recv(struct fixture *f, struct agx_buf *out)
{
    uint8_t buf[65536];
    ssize_t n = recv(f->peer, buf, sizeof(buf), 0);

    if (n <= 0)
        return 0;
    if (out)
        ASSERT_OK(agx_buf_append(out, agx_str_bytes(buf, (size_t)n)));
    return (size_t)n;
}

static const struct agx_conn_config defaults = AGX_CONN_CONFIG_INIT;

TEST(conn_bytes_that_were_not_taken_come_again_with_those_behind_them)
{
    struct fixture f;

    setup(&f, &defaults);
    f.take = 2;
    peer_send(&f, AGX_STR("abcd"));
    UNTIL(&f, f.n_data == 1);
    f.take = SIZE_MAX;
    peer_send(&f, AGX_STR("ef"));
    UNTIL(&f, f.n_data == 2);
    ASSERT_STR(AGX_STR("abcdef"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(conn_resume_brings_what_was_not_taken_without_new_bytes)
{
    struct fixture f;

    setup(&f, &defaults);
    f.take = 0;
    peer_send(&f, AGX_STR("abcd"));
    UNTIL(&f, f.n_data == 1);
    f.take = SIZE_MAX;
    agx_conn_resume(f.conn);
    ASSERT_UINT(1, f.n_data); /* not inside the call */
    UNTIL(&f, f.n_data == 2);
    ASSERT_STR(AGX_STR("abcd"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(conn_whose_user_takes_nothing_stops_reading_at_its_maximum)
{
    struct agx_conn_config config = defaults;
    struct fixture f;
    char bytes[100] = { 0 };

    config.read_bytes = 16;
    config.held_max = 40;
    setup(&f, &config);
    f.take = 0;
    peer_send(&f, agx_str_bytes(bytes, sizeof(bytes)));
    UNTIL(&f, f.n_data == 3); /* 16, 32, 40 */
    for (int i = 0; i < 10; i++)
        turn(&f);
    ASSERT_UINT(3, f.n_data);
    f.take = SIZE_MAX;
    agx_conn_resume(f.conn);
    UNTIL(&f, f.got.len == sizeof(bytes));
    teardown(&f);
}

TEST(conn_paused_reads_nothing_until_it_is_resumed)
{
    struct fixture f;

    setup(&f, &defaults);
    agx_conn_pause(f.conn);
    peer_send(&f, AGX_STR("abcd"));
    for (int i = 0; i < 10; i++)
        turn(&f);
    ASSERT_UINT(0, f.n_data);
    agx_conn_resume(f.conn);
    UNTIL(&f, f.got.len == 4);
    teardown(&f);
}

TEST(conn_reads_into_the_users_room_and_the_rest_goes_to_data)
{
    struct fixture f;

    setup(&f, &defaults);
    f.want = 6;
    peer_send(&f, AGX_STR("room: data"));
    UNTIL(&f, f.n_data == 1);
    ASSERT_STR(AGX_STR("room: "), agx_buf_peek(&f.room));
    ASSERT_STR(AGX_STR("data"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(conn_sends_what_was_queued_in_one_turn_together)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct fixture f;

    setup(&f, &defaults);
    ASSERT_OK(agx_buf_append(agx_conn_out(f.conn), AGX_STR("one ")));
    ASSERT_OK(agx_buf_append(agx_conn_out(f.conn), AGX_STR("two")));
    ASSERT_UINT(7, agx_conn_queued(f.conn));
    ASSERT_UINT(0, peer_recv(&f, &got)); /* nothing leaves inside the call */
    turn(&f);
    ASSERT_UINT(0, agx_conn_queued(f.conn));
    ASSERT_UINT(7, peer_recv(&f, &got));
    ASSERT_STR(AGX_STR("one two"), agx_buf_peek(&got));
    teardown(&f);
}

TEST(conn_with_a_slow_reader_queues_up_to_its_maximum_and_tells_when_drained)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT((size_t)16 << 20);
    struct agx_conn_config config = defaults;
    struct fixture f;

    config.out_max = (size_t)4 << 20;
    config.socket_buffer_bytes = 32 << 10;
    setup(&f, &config);
    queue_bytes(&f, (size_t)3 << 20);
    turn(&f);
    ASSERT_TRUE(agx_conn_queued(f.conn) > (size_t)2 << 20);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_buf_reserve(agx_conn_out(f.conn), (size_t)2 << 20));
    ASSERT_UINT(0, f.n_drained);
    while (got.len < (size_t)3 << 20) {
        (void)peer_recv(&f, &got);
        turn(&f);
    }
    UNTIL(&f, f.n_drained == 1);
    for (size_t i = 0; i < got.len; i++)
        ASSERT_UINT(i % 251, got.data[i]);
    teardown(&f);
}

TEST(conn_that_is_filled_again_whenever_it_drained_never_waits_for_another_event)
{
    struct agx_conn_config config = AGX_CONN_CONFIG_INIT;
    struct fixture f;

    config.out_high = 1000;
    setup(&f, &config);
    f.refills = 20;
    queue_bytes(&f, 1001);
    test_loop_run_until_stop(f.loop);
    ASSERT_UINT(21, f.n_drained);
    teardown(&f);
}

TEST(conn_whose_peer_dies_with_bytes_under_way_closes_once_with_the_reason)
{
    struct agx_conn_config config = defaults;
    struct fixture f;

    config.socket_buffer_bytes = 32 << 10;
    setup(&f, &config);
    queue_bytes(&f, (size_t)1 << 20);
    turn(&f);
    close(f.peer);
    f.peer = -1;
    UNTIL(&f, f.n_closed == 1);
    ASSERT_TRUE(strstr(f.error, "connection") != NULL);
    ASSERT_UINT(0, f.group->count);
    teardown(&f);
}

TEST(conn_whose_peer_ends_its_direction_may_still_send)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct fixture f;

    setup(&f, &defaults);
    f.close_at_eof = false;
    peer_send(&f, AGX_STR("question"));
    ASSERT_INT(0, shutdown(f.peer, SHUT_WR));
    UNTIL(&f, f.n_eof == 1);
    ASSERT_STR(AGX_STR("question"), agx_buf_peek(&f.got));
    ASSERT_OK(agx_buf_append(agx_conn_out(f.conn), AGX_STR("answer")));
    agx_conn_close(f.conn);
    UNTIL(&f, f.n_closed == 1);
    ASSERT_CSTR("", f.error);
    ASSERT_UINT(6, peer_recv(&f, &got));
    ASSERT_UINT(1, f.n_eof);
    teardown(&f);
}

TEST(conn_close_sends_the_rest_to_a_slow_reader_first)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT((size_t)4 << 20);
    struct agx_conn_config config = defaults;
    struct fixture f;

    config.socket_buffer_bytes = 32 << 10;
    config.linger_ms = 20000;
    setup(&f, &config);
    queue_bytes(&f, (size_t)2 << 20);
    agx_conn_close(f.conn);
    while (got.len < (size_t)2 << 20) {
        (void)peer_recv(&f, &got);
        turn(&f);
        ASSERT_UINT(0, f.n_closed);
    }
    peer_send(&f, AGX_STR("too late")); /* dropped: data() comes only while it is open */
    close(f.peer);
    f.peer = -1;
    UNTIL(&f, f.n_closed == 1);
    ASSERT_UINT(0, f.n_data);
    teardown(&f);
}

TEST(conn_close_does_not_wait_for_ever_for_a_peer_that_takes_nothing)
{
    struct agx_conn_config config = defaults;
    struct fixture f;

    config.socket_buffer_bytes = 32 << 10;
    config.linger_ms = 20;
    setup(&f, &config);
    queue_bytes(&f, (size_t)2 << 20);
    agx_conn_close(f.conn);
    UNTIL(&f, f.n_closed == 1);
    teardown(&f);
}

TEST(conn_deadline_comes_once_and_can_be_moved_and_taken_back)
{
    struct fixture f;

    setup(&f, &defaults);
    agx_conn_deadline(f.conn, 100000);
    agx_conn_deadline(f.conn, 0);
    agx_conn_deadline(f.conn, 1); /* sooner than the timer that still runs */
    UNTIL(&f, f.n_expired == 1);
    agx_conn_deadline(f.conn, 1);
    agx_conn_deadline(f.conn, 40);
    UNTIL(&f, f.n_expired == 2);
    agx_conn_deadline(f.conn, 1);
    agx_conn_deadline(f.conn, 0);
    for (int i = 0; i < 10; i++) {
        usleep(1000);
        turn(&f);
    }
    ASSERT_UINT(2, f.n_expired);
    teardown(&f);
}

TEST(conn_bytes_that_came_in_time_are_read_before_its_deadline_is_told)
{
    struct fixture f;

    setup(&f, &defaults);
    f.deadline_at_data = 100000;
    agx_conn_deadline(f.conn, 1);
    peer_send(&f, AGX_STR("in time"));
    usleep(5000); /* the loop is held up, and the deadline passes */
    UNTIL(&f, f.got.len == 7);
    for (int i = 0; i < 10; i++) {
        usleep(1000);
        turn(&f);
    }
    ASSERT_UINT(0, f.n_expired);
    teardown(&f);
}

/* A second user: counts what it gets. */
static size_t take_all(void *user, uint8_t *data, size_t len)
{
    struct fixture *f = user;

    ASSERT_OK(agx_buf_append(&f->room, agx_str_bytes(data, len)));
    return len;
}

static const struct agx_conn_ops other_ops = { .data = take_all, .closed = on_closed };

static size_t take_line_and_hand_over(void *user, uint8_t *data, size_t len)
{
    struct fixture *f = user;

    (void)data;
    (void)len;
    agx_conn_hand_over(f->conn, &other_ops, f);
    return 5;
}

static const struct agx_conn_ops line_ops = { .data = take_line_and_hand_over,
                                              .closed = on_closed };

TEST(conn_handed_over_inside_data_gives_the_rest_to_the_new_user)
{
    struct fixture f;

    setup(&f, &defaults);
    agx_conn_hand_over(f.conn, &line_ops, &f);
    peer_send(&f, AGX_STR("line\nrest"));
    UNTIL(&f, f.room.len == 4);
    ASSERT_STR(AGX_STR("rest"), agx_buf_peek(&f.room));
    teardown(&f);
}

TEST(conn_abort_hands_its_error_to_closed_and_not_inside_the_call)
{
    struct agx_error *err = NULL;
    struct fixture f;

    setup(&f, &defaults);
    (void)agx_error_set(&err, AGX_ABORTED, "enough of it");
    agx_conn_abort(f.conn, &err);
    ASSERT_UINT(0, f.n_closed);
    UNTIL(&f, f.n_closed == 1);
    ASSERT_CSTR("enough of it", f.error);
    teardown(&f);
}

TEST(conn_group_close_ends_its_connections)
{
    struct fixture f;

    setup(&f, &defaults);
    ASSERT_UINT(1, f.group->count);
    queue_bytes(&f, 10);
    teardown(&f);
}

/*
 * Commands of a sandbox over its init's standard input and output. The test acts as the engine: it
 * has the other ends, passes the bytes to an attached client, and drops them while none is
 * attached.
 */
#include "backend/exec/initstream.h"
#include "tests/unit/backend/exec/init_client_suite.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>

#define KEY "0123456789abcdeffedcba9876543210"

/* One at a time. */
static struct engine {
    uv_poll_t from, to;
    uv_timer_t soon; /* whoever attached is told so, or that the container has ended */
    bool is_open;
    int to_fd, from_fd;
    bool ended; /* the container */
    struct agx_initstream *attached;
    struct agx_buf out;
    size_t dropped;
    unsigned n_attached, n_released;
} engine;

static void on_writable(uv_poll_t *poll, int status, int events)
{
    ssize_t n = write(engine.to_fd, engine.out.data, engine.out.len);

    (void)status;
    (void)events;
    if (n < 0 && errno == EPIPE)
        n = (ssize_t)engine.out.len;
    if (n > 0)
        agx_buf_consume(&engine.out, (size_t)n);
    if (engine.out.len == 0)
        (void)uv_poll_stop(poll);
}

static void detach(struct agx_error *error)
{
    struct agx_initstream *s = engine.attached;

    engine.attached = NULL;
    if (s)
        agx_initstream_closed(s, error);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    static char bytes[16 << 10];
    ssize_t n = read(engine.from_fd, bytes, sizeof(bytes));

    (void)status;
    (void)events;
    if (n < 0)
        return;
    if (n == 0) {
        engine.ended = true;
        (void)uv_poll_stop(poll);
        detach(NULL);
    } else if (engine.attached) {
        agx_initstream_data(engine.attached, agx_str_bytes(bytes, (size_t)n));
    } else {
        engine.dropped += (size_t)n;
    }
}

static void on_soon(uv_timer_t *timer)
{
    struct agx_error *error = NULL;

    (void)timer;
    if (engine.ended) {
        (void)agx_error_set(&error, AGX_NOT_FOUND, "no such container");
        detach(error);
    } else if (engine.attached) {
        engine.n_attached++;
        agx_initstream_opened(engine.attached);
    }
}

static int wire_connect(void *user, struct agx_initstream *s, struct agx_error **err)
{
    (void)user;
    (void)err;
    engine.attached = s;
    return uv_timer_start(&engine.soon, on_soon, 1, 0);
}

static int wire_write(void *user, struct agx_str bytes, struct agx_error **err)
{
    (void)user;
    (void)err;
    ASSERT_OK(agx_buf_append(&engine.out, bytes));
    return uv_poll_start(&engine.to, UV_WRITABLE, on_writable);
}

static void wire_close(void *user)
{
    (void)user;
    engine.attached = NULL;
    (void)uv_timer_stop(&engine.soon);
}

static void wire_release(void *user)
{
    (void)user;
    engine.n_released++;
}

static const struct agx_initstream_wire wire = { wire_connect, wire_write, wire_close,
                                                 wire_release };

void test_init_client_unboot(struct test_init_client *t)
{
    if (!engine.is_open)
        return;
    uv_close((uv_handle_t *)&engine.from, NULL);
    uv_close((uv_handle_t *)&engine.to, NULL);
    uv_close((uv_handle_t *)&engine.soon, NULL);
    (void)uv_run(agx_loop_uv(t->init.loop), UV_RUN_NOWAIT);
    close(engine.from_fd);
    close(engine.to_fd);
    agx_buf_done(&engine.out);
    engine.is_open = false;
}

static void open_engine(struct agx_loop *loop, int to_fd, int from_fd)
{
    engine = (struct engine){ .to_fd = to_fd, .from_fd = from_fd, .is_open = true };
    engine.out.max = 32 << 20;
    (void)signal(SIGPIPE, SIG_IGN);
    ASSERT_OK(agx_fd_set_nonblock(to_fd, true, NULL));
    ASSERT_OK(agx_fd_set_nonblock(from_fd, true, NULL));
    ASSERT_OK(uv_poll_init(agx_loop_uv(loop), &engine.from, from_fd));
    ASSERT_OK(uv_poll_init(agx_loop_uv(loop), &engine.to, to_fd));
    ASSERT_OK(uv_timer_init(agx_loop_uv(loop), &engine.soon));
    ASSERT_OK(uv_poll_start(&engine.from, UV_READABLE, on_readable));
}

void test_init_client_boot(struct test_init_client *t, const struct test_init_params *params)
{
    struct test_init_params stdio = { .args = TEST_ARGV("--control", "stdio") };
    int in[2], out[2];

    ASSERT_NULL(params);
    if (t->init.loop)
        test_init_client_unboot(t);
    ASSERT_INT(0, pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC));
    stdio.in_fd = in[0];
    stdio.out_fd = out[1];
    ASSERT_INT(0, setenv("AGENTIX_INIT_KEY", KEY, 1));
    test_init_client_boot_init(t, &stdio);
    (void)unsetenv("AGENTIX_INIT_KEY");
    close(in[0]);
    close(out[1]);
    open_engine(t->init.loop, in[1], out[0]);
}

void test_init_client_begin_up(struct test_init_client *t)
{
    struct agx_initstream_config config = AGX_INITSTREAM_CONFIG_INIT;
    struct agx_initlink *link = NULL;

    config.wire = &wire;
    config.key = KEY;
    ASSERT_OK(
        agx_initstream_open(t->init.loop, &config, &agx_init_client_link_ops, t->a, &link, NULL));
    agx_init_client_up(t->a, link);
}

void test_init_client_break(struct test_init_client *t)
{
    (void)t;
    detach(NULL);
}

TEST(key_is_made_at_random_and_one_that_is_none_is_refused)
{
    static const char *const bad[] = { "", "0123", KEY "0", "0123456789abcdefFEDCBA9876543210" };
    struct agx_loop *loop = test_loop_open();
    char one[AGX_INITSTREAM_KEY_LEN + 1], two[AGX_INITSTREAM_KEY_LEN + 1];

    ASSERT_OK(agx_initstream_make_key(one, NULL));
    ASSERT_OK(agx_initstream_make_key(two, NULL));
    ASSERT_INT(AGX_INITSTREAM_KEY_LEN, strlen(one));
    ASSERT_TRUE(strcmp(one, two) != 0);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_initstream_config config = AGX_INITSTREAM_CONFIG_INIT;
        struct agx_initlink *link;

        config.wire = &wire;
        config.key = bad[i];
        ASSERT_CODE(
            AGX_INVALID_ARGUMENT,
            agx_initstream_open(loop, &config, &agx_init_client_link_ops, NULL, &link, NULL));
    }
    test_loop_close(loop);
}

TEST(wire_is_released_with_the_link)
{
    struct test_init_client t;

    test_init_client_open(&t);
    ASSERT_UINT(0, engine.n_released);
    test_init_client_end(&t);
    ASSERT_UINT(1, engine.n_released);
    ASSERT_NULL(engine.attached);
    test_init_client_remove(&t);
}

/* Waits until so much of its output is in the log. */
static void wait_for_output(struct test_init_client *t, struct test_command *c, uint64_t total)
{
    while (test_caplog_read(&c->out, 0, 0).total < total)
        test_pause(t->b.loop, 5);
}

TEST(output_that_was_sent_while_nobody_was_attached_is_asked_for_again)
{
    struct test_command c;
    struct test_init_client t;
    struct test_gate gate;

    test_init_client_open(&t);
    begin_gated(&t, &c, "exec-1", &gate, "echo one", "echo two; exit 7");
    wait_for_output(&t, &c, 4);
    test_init_client_end(&t);
    engine.dropped = 0;
    test_gate_open(&gate);
    while (engine.dropped == 0)
        test_pause(t.b.loop, 5);
    test_pause(t.b.loop, 50); /* its end, too */
    test_init_client_new(&t);
    test_init_client_up(&t);
    test_command_start(&t.b, &t.sb, &c, true, false);
    ASSERT_INT(7, test_command_wait(&t.b, &c));
    test_log_is(&c.out, "one\ntwo\n");
    test_log_is(&c.err, "");
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(output_that_init_could_not_keep_is_left_out_and_offsets_stay)
{
    struct agx_caplog_piece piece;
    struct test_command c;
    struct test_init_client t;
    struct test_gate gate;
    uint8_t bytes[16];

    test_init_client_open(&t);
    begin_gated(&t, &c, "exec-1", &gate, "echo begin", "head -c 2000000 /dev/zero; echo end");
    wait_for_output(&t, &c, 6);
    test_init_client_end(&t); /* no daemon: the engine drops it all */
    test_gate_open(&gate);
    while (engine.dropped < 2000000)
        test_pause(t.b.loop, 5);
    test_init_client_new(&t);
    test_init_client_up(&t);
    test_command_start(&t.b, &t.sb, &c, true, false);
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    ASSERT_OK(
        agx_caplog_read(c.out.data_fd, c.out.index_fd, 0, bytes, sizeof(bytes), &piece, NULL));
    ASSERT_UINT(2000010, piece.total);
    ASSERT_STR(AGX_STR("begin\n"), agx_str_bytes(bytes, 6));
    ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, 2000006, bytes, sizeof(bytes), &piece,
                              NULL));
    ASSERT_STR(AGX_STR("end\n"), agx_str_bytes(bytes, piece.len));
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(output_past_the_cap_keeps_head_and_tail)
{
    struct agx_caplog_piece piece;
    uint8_t bytes[TEST_TAIL_MAX + 1];
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    begin(&t, &c, "exec-1", "sh", "-c", "head -c 3000000 /dev/zero");
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, TEST_HEAD_MAX, bytes, sizeof(bytes),
                              &piece, NULL));
    ASSERT_UINT(3000000, piece.total);
    ASSERT_UINT(3000000 - TEST_HEAD_MAX - TEST_TAIL_MAX, piece.skipped);
    ASSERT_UINT(TEST_TAIL_MAX, piece.len);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(silence_of_init_ends_in_another_connection)
{
    struct agx_initstream_config config = AGX_INITSTREAM_CONFIG_INIT;
    struct agx_initlink *link = NULL;
    struct test_command c;
    struct test_init_client t;

    test_init_client_open_unknown(&t);
    test_init_client_stop_init(&t);
    config.wire = &wire;
    config.key = KEY;
    config.connect_ms = 300; /* in which an init that runs has answered */
    ASSERT_OK(
        agx_initstream_open(t.init.loop, &config, &agx_init_client_link_ops, t.a, &link, NULL));
    agx_init_client_up(t.a, link);
    test_wait(t.b.loop, &engine.n_attached, 3);
    ASSERT_UINT(0, t.n_ready + t.n_ended);
    begin(&t, &c, "exec-1", "sh", "-c", "exit 4");
    ASSERT_INT(0, kill(t.init.pid, SIGCONT));
    ASSERT_INT(4, test_command_wait(&t.b, &c));
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(bytes_that_are_no_frames_are_skipped)
{
    struct test_command c;
    struct test_init_client t;
    char noise[5000];

    memset(noise, 'A', sizeof(noise));
    test_init_client_open(&t);
    for (size_t n = 1; n < sizeof(noise); n += 977)
        agx_initstream_data(engine.attached, agx_str_bytes(noise, n));
    begin(&t, &c, "exec-1", "sh", "-c", "head -c 100000 /dev/zero; exit 5");
    ASSERT_INT(5, test_command_wait(&t.b, &c));
    ASSERT_UINT(100000, test_caplog_read(&c.out, 0, 0).total);
    test_command_done(&c);
    test_init_client_close(&t);
}

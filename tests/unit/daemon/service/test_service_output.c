/* agentix.v1.ControlService: the output and the input of commands. */
#include "tests/support/service.h"

#include "wire/control_request.h"
#include "wire/view.h"

#include "base/banned.h"

/* Output. */

static void put_output(struct service_fixture *f, uint64_t offset, bool follow, uint64_t max)
{
    const struct agx_output_request q = { .exec_id = (char *)"exec-1",
                                          .stream = AGX_OUTPUT_STDOUT,
                                          .offset = offset,
                                          .follow = follow,
                                          .max_bytes = max };

    ASSERT_OK(agx_output_request_encode(&f->message, &q));
}

/* Reads `n` bytes, or up to the end of the stream, onto `out`; returns how many were left out. */
static uint64_t read_output(struct service_fixture *f, struct rpc_request *q, size_t n,
                            struct agx_buf *out)
{
    struct agx_output_view v;
    uint64_t skipped = 0;

    while (out->len < n && service_next(f, q)) {
        ASSERT_OK(agx_output_view_decode(&v, agx_buf_peek(&f->reply), NULL));
        skipped += v.skipped;
        ASSERT_OK(agx_buf_append(out, agx_buf_peek(&v.data)));
        agx_output_view_done(&v);
    }
    return skipped;
}

/* Nothing is found by looking now and then: news have to come. */
static void only_news(struct agx_service_config *c)
{
    c->output_poll_ms = 3600000;
}

static void setup_exec(struct service_fixture *f)
{
    service_setup(f, only_news);
    stub_add_ready(f->manager, "box-a", NULL);
    stub_exec_add(f->manager, "box-a", "exec-1");
    stub_exec_move(f->manager, "exec-1", AGX_EXEC_ON_BEGUN, 0);
}

TEST(output_is_read_from_an_offset_up_to_what_is_there)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    stub_exec_print(f.manager, "exec-1", AGX_STR("hello world"), false);
    put_output(&f, 6, false, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    ASSERT_UINT(0, read_output(&f, &q, SIZE_MAX, &out));
    ASSERT_STR(AGX_STR("world"), agx_buf_peek(&out));
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    agx_buf_clear(&out);
    put_output(&f, 0, true, 5); /* ends after so many, although it follows */
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    (void)read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&out));
    rpc_request_done(&q);
    put_output(&f, 1000, false, 0);
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT));
    ASSERT_UINT(0, f.reply.len);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_that_is_followed_comes_as_it_is_written_and_ends_with_the_exec)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    put_output(&f, 0, true, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    stub_exec_print(f.manager, "exec-1", AGX_STR("one "), false);
    (void)read_output(&f, &q, 4, &out);
    stub_exec_print(f.manager, "exec-1", AGX_STR("two "), false);
    (void)read_output(&f, &q, 8, &out);
    stub_exec_print(f.manager, "exec-1", AGX_STR("three"), true);
    (void)read_output(&f, &q, 13, &out);
    service_turns(&f, 5);
    ASSERT_FALSE(q.closed); /* the stream has ended, the command has not */
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_EXITED, 0);
    (void)read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_STR(AGX_STR("one two three"), agx_buf_peek(&out));
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    agx_buf_clear(&out);
    put_output(&f, 4, true, 0); /* of one that has ended: no waiting */
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    (void)read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_STR(AGX_STR("two three"), agx_buf_peek(&out));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_that_is_written_right_before_the_end_is_not_lost)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    put_output(&f, 0, true, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    stub_exec_print(f.manager, "exec-1", AGX_STR("last words"), true);
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_EXITED, 0);
    (void)read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_STR(AGX_STR("last words"), agx_buf_peek(&out));
    rpc_request_done(&q);
    service_teardown(&f);
}

static void look_often(struct agx_service_config *c)
{
    c->output_poll_ms = 10;
}

TEST(output_is_found_by_looking_where_no_news_come)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, look_often);
    stub_quiet_logs(f.manager);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_exec_add(f.manager, "box-a", "exec-1");
    put_output(&f, 0, true, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    stub_exec_print(f.manager, "exec-1", AGX_STR("hello"), false);
    (void)read_output(&f, &q, 5, &out);
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&out));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_past_its_cap_says_what_is_left_out)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT((size_t)1 << 20);
    static char block[10000];
    struct service_fixture f;
    struct rpc_request q;
    uint64_t skipped;

    setup_exec(&f);
    memset(block, 'x', sizeof(block));
    for (unsigned i = 0; i < 50; i++)
        stub_exec_print(f.manager, "exec-1", agx_str_bytes(block, sizeof(block)), i == 49);
    put_output(&f, 0, false, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    skipped = read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_TRUE(skipped > 0);
    ASSERT_UINT(500000, skipped + out.len);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_of_a_client_that_does_not_read_waits_for_it)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT((size_t)1 << 20);
    static char block[100000];
    struct service_fixture f;
    struct agx_grpc_stats stats;
    struct rpc_request q;

    setup_exec(&f);
    put_output(&f, 0, true, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    f.rpc.client.deaf = true;
    stub_exec_print(f.manager, "exec-1", agx_str_bytes(block, sizeof(block)), true);
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_EXITED, 0);
    service_turns(&f, 200);
    agx_grpc_server_stats(f.rpc.server, &stats);
    ASSERT_TRUE(stats.bytes < (size_t)512 << 10);
    f.rpc.client.deaf = false;
    (void)read_output(&f, &q, SIZE_MAX, &out);
    ASSERT_UINT(sizeof(block), out.len);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_of_an_unknown_exec_or_stream_is_refused)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    put_output(&f, 0, false, 0);
    (void)service_call(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    service_refused(&q, AGX_NOT_FOUND, "exec exec-1 was not found", "EXEC_NOT_FOUND", "exec_id",
                    "exec-1");
    rpc_request_done(&q);
    ASSERT_INT(AGX_INVALID_ARGUMENT, service_call(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(output_whose_client_leaves_is_dropped)
{
    struct service_fixture f;
    struct agx_manager_stats stats;
    struct rpc_request q;

    setup_exec(&f);
    put_output(&f, 0, true, 0);
    service_start(&f, &q, AGX_METHOD_READ_EXEC_OUTPUT);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    service_cancel(&f, &q);
    stub_exec_print(f.manager, "exec-1", AGX_STR("nobody listens"), false);
    service_turns(&f, 5);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(0, stats.feeds);
    rpc_request_done(&q);
    service_teardown(&f);
}

/* Input. */

static void write_input(struct service_fixture *f, struct rpc_request *q, const char *exec_id,
                        const char *data, bool eof)
{
    struct agx_input_request request = { .exec_id = (char *)exec_id,
                                         .data = AGX_BUF_INIT(65536),
                                         .eof = eof };

    ASSERT_OK(agx_buf_append(&request.data, agx_str_from(data)));
    ASSERT_OK(agx_input_request_encode(&f->message, &request));
    agx_buf_done(&request.data);
    rpc_write(&f->rpc.client, q, agx_buf_peek(&f->message));
    agx_buf_clear(&f->message);
}

TEST(input_is_written_piece_by_piece_and_counted)
{
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "one ", false);
    write_input(&f, &q, NULL, "", false); /* says nothing */
    write_input(&f, &q, "exec-1", "two", true);
    rpc_write_end(&f.rpc.client, &q);
    service_until_closed(&f, &q);
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_TRUE(rpc_read(&q, &f.reply));
    ASSERT_STR(AGX_STR("\x08\x07"), agx_buf_peek(&f.reply)); /* bytes_written */
    ASSERT_STR(AGX_STR("one two<eof>"), stub_exec_input(f.manager, "exec-1"));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(input_waits_until_the_command_takes_it)
{
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    stub_hold_input(f.manager, true);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "one ", false);
    write_input(&f, &q, NULL, "two", false);
    rpc_write_end(&f.rpc.client, &q);
    RPC_UNTIL(&f.rpc, stub_input_waits(f.manager));
    service_turns(&f, 10);
    ASSERT_STR(AGX_STR("one "), stub_exec_input(f.manager, "exec-1"));
    ASSERT_FALSE(q.closed);
    stub_hold_input(f.manager, false);
    service_until_closed(&f, &q);
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_STR(AGX_STR("one two"), stub_exec_input(f.manager, "exec-1"));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(input_has_one_writer_at_a_time)
{
    struct service_fixture f;
    struct rpc_request first, second;

    setup_exec(&f);
    rpc_start(&f.rpc.client, &first, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &first, "exec-1", "one", false);
    service_turns(&f, 5);
    rpc_start(&f.rpc.client, &second, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &second, "exec-1", "two", false);
    service_until_closed(&f, &second);
    service_refused(&second, AGX_FAILED_PRECONDITION,
                    "another call already writes to the input of exec exec-1", NULL, NULL, NULL);
    rpc_request_done(&second);
    service_cancel(&f, &first);
    rpc_request_done(&first);
    rpc_start(&f.rpc.client, &second, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &second, "exec-1", "two", false);
    rpc_write_end(&f.rpc.client, &second);
    service_until_closed(&f, &second);
    ASSERT_CSTR("0", second.grpc_status);
    rpc_request_done(&second);
    service_teardown(&f);
}

/* One message that is refused. */
static void refuse_input(struct service_fixture *f, const char *exec_id, enum agx_code code,
                         const char *message, const char *reason)
{
    struct rpc_request q;

    rpc_start(&f->rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(f, &q, exec_id, "data", false);
    service_until_closed(f, &q);
    service_refused(&q, code, message, reason, "exec_id", exec_id);
    rpc_request_done(&q);
}

TEST(input_that_cannot_be_written_is_refused)
{
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    refuse_input(&f, NULL, AGX_INVALID_ARGUMENT, "exec_id is required in the first message", NULL);
    refuse_input(&f, "nobody", AGX_NOT_FOUND, "exec nobody was not found", "EXEC_NOT_FOUND");
    stub_fail(f.manager, AGX_FAILED_PRECONDITION, "its input is /dev/null");
    refuse_input(&f, "exec-1", AGX_FAILED_PRECONDITION, "its input is /dev/null", NULL);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "data", false);
    write_input(&f, &q, "exec-2", "data", false);
    service_until_closed(&f, &q);
    service_refused(&q, AGX_INVALID_ARGUMENT, "exec_id differs from that of the first message",
                    NULL, NULL, NULL);
    rpc_request_done(&q);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "", true);
    write_input(&f, &q, NULL, "data", false);
    service_until_closed(&f, &q);
    service_refused(&q, AGX_INVALID_ARGUMENT, "a message came after eof", NULL, NULL, NULL);
    rpc_request_done(&q);
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_EXITED, 0);
    refuse_input(&f, "exec-1", AGX_FAILED_PRECONDITION, "exec exec-1 is already terminal",
                 "EXEC_ALREADY_TERMINAL");
    service_teardown(&f);
}

TEST(input_whose_client_leaves_in_the_middle_of_a_write_is_let_go_when_that_is_taken)
{
    struct service_fixture f;
    struct rpc_request q;

    setup_exec(&f);
    stub_hold_input(f.manager, true);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "one", false);
    RPC_UNTIL(&f.rpc, stub_input_waits(f.manager));
    service_cancel(&f, &q);
    rpc_request_done(&q);
    refuse_input(&f, "exec-1", AGX_FAILED_PRECONDITION,
                 "another call already writes to the input of exec exec-1", NULL);
    stub_hold_input(f.manager, false);
    service_turns(&f, 3);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_WRITE_EXEC_INPUT, NULL);
    write_input(&f, &q, "exec-1", "two", false);
    rpc_write_end(&f.rpc.client, &q);
    service_until_closed(&f, &q);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    service_teardown(&f);
}

/* The blocking client against the server, which runs in its own thread. */
#include "grpc/client.h"
#include "grpc/server.h"
#include "tests/support/test.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>

struct fixture {
    pthread_t thread;
    sem_t ready;
    struct agx_loop *loop;
    struct agx_grpc_server *server;
    int server_fd;
    struct agx_grpc_client *client;
};

static void echo(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_str given = agx_grpc_call_peek_meta(call, AGX_STR("x-given-bin"));

    (void)service;
    agx_grpc_call_reply(call, given.ptr ? given : request);
}

static void fail(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    agx_grpc_call_finish(call, &(struct agx_grpc_status){ .code = AGX_NOT_FOUND,
                                                          .message = request,
                                                          .details = AGX_STR("\1\2\3") });
}

static void on_ended(void *user, enum agx_code code)
{
    (void)user;
    (void)code;
}

static const struct agx_grpc_call_ops quiet_ops = { .ended = on_ended };

static void hold(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    (void)request;
    agx_grpc_call_watch(call, &quiet_ops, NULL);
}

struct counter {
    struct agx_grpc_call *call;
    unsigned left;
};

static void counter_ended(void *user, enum agx_code code)
{
    (void)code;
    free(user);
}

static void count_more(void *user)
{
    static const char piece[1000];
    struct counter *c = user;
    int r = 0;

    while (c->left > 0 && r == 0) {
        r = agx_grpc_call_send(c->call, agx_str_bytes(piece, sizeof(piece)));
        c->left--;
    }
    if (c->left == 0) {
        agx_grpc_call_finish(c->call, &(struct agx_grpc_status){ .code = AGX_OK });
        free(c);
    }
}

static const struct agx_grpc_call_ops counter_ops = { .ended = counter_ended,
                                                      .writable = count_more };

static void count(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct counter *c = malloc(sizeof(*c));
    uint64_t n = 0;

    (void)service;
    if (!c || !agx_parse_u64(request, 1000000, &n))
        abort();
    *c = (struct counter){ call, (unsigned)n };
    agx_grpc_call_watch(call, &counter_ops, c);
    count_more(c);
}

/* Adds up the bytes of a client's stream; a message "stop" ends it with an error. */
struct sum {
    struct agx_grpc_call *call;
    size_t bytes;
};

static void sum_ended(void *user, enum agx_code code)
{
    (void)code;
    free(user);
}

static void sum_message(void *user, struct agx_str message)
{
    struct sum *s = user;

    s->bytes += message.len;
    if (agx_str_eq(message, AGX_STR("stop"))) {
        agx_grpc_call_finish(s->call, &(struct agx_grpc_status){ .code = AGX_ABORTED,
                                                                 .message = AGX_STR("enough") });
        free(s);
    } else if (agx_str_eq(message, AGX_STR("pause"))) {
        agx_grpc_call_pause(s->call); /* for ever: until the client has had enough */
    }
}

static void sum_end(void *user)
{
    struct sum *s = user;
    char text[32];

    (void)snprintf(text, sizeof(text), "%zu", s->bytes);
    agx_grpc_call_reply(s->call, agx_str_from(text));
    free(s);
}

static const struct agx_grpc_call_ops sum_ops = { .ended = sum_ended,
                                                  .message = sum_message,
                                                  .half_closed = sum_end };

static void sum(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct sum *s = malloc(sizeof(*s));

    (void)service;
    (void)request;
    if (!s)
        abort();
    *s = (struct sum){ call, 0 };
    agx_grpc_call_watch(call, &sum_ops, s);
}

static const struct agx_grpc_method methods[] = {
    { "/t.T/Echo", AGX_GRPC_UNARY, false, echo },
    { "/t.T/Fail", AGX_GRPC_UNARY, false, fail },
    { "/t.T/Hold", AGX_GRPC_UNARY, false, hold },
    { "/t.T/Count", AGX_GRPC_SERVER_STREAM, false, count },
    { "/t.T/Sum", AGX_GRPC_CLIENT_STREAM, false, sum },
};

static void *serve(void *user)
{
    const struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct fixture *f = user;

    if (agx_loop_open(&f->loop, NULL) < 0 ||
        agx_grpc_server_open(f->loop, &config, &f->server, NULL) < 0 ||
        agx_grpc_server_add(f->server, methods, AGX_ARRAY_LEN(methods), f, NULL) < 0 ||
        agx_grpc_server_adopt(f->server, &f->server_fd, NULL) < 0)
        abort();
    sem_post(&f->ready);
    agx_loop_run(f->loop);
    if (agx_loop_close(f->loop, NULL) < 0)
        abort();
    return NULL;
}

static void on_stopped(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

static void stop(void *user)
{
    struct fixture *f = user;

    agx_grpc_server_stop(f->server, 0, on_stopped, f);
}

static void setup(struct fixture *f)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    int fds[2];

    *f = (struct fixture){ .server_fd = -1 };
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    f->server_fd = fds[0];
    ASSERT_OK(agx_grpc_client_adopt(&fds[1], &config, &f->client, NULL));
    ASSERT_INT(-1, fds[1]);
    ASSERT_INT(0, sem_init(&f->ready, 0, 0));
    ASSERT_INT(0, pthread_create(&f->thread, NULL, serve, f));
    sem_wait(&f->ready);
}

static void teardown(struct fixture *f)
{
    ASSERT_OK(agx_loop_post(f->loop, stop, f));
    f->client = agx_grpc_client_close(f->client);
    ASSERT_INT(0, pthread_join(f->thread, NULL));
    sem_destroy(&f->ready);
}

TEST(client_call_gives_the_answer)
{
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT((size_t)8 << 20);
    _cleanup_buf_ struct agx_buf big = AGX_BUF_INIT((size_t)8 << 20);
    struct agx_grpc_request q = { .path = "/t.T/Echo", .message = AGX_STR("hello") };
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_call(f.client, &q, &reply, NULL, NULL));
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&reply));
    ASSERT_OK(agx_buf_reserve(&big, (size_t)4 << 20));
    memset(big.data, 'b', (size_t)4 << 20);
    big.len = (size_t)4 << 20;
    q.message = agx_buf_peek(&big);
    agx_buf_clear(&reply);
    ASSERT_OK(agx_grpc_client_call(f.client, &q, &reply, NULL, NULL));
    ASSERT_TRUE(agx_str_eq(agx_buf_peek(&big), agx_buf_peek(&reply)));
    teardown(&f);
}

TEST(client_call_sends_metadata)
{
    const struct agx_grpc_meta meta = { AGX_STR("x-given-bin"), AGX_STR("\0\1\2") };
    const struct agx_grpc_request q = { .path = "/t.T/Echo", .meta = &meta, .meta_count = 1 };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(100);
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_call(f.client, &q, &reply, NULL, NULL));
    ASSERT_STR(AGX_STR("AAEC"), agx_buf_peek(&reply));
    teardown(&f);
}

TEST(client_call_that_fails_has_the_servers_code_message_and_details)
{
    const struct agx_grpc_request q = { .path = "/t.T/Fail", .message = AGX_STR("no '\xc3\xa4'") };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(100), details = AGX_BUF_INIT(100);
    struct agx_error *err = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_CODE(AGX_NOT_FOUND, agx_grpc_client_call(f.client, &q, &reply, &details, &err));
    ASSERT_CSTR("no '\xc3\xa4'", err->message);
    ASSERT_STR(AGX_STR("\1\2\3"), agx_buf_peek(&details));
    ASSERT_UINT(0, reply.len);
    agx_error_free(err);
    teardown(&f);
}

TEST(client_call_past_its_timeout_is_deadline_exceeded_and_the_client_goes_on)
{
    struct agx_grpc_request q = { .path = "/t.T/Hold", .timeout_ms = 30 };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(100);
    struct fixture f;

    setup(&f);
    ASSERT_CODE(AGX_DEADLINE_EXCEEDED, agx_grpc_client_call(f.client, &q, &reply, NULL, NULL));
    q.path = "/t.T/Echo";
    q.timeout_ms = 20000;
    ASSERT_OK(agx_grpc_client_call(f.client, &q, &reply, NULL, NULL));
    teardown(&f);
}

TEST(client_stream_gives_all_messages_and_its_end)
{
    const struct agx_grpc_request q = { .path = "/t.T/Count", .message = AGX_STR("2000") };
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &r, NULL));
    for (int i = 0; i < 2000; i++) {
        ASSERT_INT(1, agx_grpc_reply_next(r, -1, &message, NULL));
        ASSERT_UINT(1000, message.len);
    }
    ASSERT_INT(0, agx_grpc_reply_next(r, -1, &message, NULL));
    ASSERT_INT(0, agx_grpc_reply_next(r, -1, &message, NULL));
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_stream_that_is_not_read_stops_no_other_call)
{
    const struct agx_grpc_request q = { .path = "/t.T/Count", .message = AGX_STR("1000000") };
    const struct agx_grpc_request e = { .path = "/t.T/Echo", .message = AGX_STR("x") };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(1000);
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &r, NULL));
    for (int i = 0; i < 500; i++)
        ASSERT_OK(agx_grpc_client_call(f.client, &e, &reply, NULL, NULL));
    ASSERT_INT(1, agx_grpc_reply_next(r, -1, &message, NULL));
    r = agx_grpc_reply_close(r); /* cancels it */
    ASSERT_OK(agx_grpc_client_call(f.client, &e, &reply, NULL, NULL));
    teardown(&f);
}

static const struct agx_grpc_request sum_request = { .path = "/t.T/Sum", .more = true };

TEST(client_sends_a_stream_of_messages_and_gets_one_answer)
{
    static const char piece[50000];
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &sum_request, &r, NULL));
    for (int i = 0; i < 400; i++) {
        ASSERT_OK(agx_grpc_reply_send(r, agx_str_bytes(piece, sizeof(piece)), NULL));
        while (agx_grpc_reply_unsent(r) > 0)
            ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(r, 10, &message, NULL));
    }
    ASSERT_OK(agx_grpc_reply_send(r, AGX_STR(""), NULL));
    agx_grpc_reply_send_end(r);
    ASSERT_INT(1, agx_grpc_reply_next(r, -1, &message, NULL));
    ASSERT_STR(AGX_STR("20000000"), message);
    ASSERT_INT(0, agx_grpc_reply_next(r, -1, &message, NULL));
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_stream_without_a_message_is_one_too)
{
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &sum_request, &r, NULL));
    agx_grpc_reply_send_end(r);
    ASSERT_INT(1, agx_grpc_reply_next(r, -1, &message, NULL));
    ASSERT_STR(AGX_STR("0"), message);
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_whose_server_does_not_take_its_stream_keeps_what_is_unsent)
{
    const struct agx_grpc_request e = { .path = "/t.T/Echo", .message = AGX_STR("x") };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(100);
    static const char piece[1 << 20];
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &sum_request, &r, NULL));
    ASSERT_OK(agx_grpc_reply_send(r, AGX_STR("pause"), NULL));
    ASSERT_OK(agx_grpc_reply_send(r, agx_str_bytes(piece, sizeof(piece)), NULL));
    ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(r, 20, &message, NULL));
    ASSERT_TRUE(agx_grpc_reply_unsent(r) >= sizeof(piece) - 2 * AGX_GRPC_STREAM_WINDOW);
    /* Another call of the same connection does not wait behind it. */
    ASSERT_OK(agx_grpc_client_call(f.client, &e, &reply, NULL, NULL));
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_learns_of_a_stream_that_the_server_ended_while_it_sends)
{
    static const char piece[50000];
    struct agx_error *err = NULL;
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;
    int rc;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &sum_request, &r, NULL));
    ASSERT_OK(agx_grpc_reply_send(r, AGX_STR("stop"), NULL));
    do {
        ASSERT_OK(agx_grpc_reply_send(r, agx_str_bytes(piece, sizeof(piece)), NULL));
        rc = agx_grpc_reply_next(r, 10, &message, &err);
    } while (rc == AGX_GRPC_NOTHING_YET);
    ASSERT_CODE(AGX_ABORTED, rc);
    ASSERT_CSTR("enough", err->message);
    ASSERT_UINT(0, agx_grpc_reply_unsent(r));
    ASSERT_OK(agx_grpc_reply_send(r, AGX_STR("more"), NULL)); /* for nothing */
    agx_error_free(err);
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_that_waits_a_while_learns_that_nothing_came)
{
    const struct agx_grpc_request q = { .path = "/t.T/Hold" };
    struct agx_grpc_reply *r = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &r, NULL));
    ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(r, 0, &message, NULL));
    ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(r, 20, &message, NULL));
    r = agx_grpc_reply_close(r);
    teardown(&f);
}

TEST(client_reply_is_ready_when_a_look_at_another_has_read_it)
{
    const struct agx_grpc_request q = { .path = "/t.T/Hold" };
    const struct agx_grpc_request e = { .path = "/t.T/Echo", .message = AGX_STR("x") };
    struct agx_grpc_reply *held = NULL, *answered = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &held, NULL));
    ASSERT_OK(agx_grpc_client_start(f.client, &e, &answered, NULL));
    while (!agx_grpc_reply_ready(answered))
        ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(held, 10, &message, NULL));
    ASSERT_FALSE(agx_grpc_reply_ready(held));
    ASSERT_INT(POLLIN, agx_grpc_client_events(f.client));
    ASSERT_INT(1, agx_grpc_reply_next(answered, 0, &message, NULL));
    ASSERT_STR(AGX_STR("x"), message);
    held = agx_grpc_reply_close(held);
    answered = agx_grpc_reply_close(answered);
    teardown(&f);
}

TEST(client_whose_server_goes_away_is_unavailable)
{
    const struct agx_grpc_request q = { .path = "/t.T/Hold" };
    struct agx_grpc_reply *r = NULL, *other = NULL;
    struct agx_error *err = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &r, NULL));
    ASSERT_INT(AGX_GRPC_NOTHING_YET, agx_grpc_reply_next(r, 10, &message, NULL));
    ASSERT_OK(agx_loop_post(f.loop, stop, &f));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_grpc_reply_next(r, -1, &message, &err));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_grpc_reply_next(r, -1, &message, NULL));
    err = agx_error_free(err);
    r = agx_grpc_reply_close(r);
    ASSERT_INT(0, pthread_join(f.thread, NULL));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_grpc_client_start(f.client, &q, &other, NULL) < 0
                                     ? -AGX_UNAVAILABLE
                                     : agx_grpc_reply_next(other, -1, &message, NULL));
    other = agx_grpc_reply_close(other);
    f.client = agx_grpc_client_close(f.client);
    sem_destroy(&f.ready);
}

/* Until these bytes wait to be read, and whatever was sent with them. */
static void until_sent(const struct fixture *f, struct agx_str bytes)
{
    char buf[4096];
    ssize_t n = 0;

    while (n <= 0 || !memmem(buf, (size_t)n, bytes.ptr, bytes.len)) {
        struct pollfd p = { .fd = agx_grpc_client_fd(f->client), .events = POLLIN };

        (void)poll(&p, 1, 10);
        n = recv(p.fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
    }
}

TEST(client_gets_the_answer_of_a_server_that_is_gone_when_it_is_read)
{
    const struct agx_grpc_request q = { .path = "/t.T/Echo", .message = AGX_STR("last words") };
    struct agx_grpc_reply *first = NULL, *second = NULL;
    struct agx_str message;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &first, NULL));
    until_sent(&f, q.message);
    ASSERT_OK(agx_loop_post(f.loop, stop, &f));
    ASSERT_INT(0, pthread_join(f.thread, NULL));
    ASSERT_OK(agx_grpc_client_start(f.client, &q, &second, NULL)); /* nobody takes it */
    ASSERT_INT(1, agx_grpc_reply_next(first, -1, &message, NULL));
    ASSERT_STR(AGX_STR("last words"), message);
    ASSERT_INT(0, agx_grpc_reply_next(first, -1, &message, NULL));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_grpc_reply_next(second, -1, &message, NULL));
    first = agx_grpc_reply_close(first);
    second = agx_grpc_reply_close(second);
    f.client = agx_grpc_client_close(f.client);
    sem_destroy(&f.ready);
}

/* A server that sends these bytes and closes: is the call refused, and not only lost? */
static bool is_refused(struct agx_str bytes)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    const struct agx_grpc_request q = { .path = "/t.T/Echo", .message = AGX_STR("hello") };
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(100);
    struct agx_grpc_client *client = NULL;
    bool refused;
    int fds[2];

    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    ASSERT_OK(agx_grpc_client_adopt(&fds[1], &config, &client, NULL));
    ASSERT_INT((ssize_t)bytes.len, write(fds[0], bytes.ptr, bytes.len));
    close(fds[0]);
    ASSERT_INT(-AGX_UNAVAILABLE, agx_grpc_client_call(client, &q, &reply, NULL, NULL));
    refused = agx_grpc_client_refused(client);
    client = agx_grpc_client_close(client);
    return refused;
}

TEST(client_call_that_a_server_on_its_way_out_did_not_take_is_refused)
{
    static const char settings[9] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
    static const char both[26] = { 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7 }; /* and GOAWAY */

    ASSERT_TRUE(is_refused(agx_str_bytes(both, sizeof(both))));
    ASSERT_TRUE(!is_refused(agx_str_bytes(settings, sizeof(settings))));
    ASSERT_TRUE(!is_refused(AGX_STR("")));
}

TEST(client_open_where_nobody_listens_is_unavailable_and_names_the_path)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    struct agx_grpc_client *c = NULL;
    struct agx_error *err = NULL;

    ASSERT_CODE(AGX_UNAVAILABLE, agx_grpc_client_open("/nonexistent/s", &config, &c, &err));
    ASSERT_MESSAGE(err, "'/nonexistent/s'");
    agx_error_free(err);
    ASSERT_NULL(c);
}

#include "codec/ws.h"
#include "runtime/eio_internal.h"
#include "tests/support/edge.h"

/* An owner that keeps its last session and counts. */
struct owner {
    struct edge edge;
    struct agx_eio_server *eio;
    struct agx_eio_session *session;
    unsigned n_open, n_message, n_drained, n_close;
    bool greet, pause, pause_at_open;
    char last[100], reason[100];
};

static void on_open(void *user, struct agx_eio_session *s, const struct agx_exchange *x)
{
    struct owner *o = user;

    (void)x;
    o->n_open++;
    o->session = s;
    if (o->greet)
        ASSERT_OK(agx_eio_session_send(s, AGX_STR("greeting"), NULL, 0));
    if (o->pause_at_open)
        agx_eio_session_pause(s);
}

static void on_message(void *user, struct agx_eio_session *s, const struct agx_eio_packet *p)
{
    struct owner *o = user;

    o->n_message++;
    snprintf(o->last, sizeof(o->last), "%.*s", AGX_STR_ARG(p->data));
    if (o->pause)
        agx_eio_session_pause(s);
}

static void on_drained(void *user, struct agx_eio_session *s)
{
    (void)s;
    ((struct owner *)user)->n_drained++;
}

static void on_close(void *user, struct agx_eio_session *s, const char *reason)
{
    struct owner *o = user;

    if (o->session == s)
        o->session = NULL;
    o->n_close++;
    snprintf(o->reason, sizeof(o->reason), "%s", reason);
}

static const struct agx_eio_server_ops eio_ops = { on_open, on_message, on_drained, on_close };

static void on_request(void *user, struct agx_exchange *x)
{
    agx_eio_server_request(((struct owner *)user)->eio, x);
}

static void on_gone(void *user, struct agx_exchange *x)
{
    agx_eio_server_gone(((struct owner *)user)->eio, x);
}

static const struct agx_http_server_ops http_ops = { .request = on_request, .gone = on_gone };

static const struct agx_eio_server_config defaults = AGX_EIO_SERVER_CONFIG_INIT;

static void setup(struct owner *o, const struct agx_eio_server_config *config)
{
    static const struct agx_http_server_config http = AGX_HTTP_SERVER_CONFIG_INIT;

    *o = (struct owner){ 0 };
    edge_open(&o->edge, &http, &http_ops, o);
    ASSERT_OK(agx_eio_server_open(o->edge.loop, config, &eio_ops, o, &o->eio, NULL));
}

static void teardown(struct owner *o)
{
    o->eio = agx_eio_server_close(o->eio);
    edge_close(&o->edge);
    ASSERT_UINT(o->n_open, o->n_close);
}

/* A polling session; the client's descriptor. */
static int open_polling(struct owner *o)
{
    char got[4096];
    int fd = edge_connect(&o->edge);

    edge_send(fd, "GET /?EIO=4&transport=polling HTTP/1.1\r\nHost: h\r\n\r\n");
    edge_expect(&o->edge, fd, "\"sid\"", got, sizeof(got));
    return fd;
}

static void send_get(struct owner *o, int fd)
{
    char text[200];

    snprintf(text, sizeof(text), "GET /?EIO=4&sid=%s HTTP/1.1\r\nHost: h\r\n\r\n",
             agx_eio_session_peek_sid(o->session));
    edge_send(fd, text);
}

static void send_post(struct owner *o, int fd, const char *body)
{
    char text[300];

    snprintf(text, sizeof(text),
             "POST /?EIO=4&sid=%s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s",
             agx_eio_session_peek_sid(o->session), strlen(body), body);
    edge_send(fd, text);
}

static int open_websocket(struct owner *o)
{
    char got[4096];
    int fd = edge_connect(&o->edge);

    edge_send(fd, "GET /?EIO=4&transport=websocket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
                  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    edge_expect(&o->edge, fd, o->greet ? "4greeting" : "\"maxPayload\"", got, sizeof(got));
    return fd;
}

TEST(eio_session_over_polling_never_parts_a_text_from_its_attachment)
{
    struct agx_str parts[2] = { AGX_STR("ab"), AGX_STR("c") };
    struct owner o;
    char got[4096];
    int fd;

    setup(&o, &defaults);
    fd = open_polling(&o);
    for (int i = 0; i < 9; i++)
        ASSERT_OK(agx_eio_session_send(o.session, AGX_STR("t"), parts, 2));
    send_get(&o, fd);
    /* 16 packets at most: eight units, and the ninth in the next body. */
    edge_expect(&o.edge, fd,
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj\x1e"
                "4t\x1e"
                "bYWJj",
                got, sizeof(got));
    ASSERT_NOT_NULL(strstr(got, "Content-Length: 71\r\n"));
    send_get(&o, fd);
    edge_expect(&o.edge, fd, "Content-Length: 8\r\n", got, sizeof(got));
    ASSERT_UINT(0, agx_eio_session_queued(o.session));
    close(fd);
    teardown(&o);
}

TEST(eio_sends_of_one_turn_leave_in_one_answer)
{
    struct owner o;
    char got[4096];
    int fd;

    setup(&o, &defaults);
    fd = open_polling(&o);
    send_get(&o, fd);
    for (int i = 0; i < 10; i++)
        edge_turn(&o.edge);
    ASSERT_OK(agx_eio_session_send(o.session, AGX_STR("one"), NULL, 0));
    ASSERT_OK(agx_eio_session_send(o.session, AGX_STR("two"), NULL, 0));
    edge_expect(&o.edge, fd,
                "4one\x1e"
                "4two",
                got, sizeof(got));
    close(fd);
    teardown(&o);
}

TEST(eio_queue_of_a_polling_client_has_a_maximum_and_tells_when_drained)
{
    struct agx_eio_server_config config = defaults;
    static char big[3000];
    struct owner o;
    char got[8192];
    int fd;

    memset(big, 'x', sizeof(big));
    config.queue_max = 4000;
    config.queue_high = 1000;
    setup(&o, &config);
    fd = open_polling(&o);
    ASSERT_OK(agx_eio_session_send(o.session, agx_str_bytes(big, sizeof(big)), NULL, 0));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_eio_session_send(o.session, agx_str_bytes(big, sizeof(big)), NULL, 0));
    ASSERT_TRUE(agx_eio_session_queued(o.session) > sizeof(big));
    send_get(&o, fd);
    edge_expect(&o.edge, fd, "4xxx", got, sizeof(got));
    ASSERT_UINT(1, o.n_drained);
    close(fd);
    teardown(&o);
}

TEST(eio_what_open_sends_comes_after_the_open_packet)
{
    struct owner o;
    int fd;

    setup(&o, &defaults);
    o.greet = true;
    fd = open_websocket(&o);
    close(fd);
    while (o.n_close == 0)
        edge_turn(&o.edge);
    ASSERT_CSTR("the connection was lost", o.reason);
    teardown(&o);
}

TEST(eio_paused_session_gets_no_message_until_it_is_resumed)
{
    static const char two[] = "\x81\x82\0\0\0\0"
                              "4a\x81\x82\0\0\0\0"
                              "4b";
    struct owner o;
    int fd;

    setup(&o, &defaults);
    fd = open_websocket(&o);
    o.pause = true;
    ASSERT_INT(sizeof(two) - 1, send(fd, two, sizeof(two) - 1, 0));
    for (int i = 0; i < 20; i++)
        edge_turn(&o.edge);
    ASSERT_UINT(1, o.n_message);
    ASSERT_CSTR("a", o.last);
    o.pause = false;
    agx_eio_session_resume(o.session);
    while (o.n_message < 2)
        edge_turn(&o.edge);
    ASSERT_CSTR("b", o.last);
    close(fd);
    teardown(&o);
}

TEST(eio_paused_polling_session_answers_its_post_when_it_is_resumed)
{
    struct owner o;
    char got[4096] = "";
    int fd;

    setup(&o, &defaults);
    fd = open_polling(&o);
    o.pause = true;
    send_post(&o, fd, "4a");
    while (o.n_message == 0)
        edge_turn(&o.edge);
    for (int i = 0; i < 10; i++)
        edge_turn(&o.edge);
    (void)edge_recv(fd, got, sizeof(got));
    ASSERT_CSTR("", got);
    agx_eio_session_resume(o.session);
    edge_expect(&o.edge, fd, "\r\n\r\nOK", got, sizeof(got));
    close(fd);
    teardown(&o);
}

TEST(eio_paused_session_is_not_dropped_for_the_pongs_that_we_do_not_read)
{
    struct agx_eio_server_config config = defaults;
    struct owner o;
    int fd;

    config.ping_interval_ms = config.ping_timeout_ms = 20;
    setup(&o, &config);
    o.pause_at_open = true; /* before the first ping, however long the rest takes */
    fd = open_websocket(&o);
    for (int i = 0; i < 40; i++) {
        usleep(10000);
        edge_turn(&o.edge);
    }
    ASSERT_UINT(0, o.n_close);
    agx_eio_session_resume(o.session);
    while (o.n_close == 0)
        edge_turn(&o.edge);
    ASSERT_CSTR("ping timeout", o.reason);
    close(fd);
    teardown(&o);
}

TEST(eio_upgrade_that_does_not_go_on_is_given_up_and_the_session_stays)
{
    struct agx_eio_server_config config = defaults;
    char text[300];
    struct owner o;
    int fd, ws;

    config.upgrade_ms = 10;
    setup(&o, &config);
    fd = open_polling(&o);
    ws = edge_connect(&o.edge);
    snprintf(text, sizeof(text),
             "GET /?EIO=4&transport=websocket&sid=%s HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
             agx_eio_session_peek_sid(o.session));
    edge_send(ws, text);
    edge_expect_end(&o.edge, ws);
    ASSERT_UINT(0, o.n_close);
    ASSERT_UINT(1, o.eio->sessions.len);
    close(ws);
    close(fd);
    teardown(&o);
}

TEST(eio_sessions_past_the_maximum_are_refused_with_503)
{
    struct agx_eio_server_config config = defaults;
    struct owner o;
    char got[4096];
    int fd, second;

    config.sessions_max = 1;
    setup(&o, &config);
    fd = open_polling(&o);
    second = edge_connect(&o.edge);
    edge_send(second, "GET /?EIO=4&transport=polling HTTP/1.1\r\nHost: h\r\n\r\n");
    edge_expect(&o.edge, second, "503 Service Unavailable", got, sizeof(got));
    close(second);
    close(fd);
    teardown(&o);
}

TEST(eio_session_that_says_nothing_ends_and_one_that_spoke_goes_on)
{
    struct agx_eio_server_config config = defaults;
    struct owner o;
    char got[4096];
    int silent, fd;

    config.first_ms = 10;
    setup(&o, &config);
    silent = open_polling(&o);
    while (o.n_close == 0)
        edge_turn(&o.edge);
    ASSERT_CSTR("no message in time", o.reason);
    config.ping_interval_ms = 2000; /* past the last look of a silent one */
    teardown(&o);
    close(silent);
    setup(&o, &config);
    fd = open_polling(&o);
    send_post(&o, fd, "4hello");
    edge_expect(&o.edge, fd, "OK", got, sizeof(got));
    send_get(&o, fd);
    edge_expect(&o.edge, fd, "\r\n\r\n2", got, sizeof(got)); /* the ping */
    ASSERT_UINT(0, o.n_close);
    close(fd);
    teardown(&o);
}

TEST(eio_session_that_was_closed_sends_no_more_and_its_waiting_get_gets_a_close_packet)
{
    struct owner o;
    char got[4096];
    int fd;

    setup(&o, &defaults);
    fd = open_polling(&o);
    send_get(&o, fd);
    for (int i = 0; i < 10; i++)
        edge_turn(&o.edge);
    agx_eio_session_close(o.session, AGX_WS_NORMAL, "enough");
    ASSERT_UINT(0, o.n_close); /* not inside the call */
    ASSERT_CODE(AGX_UNAVAILABLE, agx_eio_session_send(o.session, AGX_STR("x"), NULL, 0));
    edge_expect(&o.edge, fd, "\r\n\r\n1", got, sizeof(got));
    ASSERT_CSTR("enough", o.reason);
    close(fd);
    teardown(&o);
}

/* A binary message of so many bytes, to its end. */
static void send_large(struct owner *o, int fd, size_t size)
{
    static const uint8_t key[AGX_WS_KEY_SIZE] = { 0 };
    uint8_t *data = calloc(1, AGX_WS_HEADER_MAX + size);
    size_t len = data ? agx_ws_header(data, AGX_WS_BINARY, size, key) + size : 0, at = 0;
    unsigned before = o->n_message;

    ASSERT_TRUE(data);
    while (o->n_message == before) {
        ssize_t n = send(fd, data + at, len - at, MSG_NOSIGNAL);

        at += n > 0 ? (size_t)n : 0;
        edge_turn(&o->edge);
    }
    ASSERT_UINT(len, at);
    free(data);
}

TEST(eio_sessions_keep_no_more_room_for_large_messages_than_the_server_may)
{
    enum { N = 5, SIZE = 300 << 10, KEPT_MAX = 1 << 20 };
    struct agx_eio_server_config config = defaults;
    size_t most = 0;
    struct owner o;
    int fds[N];

    config.kept_max = KEPT_MAX;
    setup(&o, &config);
    for (int i = 0; i < N; i++)
        fds[i] = open_websocket(&o);
    ASSERT_UINT(0, o.eio->kept);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++) {
            send_large(&o, fds[i], SIZE);
            ASSERT_TRUE(o.eio->kept <= KEPT_MAX);
            most = AGX_MAX(most, o.eio->kept);
        }
    }
    ASSERT_TRUE(most > SIZE); /* some have kept theirs */
    for (int i = 0; i < N; i++)
        close(fds[i]);
    while (o.n_close < N)
        edge_turn(&o.edge);
    ASSERT_UINT(0, o.eio->kept);
    teardown(&o);
}

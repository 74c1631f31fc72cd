/*
 * sio_echo: a Socket.IO server in one file, to show how the runtime's modules fit together.
 *
 *     listener -> http_server -> eio_server -> sio_assembler -> echo
 *
 * It answers every event that asks for an acknowledgement: with the number of bytes and the SHA-1
 * of the first attachment, and the attachment itself; or, without one, with the arguments as they
 * came.
 *
 *     sio_echo [PORT [PING-INTERVAL-MS PING-TIMEOUT-MS MESSAGE-MAX]]
 */
#include "codec/sha1.h"
#include "codec/sio_assembler.h"
#include "codec/ws.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/signals.h"
#include "runtime/eio_server.h"

#include <stdio.h>

#include "base/banned.h"

struct app {
    struct agx_loop *loop;
    struct agx_listener *listener;
    struct agx_signals *signals;
    struct agx_conn_group *group;
    struct agx_http_server *http;
    struct agx_eio_server *eio;
};

/* What we keep for one Engine.IO session. */
struct client {
    struct agx_sio_assembler in;
    bool connected; /* to namespace "/" */
};

static void send_text(struct agx_eio_session *s, const char *text)
{
    if (agx_eio_session_send(s, agx_str_from(text), NULL, 0) < 0)
        agx_eio_session_close(s, AGX_WS_INTERNAL, "cannot send");
}

static void on_connect(struct agx_eio_session *s, struct client *c, const struct agx_sio_packet *p)
{
    char text[300];

    if (!agx_str_eq(p->nsp, AGX_STR("/"))) {
        (void)snprintf(text, sizeof(text), "4%.*s,\"Unable to connect\"",
                       (int)AGX_MIN(p->nsp.len, (size_t)200), p->nsp.ptr);
    } else {
        c->connected = true;
        (void)snprintf(text, sizeof(text), "0{\"sid\":\"%s\"}", agx_eio_session_peek_sid(s));
    }
    send_text(s, text);
}

/* The acknowledgement of an event with an attachment: [{"bytes":N,"sha1":"..."},<attachment>]. */
static int ack_binary(struct agx_eio_session *s, uint64_t id, struct agx_str bytes)
{
    _cleanup_buf_ struct agx_buf data = AGX_BUF_INIT(1000), text = AGX_BUF_INIT(2000);
    uint8_t digest[AGX_SHA1_SIZE];
    int r;

    agx_sha1(bytes, digest);
    r = agx_buf_printf(&data, "[{\"bytes\":%zu,\"sha1\":\"", bytes.len);
    for (size_t i = 0; i < sizeof(digest) && r == 0; i++)
        r = agx_buf_printf(&data, "%02x", digest[i]);
    if (r == 0)
        r = agx_buf_append(&data, AGX_STR("\"},{\"_placeholder\":true,\"num\":0}]"));
    if (r == 0)
        r = agx_sio_encode(&text, &(struct agx_sio_packet){ .type = AGX_SIO_BINARY_ACK,
                                                            .has_id = true,
                                                            .id = id,
                                                            .attachments = 1,
                                                            .data = agx_buf_peek(&data) });
    return r < 0 ? r : agx_eio_session_send(s, agx_buf_peek(&text), &bytes, 1);
}

/* The acknowledgement of an event without attachments: its arguments. */
static int ack_plain(struct agx_eio_session *s, const struct agx_sio_message *m)
{
    _cleanup_buf_ struct agx_buf data = AGX_BUF_INIT(AGX_SIO_HEADER_MAX),
                                 text = AGX_BUF_INIT(2 * AGX_SIO_HEADER_MAX);
    struct agx_sio_args args;
    struct agx_sio_arg arg;
    int r = agx_buf_push(&data, '[');

    agx_sio_args_init(&args, m);
    while (r == 0 && agx_sio_args_next(&args, &arg)) {
        if (data.len > 1)
            r = agx_buf_push(&data, ',');
        if (r == 0)
            r = agx_buf_append(&data, arg.json);
    }
    if (r == 0)
        r = agx_buf_push(&data, ']');
    if (r == 0)
        r = agx_sio_encode(&text, &(struct agx_sio_packet){ .type = AGX_SIO_ACK,
                                                            .has_id = true,
                                                            .id = m->packet.id,
                                                            .data = agx_buf_peek(&data) });
    return r < 0 ? r : agx_eio_session_send(s, agx_buf_peek(&text), NULL, 0);
}

static void on_event(struct agx_eio_session *s, const struct agx_sio_message *m)
{
    int r;

    if (!m->packet.has_id)
        return;
    if (m->packet.attachments > 0)
        r = ack_binary(s, m->packet.id, m->attachments[0].bytes);
    else
        r = ack_plain(s, m);
    if (r < 0)
        agx_eio_session_close(s, AGX_WS_INTERNAL, "cannot send");
}

static void on_message(void *user, struct agx_eio_session *s, const struct agx_eio_packet *p)
{
    struct client *c = agx_eio_session_user(s);
    struct agx_sio_message m;
    int r = agx_sio_assembler_feed(&c->in, p, &m, NULL);

    (void)user;
    if (r < 0)
        agx_eio_session_close(s, AGX_WS_PROTOCOL_ERROR, "not a Socket.IO packet");
    if (r <= 0)
        return;
    if (m.packet.type == AGX_SIO_CONNECT)
        on_connect(s, c, &m.packet);
    else if (m.packet.type == AGX_SIO_DISCONNECT)
        agx_eio_session_close(s, AGX_WS_NORMAL, "the client disconnected");
    else if (agx_sio_is_event(m.packet.type) && c->connected)
        on_event(s, &m);
}

static void on_session_open(void *user, struct agx_eio_session *s, const struct agx_exchange *x)
{
    static const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
    struct client *c = calloc(1, sizeof(*c));

    (void)user;
    (void)x;
    if (!c)
        abort();
    agx_sio_assembler_init(&c->in, &limits);
    agx_eio_session_set_user(s, c);
    printf("session %s opened\n", agx_eio_session_peek_sid(s));
}

static void on_session_close(void *user, struct agx_eio_session *s, const char *reason)
{
    struct client *c = agx_eio_session_user(s);

    (void)user;
    printf("session %s ended: %s\n", agx_eio_session_peek_sid(s), reason);
    agx_sio_assembler_done(&c->in);
    free(c);
}

static const struct agx_eio_server_ops eio_ops = {
    .open = on_session_open,
    .message = on_message,
    .close = on_session_close,
};

static bool is_socketio(const struct agx_exchange *x)
{
    return agx_str_eq(x->head.path, AGX_STR("/socket.io/")) ||
           agx_str_eq(x->head.path, AGX_STR("/socket.io"));
}

static void on_request(void *user, struct agx_exchange *x)
{
    struct app *app = user;

    if (is_socketio(x))
        agx_eio_server_request(app->eio, x);
    else
        agx_exchange_answer_detail(x, 404, "Not Found");
}

static void on_oversize(void *user, struct agx_exchange *x)
{
    struct app *app = user;

    if (is_socketio(x))
        agx_eio_server_oversize(app->eio, x);
}

static void on_gone(void *user, struct agx_exchange *x)
{
    struct app *app = user;

    agx_eio_server_gone(app->eio, x);
}

static const struct agx_http_server_ops http_ops = {
    .request = on_request,
    .oversize = on_oversize,
    .gone = on_gone,
};

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    struct app *app = user;
    _cleanup_close_ int take = fd;

    (void)peer;
    if (agx_http_server_accept(app->http, &take, 0, 0, NULL) < 0)
        fprintf(stderr, "sio_echo: a connection was refused\n");
}

static void on_shutdown(void *user, int signo, unsigned count)
{
    struct app *app = user;

    (void)signo;
    if (count > 1)
        agx_loop_stop(app->loop);
    app->listener = agx_listener_close(app->listener);
    app->eio = agx_eio_server_close(app->eio);
    app->http = agx_http_server_close(app->http);
}

static int app_run(struct app *app, uint16_t port, const struct agx_eio_server_config *config,
                   struct agx_error **err)
{
    struct agx_conn_config conns = AGX_CONN_CONFIG_INIT;
    struct agx_http_server_config http = AGX_HTTP_SERVER_CONFIG_INIT;
    char addr[80];
    int r = agx_loop_open(&app->loop, err);

    http.body_max = config->message_max;
    if (r == 0)
        r = agx_signals_open(app->loop, on_shutdown, app, &app->signals, err);
    if (r == 0)
        r = agx_conn_group_open(app->loop, &conns, &app->group, err);
    if (r == 0)
        r = agx_eio_server_open(app->loop, config, &eio_ops, app, &app->eio, err);
    if (r == 0)
        r = agx_http_server_open(app->group, &http, &http_ops, app, &app->http, err);
    if (r == 0)
        r = agx_listener_open_tcp(app->loop, "127.0.0.1", port, &app->listener, err);
    if (r == 0)
        r = agx_listener_start(app->listener, on_accept, app, err);
    if (r < 0)
        return r;
    printf("listening at %s\n",
           agx_addr_format(agx_listener_peek_addr(app->listener), addr, sizeof(addr)));
    agx_loop_run(app->loop);
    return 0;
}

static int app_close(struct app *app, struct agx_error **err)
{
    app->signals = agx_signals_close(app->signals);
    app->listener = agx_listener_close(app->listener);
    app->eio = agx_eio_server_close(app->eio);
    app->http = agx_http_server_close(app->http);
    app->group = agx_conn_group_close(app->group);
    return agx_loop_close(app->loop, err);
}

int main(int argc, char **argv)
{
    struct agx_eio_server_config config = AGX_EIO_SERVER_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint64_t numbers[4] = { 0, config.ping_interval_ms, config.ping_timeout_ms,
                            config.message_max };
    struct app app = { 0 };
    char text[300];
    int r;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (i > 4 ||
            !agx_parse_u64(agx_str_from(argv[i]), i == 1 ? 65535 : 1 << 30, &numbers[i - 1])) {
            fprintf(stderr, "usage: sio_echo "
                            "[PORT [PING-INTERVAL-MS PING-TIMEOUT-MS MESSAGE-MAX]]\n");
            return 2;
        }
    }
    config.ping_interval_ms = (uint32_t)numbers[1];
    config.ping_timeout_ms = (uint32_t)numbers[2];
    config.message_max = numbers[3];
    r = app_run(&app, (uint16_t)numbers[0], &config, &err);
    if (app_close(&app, err ? NULL : &err) < 0 || r < 0) {
        fprintf(stderr, "sio_echo: %s\n", agx_error_format(err, text, sizeof(text)));
        return 1;
    }
    return 0;
}

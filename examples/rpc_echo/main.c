/*
 * rpc_echo: the service of echo.proto on a Unix socket, with health and reflection.
 *
 *     rpc_echo SOCKET [MESSAGE-MAX]
 *
 * Prints "listening at SOCKET", and "ended CODE" for each call that ended before its answer.
 */
#include "codec/grpc_meta.h"
#include "loop/listener.h"
#include "loop/signals.h"
#include "grpc/health.h"
#include "grpc/reflection.h"
#include "grpc/server.h"

#include <stdio.h>

#include "base/banned.h"

enum { GRACE_MS = 4000 }; /* for calls that still run at the end */

extern const unsigned char echo_set[];
extern const size_t echo_set_len;

struct app {
    struct agx_loop *loop;
    struct agx_signals *signals;
    struct agx_grpc_server *server;
    struct agx_grpc_health *health;
    struct agx_grpc_reflection *reflection;
};

/* A call that is not answered at once. */
struct task {
    struct agx_grpc_call *call; /* NULL: it is over */
    struct agx_buf text;
    uint64_t left; /* messages to send */
    uv_timer_t timer;
};

static uint64_t number(const struct agx_grpc_call *call, struct agx_str key, uint64_t otherwise)
{
    uint64_t n;

    return agx_parse_u64(agx_grpc_call_peek_meta(call, key), UINT32_MAX, &n) ? n : otherwise;
}

static void task_closed(uv_handle_t *h)
{
    struct task *t = container_of(h, struct task, timer);

    agx_buf_done(&t->text);
    free(t);
}

static void task_free(struct task *t)
{
    t->call = NULL;
    uv_close((uv_handle_t *)&t->timer, task_closed);
}

static void finish(struct task *t)
{
    agx_grpc_call_finish(t->call, &(struct agx_grpc_status){ .code = AGX_OK });
    task_free(t);
}

static void fail(struct agx_grpc_call *call, enum agx_code code, const char *message)
{
    agx_grpc_call_finish(
        call, &(struct agx_grpc_status){ .code = code, .message = agx_str_from(message) });
}

static void on_ended(void *user, enum agx_code code)
{
    printf("ended %s\n", agx_code_name(code));
    task_free(user);
}

/* The answer of Say, as the metadata requests. */
static void say_now(struct agx_grpc_call *call, struct agx_str request)
{
    _cleanup_buf_ struct agx_buf details = AGX_BUF_INIT(4096);
    struct agx_str coded = agx_grpc_call_peek_meta(call, AGX_STR("x-details-bin"));
    struct agx_grpc_status status = {
        .code = (enum agx_code)number(call, AGX_STR("x-code"), AGX_OK),
        .message = agx_grpc_call_peek_meta(call, AGX_STR("x-message")),
        .trailers = &(struct agx_grpc_meta){ AGX_STR("x-trailer-bin"), AGX_STR("\0\1\2") },
        .trailer_count = 1,
    };

    if (status.code == AGX_OK) {
        agx_grpc_call_reply(call, request);
        return;
    }
    if (coded.ptr && agx_grpc_bin_next(&coded, &details, NULL) > 0)
        status.details = agx_buf_peek(&details);
    agx_grpc_call_finish(call, &status);
}

static void on_timer(uv_timer_t *timer)
{
    struct task *t = container_of(timer, struct task, timer);

    say_now(t->call, agx_buf_peek(&t->text));
    task_free(t);
}

static void send_more(void *user)
{
    struct task *t = user;
    int r = 0;

    while (t->left > 0 && r == 0) {
        r = agx_grpc_call_send(t->call, agx_buf_peek(&t->text));
        t->left--;
    }
    if (t->left == 0)
        finish(t);
}

static void on_message(void *user, struct agx_str message)
{
    struct task *t = user;

    if (agx_buf_append(&t->text, message) < 0) {
        fail(t->call, AGX_RESOURCE_EXHAUSTED, "too much to join");
        task_free(t);
    }
}

static void on_joined(void *user)
{
    struct task *t = user;

    agx_grpc_call_reply(t->call, agx_buf_peek(&t->text));
    task_free(t);
}

static void on_chat(void *user, struct agx_str message)
{
    struct task *t = user;

    if (agx_grpc_call_send(t->call, message) > 0)
        agx_grpc_call_pause(t->call);
}

static void on_chat_writable(void *user)
{
    agx_grpc_call_resume(((struct task *)user)->call);
}

static void on_chat_end(void *user)
{
    finish(user);
}

static const struct agx_grpc_call_ops say_ops = { .ended = on_ended };
static const struct agx_grpc_call_ops repeat_ops = { .ended = on_ended, .writable = send_more };
static const struct agx_grpc_call_ops join_ops = { .ended = on_ended,
                                                   .message = on_message,
                                                   .half_closed = on_joined };
static const struct agx_grpc_call_ops chat_ops = {
    .ended = on_ended, .writable = on_chat_writable, .message = on_chat, .half_closed = on_chat_end
};

static struct task *task_new(struct app *app, struct agx_grpc_call *call, struct agx_str text,
                             const struct agx_grpc_call_ops *ops)
{
    struct task *t = calloc(1, sizeof(*t));

    if (t)
        t->text.max = AGX_GRPC_MESSAGE_MAX;
    if (!t || agx_buf_append(&t->text, text) < 0) {
        free(t);
        fail(call, AGX_RESOURCE_EXHAUSTED, "no memory");
        return NULL;
    }
    t->call = call;
    (void)uv_timer_init(agx_loop_uv(app->loop), &t->timer);
    agx_grpc_call_watch(call, ops, t);
    return t;
}

static void say(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    uint64_t delay_ms = number(call, AGX_STR("x-delay-ms"), 0);
    struct task *t;

    if (delay_ms == 0) {
        say_now(call, request);
        return;
    }
    t = task_new(service, call, request, &say_ops);
    if (t)
        (void)uv_timer_start(&t->timer, on_timer, delay_ms, 0);
}

static void repeat(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    uint64_t count = number(call, AGX_STR("x-count"), 1);
    struct task *t = task_new(service, call, request, &repeat_ops);

    if (t) {
        t->left = count;
        send_more(t);
    }
}

static void join(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)task_new(service, call, request, &join_ops);
}

static void chat(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)task_new(service, call, request, &chat_ops);
}

static const struct agx_grpc_method methods[] = {
    { "/example.v1.Echo/Say", AGX_GRPC_UNARY, false, say },
    { "/example.v1.Echo/Repeat", AGX_GRPC_SERVER_STREAM, false, repeat },
    { "/example.v1.Echo/Join", AGX_GRPC_CLIENT_STREAM, false, join },
    { "/example.v1.Echo/Chat", AGX_GRPC_BIDI, false, chat },
};

static void on_stopped(void *user, struct agx_error *error)
{
    struct app *app = user;

    (void)agx_error_free(error);
    app->server = NULL;
    app->signals = agx_signals_close(app->signals);
}

static void on_shutdown(void *user, int signo, unsigned count)
{
    struct app *app = user;

    (void)signo;
    if (count == 1)
        agx_grpc_server_stop(app->server, GRACE_MS, on_stopped, app);
    else
        agx_loop_stop(app->loop);
}

static int app_run(struct app *app, const char *path, const struct agx_grpc_config *config,
                   struct agx_error **err)
{
    struct agx_listener *listener = NULL;
    int r = agx_loop_open(&app->loop, err);

    if (r == 0)
        r = agx_signals_open(app->loop, on_shutdown, app, &app->signals, err);
    if (r == 0)
        r = agx_grpc_server_open(app->loop, config, &app->server, err);
    if (r == 0)
        r = agx_grpc_health_new(app->server, &app->health, err);
    if (r == 0)
        r = agx_grpc_health_set(app->health, AGX_STR("example.v1.Echo"), true, err);
    if (r == 0)
        r = agx_grpc_reflection_new(app->server, &app->reflection, err);
    if (r == 0)
        r = agx_grpc_reflection_add(app->reflection, agx_str_bytes(echo_set, echo_set_len), err);
    if (r == 0)
        r = agx_grpc_server_add(app->server, methods, AGX_ARRAY_LEN(methods), app, err);
    if (r == 0)
        r = agx_listener_open_unix(app->loop, path, &listener, err);
    if (r == 0)
        r = agx_grpc_server_listen(app->server, &listener, err);
    if (r < 0)
        return r;
    printf("listening at %s\n", path);
    agx_loop_run(app->loop);
    app->health = agx_grpc_health_free(app->health);
    app->reflection = agx_grpc_reflection_free(app->reflection);
    return agx_loop_close(app->loop, err);
}

int main(int argc, char **argv)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct app app = { 0 };
    uint64_t max = config.message_max;
    char text[300];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2 || argc > 3 ||
        (argc == 3 && !agx_parse_u64(agx_str_from(argv[2]), UINT32_MAX, &max))) {
        fprintf(stderr, "usage: rpc_echo SOCKET [MESSAGE-MAX]\n");
        return 2;
    }
    config.message_max = max;
    if (app_run(&app, argv[1], &config, &err) < 0) {
        fprintf(stderr, "rpc_echo: %s\n", agx_error_format(err, text, sizeof(text)));
        return 1;
    }
    return 0;
}

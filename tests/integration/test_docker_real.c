/*
 * test_docker_real.c: backend/docker/api/engine.h and related modules with the real Docker Engine
 * that DOCKER_HOST names. Run it with tests/support/docker_box.py.
 */
#include "backend/docker/api/events.h"
#include "backend/docker/api/hijack.h"
#include "backend/docker/pull.h"
#include "tests/support/loop.h"

#include <stdlib.h>

#define IMAGE "agx-busybox:1"
#define LABEL "io.agentix.test"

struct fixture {
    struct agx_loop *loop;
    struct agx_docker_engine *engine;
    /* a call */
    unsigned n_done, status;
    json_t *json;
    struct agx_error *error;
    char stat[512];
    /* a hijack */
    struct agx_docker_hijack *hijack;
    struct agx_buf out, err;
    bool open, closed;
    size_t pause_every; /* bytes of stdout after which to pause */
    /* events */
    unsigned n_up;
    char happened[100];
    /* an upload */
    struct agx_buf tar;
    size_t tar_at;
    /* an image */
    char image[100];
};

static void setup(struct fixture *f)
{
    struct agx_docker_engine_config config = AGX_DOCKER_ENGINE_CONFIG_INIT;
    struct agx_docker_env env = { .host = getenv("DOCKER_HOST"),
                                  .tls_verify = getenv("DOCKER_TLS_VERIFY"),
                                  .cert_path = getenv("DOCKER_CERT_PATH") };
    struct agx_engine_endpoint endpoint;

    if (!env.host)
        SKIP("DOCKER_HOST names no engine");
    *f = (struct fixture){ .loop = test_loop_open(),
                           .out = AGX_BUF_INIT(64 << 20),
                           .err = AGX_BUF_INIT(64 << 20),
                           .tar = AGX_BUF_INIT(1 << 20) };
    ASSERT_OK(agx_engine_endpoint_find(NULL, &env, &endpoint, NULL));
    config.endpoint = &endpoint;
    ASSERT_OK(agx_docker_engine_open(f->loop, &config, &f->engine, NULL));
    agx_engine_endpoint_done(&endpoint);
}

static void teardown(struct fixture *f)
{
    f->engine = agx_docker_engine_close(f->engine);
    test_loop_run(f->loop);
    test_loop_close(f->loop);
    json_decref(f->json);
    f->error = agx_error_free(f->error);
    agx_buf_done(&f->out);
    agx_buf_done(&f->err);
    agx_buf_done(&f->tar);
}

#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv((f)->loop), UV_RUN_NOWAIT), uv_sleep(1)

static void on_done(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct fixture *f = user;
    const char *stat = agx_docker_answer_header(answer, "X-Docker-Container-Path-Stat");

    f->n_done++;
    f->status = answer->status;
    json_decref(f->json);
    f->json = json_incref(answer->json);
    agx_error_free(f->error);
    f->error = error;
    (void)snprintf(f->stat, sizeof(f->stat), "%s", stat ? stat : "");
}

static void ask_with(struct fixture *f, const struct agx_docker_request *q)
{
    unsigned before = f->n_done;
    struct agx_docker_call *call = NULL;

    ASSERT_OK(agx_docker_call(f->engine, q, on_done, f, &call, NULL));
    UNTIL(f, f->n_done > before);
}

static void ask(struct fixture *f, const char *method, const char *path, const json_t *body)
{
    char what[200];

    (void)snprintf(what, sizeof(what), "%s '%s'", method, path);
    ask_with(f, &(struct agx_docker_request){
                    .method = method, .path = path, .what = what, .body = body });
}

/* The same, and it succeeds. */
static void must(struct fixture *f, const char *method, const char *path, const json_t *body)
{
    char text[500];

    ask(f, method, path, body);
    if (f->error)
        FAIL("%s", agx_error_format(f->error, text, sizeof(text)));
}

static void make(struct fixture *f, const char *name, const char *command, bool with_input)
{
    _cleanup_json_ json_t *body =
        json_pack("{s:s,s:[s,s,s],s:{s:s},s:b,s:b,s:b,s:b,s:b,s:{s:s}}", "Image", IMAGE, "Cmd",
                  "sh", "-c", command, "Labels", LABEL, name, "OpenStdin", with_input, "StdinOnce",
                  with_input, "AttachStdin", with_input, "AttachStdout", with_input, "AttachStderr",
                  with_input, "HostConfig", "NetworkMode", "none");
    _cleanup_free_ char *path = agx_docker_path("/containers/create?name=%s", name);

    ASSERT_NOT_NULL(body);
    must(f, "POST", path, body);
}

static void destroy(struct fixture *f, const char *name)
{
    _cleanup_free_ char *path = agx_docker_path("/containers/%s?force=1&v=1", name);

    must(f, "DELETE", path, NULL);
}

TEST(engine_answers)
{
    struct fixture f;

    setup(&f);
    must(&f, "GET", "/info", NULL);
    ASSERT_TRUE(json_is_string(json_object_get(f.json, "ServerVersion")));
    teardown(&f);
}

TEST(container_is_made_started_and_removed_and_each_can_be_repeated)
{
    _cleanup_json_ json_t *same = json_pack("{s:s,s:[s]}", "Image", IMAGE, "Cmd", "true");
    struct fixture f;

    setup(&f);
    make(&f, "real-life", "exec sleep 1000", false);
    must(&f, "POST", "/containers/real-life/start", NULL);
    ASSERT_UINT(204, f.status);
    must(&f, "POST", "/containers/real-life/start", NULL);
    ASSERT_UINT(304, f.status);
    ask(&f, "POST", "/containers/create?name=real-life", same);
    ASSERT_INT(AGX_ALREADY_EXISTS, f.error->code);
    ASSERT_MESSAGE(f.error, "is already in use");
    must(&f, "GET", "/containers/real-life/json", NULL);
    ASSERT_TRUE(json_is_true(json_object_get(json_object_get(f.json, "State"), "Running")));
    destroy(&f, "real-life");
    ask(&f, "GET", "/containers/real-life/json", NULL);
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    ASSERT_MESSAGE(f.error, "GET '/containers/real-life/json': No such container");
    teardown(&f);
}

static void on_up(void *user)
{
    ((struct fixture *)user)->n_up++;
}

static void on_event(void *user, const struct agx_docker_event *ev)
{
    struct fixture *f = user;
    size_t len = strlen(f->happened);

    ASSERT_CSTR("real-news", agx_docker_event_get(ev, LABEL));
    (void)snprintf(f->happened + len, sizeof(f->happened) - len, "%d ", (int)ev->what);
}

TEST(events_tell_of_our_containers_only)
{
    static const struct agx_docker_events_ops ops = { .up = on_up, .event = on_event };
    struct agx_docker_events_config config = AGX_DOCKER_EVENTS_CONFIG_INIT;
    struct agx_docker_events *events = NULL;
    struct fixture f;

    setup(&f);
    config.label = LABEL "=real-news";
    ASSERT_OK(agx_docker_events_open(f.engine, &config, &ops, &f, &events, NULL));
    UNTIL(&f, f.n_up == 1);
    make(&f, "real-other", "true", false);
    must(&f, "POST", "/containers/real-other/start", NULL);
    make(&f, "real-news", "true", false);
    must(&f, "POST", "/containers/real-news/start", NULL);
    must(&f, "POST", "/containers/real-news/wait", NULL);
    destroy(&f, "real-news");
    destroy(&f, "real-other");
    UNTIL(&f, strstr(f.happened, "3"));
    ASSERT_CSTR("0 1 3 ", f.happened);
    events = agx_docker_events_close(events);
    teardown(&f);
}

static void on_open(void *user)
{
    ((struct fixture *)user)->open = true;
}

static void on_data(void *user, enum agx_dockerstream_kind stream, struct agx_str bytes)
{
    struct fixture *f = user;
    struct agx_buf *to = stream == AGX_DOCKERSTREAM_STDERR ? &f->err : &f->out;
    size_t before = to->len;

    ASSERT_OK(agx_buf_append(to, bytes));
    if (f->pause_every && to->len / f->pause_every > before / f->pause_every)
        agx_docker_hijack_pause(f->hijack, true);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct fixture *f = user;

    f->hijack = NULL;
    f->closed = true;
    agx_error_free(f->error);
    f->error = error;
}

static void attach(struct fixture *f, const char *path, const json_t *body)
{
    static const struct agx_docker_hijack_ops ops = { on_open, on_data, NULL, on_closed };
    struct agx_docker_hijack_request q = {
        .request = { .method = "POST", .path = path, .what = "attach", .body = body }
    };

    f->open = f->closed = false;
    ASSERT_OK(agx_docker_hijack(f->engine, &q, &ops, f, &f->hijack, NULL));
    UNTIL(f, f->open || f->closed);
}

TEST(attach_moves_bytes_both_ways_and_ends_with_the_container)
{
    struct fixture f;

    setup(&f);
    make(&f, "real-cat", "cat; echo bye >&2", true);
    attach(&f, "/containers/real-cat/attach?stream=1&stdin=1&stdout=1&stderr=1", NULL);
    ASSERT_TRUE(f.open);
    must(&f, "POST", "/containers/real-cat/start", NULL);
    ASSERT_OK(agx_docker_hijack_write(f.hijack, AGX_STR("hello\n"), NULL));
    UNTIL(&f, f.out.len == 6);
    ASSERT_STR(AGX_STR("hello\n"), agx_buf_peek(&f.out));
    if (getenv("DOCKER_TLS_VERIFY")) {
        ASSERT_CODE(AGX_UNIMPLEMENTED, agx_docker_hijack_end(f.hijack, NULL));
        destroy(&f, "real-cat");
        UNTIL(&f, f.closed);
    } else {
        ASSERT_OK(agx_docker_hijack_end(f.hijack, NULL));
        UNTIL(&f, f.closed);
        ASSERT_STR(AGX_STR("bye\n"), agx_buf_peek(&f.err));
        destroy(&f, "real-cat");
    }
    ASSERT_NULL(f.error);
    attach(&f, "/containers/real-cat/attach?stream=1&stdout=1", NULL);
    ASSERT_FALSE(f.open);
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    teardown(&f);
}

TEST(exec_gives_all_output_however_often_we_pause)
{
    _cleanup_json_ json_t *command = NULL, *start = json_pack("{s:b,s:b}", "Detach", 0, "Tty", 0);
    _cleanup_free_ char *exec = NULL, *inspect = NULL;
    const char *id;
    struct fixture f;

    setup(&f);
    make(&f, "real-exec", "exec sleep 1000", false);
    must(&f, "POST", "/containers/real-exec/start", NULL);
    command = json_pack("{s:b,s:b,s:[s,s,s]}", "AttachStdout", 1, "AttachStderr", 1, "Cmd", "sh",
                        "-c", "head -c 4000000 /dev/zero; echo oops >&2; exit 7");
    must(&f, "POST", "/containers/real-exec/exec", command);
    id = json_string_value(json_object_get(f.json, "Id"));
    exec = agx_docker_path("/exec/%s/start", id);
    inspect = agx_docker_path("/exec/%s/json", id);
    f.pause_every = 100000;
    attach(&f, exec, start);
    while (!f.closed) {
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
        if (f.hijack)
            agx_docker_hijack_pause(f.hijack, false);
    }
    ASSERT_NULL(f.error);
    ASSERT_UINT(4000000, f.out.len);
    ASSERT_STR(AGX_STR("oops\n"), agx_buf_peek(&f.err));
    do /* the end of the output may come before the engine has the exit code */
        must(&f, "GET", inspect, NULL);
    while (json_is_true(json_object_get(f.json, "Running")));
    ASSERT_INT(7, json_integer_value(json_object_get(f.json, "ExitCode")));
    destroy(&f, "real-exec");
    teardown(&f);
}

static ssize_t on_read(void *user, void *buf, size_t size)
{
    struct fixture *f = user;
    size_t n = AGX_MIN(AGX_MIN(size, 700), f->tar.len - f->tar_at);

    memcpy(buf, f->tar.data + f->tar_at, n);
    f->tar_at += n;
    return (ssize_t)n;
}

/* A file of one block, as tar has it. */
static void make_tar(struct agx_buf *tar, const char *name, const char *text)
{
    char head[512] = { 0 }, body[512] = { 0 };
    unsigned sum = 0;

    (void)snprintf(head, 100, "%s", name);
    (void)snprintf(head + 100, 8, "%07o", 0644);
    (void)snprintf(head + 108, 8, "%07o", 0);
    (void)snprintf(head + 116, 8, "%07o", 0);
    (void)snprintf(head + 124, 12, "%011zo", strlen(text));
    (void)snprintf(head + 136, 12, "%011o", 0);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof(head); i++)
        sum += (unsigned char)head[i];
    (void)snprintf(head + 148, 8, "%06o", sum);
    (void)snprintf(body, sizeof(body), "%s", text);
    ASSERT_OK(agx_buf_append(tar, agx_str_bytes(head, sizeof(head))));
    ASSERT_OK(agx_buf_append(tar, agx_str_bytes(body, sizeof(body))));
    memset(body, 0, sizeof(body));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(agx_buf_append(tar, agx_str_bytes(body, sizeof(body))));
}

TEST(upload_puts_files_into_a_container_and_a_head_finds_them)
{
    struct fixture f;

    setup(&f);
    make(&f, "real-copy", "true", false);
    make_tar(&f.tar, "hello.txt", "hello");
    ask_with(&f, &(struct agx_docker_request){ .method = "PUT",
                                               .path = "/containers/real-copy/archive?path=/tmp",
                                               .what = "copy",
                                               .read = on_read });
    ASSERT_NULL(f.error);
    must(&f, "HEAD", "/containers/real-copy/archive?path=/tmp/hello.txt", NULL);
    ASSERT_TRUE(strlen(f.stat) > 10);
    ask(&f, "HEAD", "/containers/real-copy/archive?path=/tmp/other.txt", NULL);
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    f.tar_at = 0;
    ask_with(&f, &(struct agx_docker_request){ .method = "PUT",
                                               .path = "/containers/real-copy/archive?path=/no/dir",
                                               .what = "copy",
                                               .read = on_read });
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    destroy(&f, "real-copy");
    teardown(&f);
}

static void on_image(void *user, struct agx_docker_image *image, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_done++;
    agx_error_free(f->error);
    f->error = error;
    (void)snprintf(f->image, sizeof(f->image), "%s", image ? image->id : "");
}

TEST(ensure_finds_an_image_and_tells_why_one_cannot_be_pulled)
{
    static const struct agx_docker_ensure_ops ops = { .done = on_image };
    static const char *const spellings[] = { IMAGE, "docker.io/library/" IMAGE };
    struct agx_docker_puller_config config = AGX_DOCKER_PULLER_CONFIG_INIT;
    struct agx_docker_puller *puller = NULL;
    struct agx_docker_want *want = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_docker_puller_open(f.engine, &config, &puller, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(spellings); i++) {
        f.n_done = 0;
        ASSERT_OK(agx_docker_ensure(puller, spellings[i], &ops, &f, &want, NULL));
        UNTIL(&f, f.n_done == 1);
        ASSERT_NULL(f.error);
        ASSERT_TRUE(agx_str_starts(agx_str_from(f.image), AGX_STR("sha256:")));
    }
    f.n_done = 0;
    ASSERT_OK(agx_docker_ensure(puller, "127.0.0.1:1/team/none:1", &ops, &f, &want, NULL));
    UNTIL(&f, f.n_done == 1);
    ASSERT_MESSAGE(f.error, "pull image '127.0.0.1:1/team/none:1': ");
    ASSERT_MESSAGE(f.error, "connection refused");
    puller = agx_docker_puller_close(puller);
    teardown(&f);
}

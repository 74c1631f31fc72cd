#include "backend/docker/pull.h"
#include "tests/support/docker_engine.h"

#define IMAGE "{\"Id\":\"sha256:1\",\"Config\":{\"User\":\"me\",\"Cmd\":[\"run\"]}}"

enum { WANTS = 3 };

struct fixture;

struct wanted {
    struct fixture *f;
    struct agx_docker_want *want;
    unsigned n_done, n_progress;
    char id[32], error[400];
    enum agx_code code;
    struct agx_pull last;
};

struct fixture {
    struct test_docker d;
    struct agx_docker_puller *puller;
    struct test_httpd_conn *held; /* the pull */
    bool there;                   /* the engine has the image */
    bool never;                   /* and gets it by no pull */
    unsigned n_looks, n_pulls;
    char looked[300], pulled[300], auth[200];
    struct wanted wants[WANTS];
    enum { NOTHING, CANCEL_ALL, CLOSE } then; /* in the next callback */
};

static void act(struct fixture *f)
{
    int then = f->then;

    f->then = NOTHING;
    if (then == CLOSE)
        f->puller = agx_docker_puller_close(f->puller);
    for (size_t i = 0; i < WANTS; i++) {
        if (then == CANCEL_ALL)
            agx_docker_ensure_cancel(f->wants[i].want);
        if (then != NOTHING)
            f->wants[i].want = NULL;
    }
}

static void on_progress(void *user, const struct agx_pull *p)
{
    struct wanted *w = user;

    w->n_progress++;
    w->last = *p;
    act(w->f);
}

static void on_done(void *user, struct agx_docker_image *image, struct agx_error *error)
{
    struct wanted *w = user;

    w->want = NULL;
    w->n_done++;
    ASSERT_TRUE(!image == !!error);
    if (image) {
        (void)snprintf(w->id, sizeof(w->id), "%s", image->id);
        ASSERT_CSTR("me", image->user);
    }
    if (error) {
        w->code = error->code;
        agx_error_format(error, w->error, sizeof(w->error));
    }
    agx_error_free(error);
    act(w->f);
}

static const struct agx_docker_ensure_ops ops = { on_progress, on_done };

static void note(char *out, size_t size, struct agx_str s)
{
    (void)snprintf(out, size, "%.*s", AGX_STR_ARG(s));
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    if (test_httpd_is(q, "POST", "/v1.41/images/create")) {
        f->n_pulls++;
        f->held = q->conn;
        note(f->pulled, sizeof(f->pulled), q->query);
        note(f->auth, sizeof(f->auth), test_httpd_header(q, "X-Registry-Auth"));
        test_httpd_begin(q->conn, 200);
        return;
    }
    f->n_looks++;
    note(f->looked, sizeof(f->looked), q->target);
    if (f->there)
        test_httpd_answer(q->conn, 200, IMAGE);
    else
        test_httpd_answer(q->conn, 404, "{\"message\":\"No such image\"}");
}

static void setup(struct fixture *f)
{
    struct agx_docker_puller_config config = AGX_DOCKER_PULLER_CONFIG_INIT;

    *f = (struct fixture){ 0 };
    test_docker_open(&f->d, serve, f);
    ASSERT_OK(agx_docker_puller_open(f->d.engine, &config, &f->puller, NULL));
}

static void teardown(struct fixture *f)
{
    f->puller = agx_docker_puller_close(f->puller);
    test_docker_close(&f->d);
}

static void want(struct fixture *f, size_t i, const char *image)
{
    struct wanted *w = &f->wants[i];

    *w = (struct wanted){ .f = f };
    ASSERT_OK(agx_docker_ensure(f->puller, image, &ops, w, &w->want, NULL));
    ASSERT_UINT(0, w->n_done);
}

/* Wants an image that is not there, and waits for the engine to be asked for it. */
static void begin(struct fixture *f, const char *image)
{
    want(f, 0, image);
    TEST_UNTIL(f->d.loop, f->held);
}

static void finish(struct fixture *f)
{
    f->there = !f->never;
    test_httpd_finish(f->held);
    TEST_UNTIL(f->d.loop, f->wants[0].n_done == 1);
}

TEST(ensure_of_an_image_that_is_there_pulls_nothing)
{
    struct fixture f;

    setup(&f);
    f.there = true;
    want(&f, 0, "reg.io/team/x");
    TEST_UNTIL(f.d.loop, f.wants[0].n_done == 1);
    ASSERT_CSTR("sha256:1", f.wants[0].id);
    ASSERT_CSTR("/v1.41/images/reg.io%2Fteam%2Fx/json", f.looked);
    ASSERT_UINT(0, f.n_pulls + f.wants[0].n_progress);
    teardown(&f);
}

TEST(ensure_of_an_image_that_is_missing_pulls_it_and_looks_again)
{
    struct fixture f;

    setup(&f);
    begin(&f, "python:3.11");
    ASSERT_CSTR("fromImage=docker.io%2Flibrary%2Fpython&tag=3.11", f.pulled);
    ASSERT_CSTR("", f.auth);
    test_httpd_chunk(f.held, AGX_STR("{\"status\":\"Pulling from library/python\",\"id\":\"3.11\"}"
                                     "\r\n{\"status\":\"Status: Downloaded newer image\"}\r\n"));
    finish(&f);
    ASSERT_CSTR("sha256:1", f.wants[0].id);
    ASSERT_UINT(2, f.n_looks);
    ASSERT_UINT(1, f.wants[0].n_progress); /* that it begins */
    ASSERT_UINT(0, f.wants[0].last.layers_total);
    teardown(&f);
}

TEST(ensure_by_digest_pulls_the_digest)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x:1@sha256:0123456789abcdef0123456789abcdef");
    ASSERT_CSTR("fromImage=docker.io%2Flibrary%2Fx&tag=sha256%3A0123456789abcdef0123456789abcdef",
                f.pulled);
    teardown(&f);
}

TEST(ensure_by_id_never_pulls)
{
    struct fixture f;

    setup(&f);
    want(&f, 0, "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    TEST_UNTIL(f.d.loop, f.wants[0].n_done == 1);
    ASSERT_INT(AGX_NOT_FOUND, f.wants[0].code);
    ASSERT_UINT(0, f.n_pulls);
    teardown(&f);
}

TEST(ensure_of_what_is_no_name_is_refused_at_once)
{
    struct agx_docker_want *w = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_docker_ensure(f.puller, "Not A Name", &ops, &f, &w, NULL));
    teardown(&f);
}

TEST(ensure_tells_how_far_the_layers_are)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x");
    TEST_UNTIL(f.d.loop, f.wants[0].n_progress == 1);
    uv_sleep(AGX_DOCKER_PROGRESS_MS);
    test_httpd_chunk(
        f.held,
        AGX_STR("{\"status\":\"Already exists\",\"progressDetail\":{},\"id\":\"a\"}"
                "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":10,\"total\":100},"
                "\"id\":\"b\"}"
                "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":-5,\"total\":\"x\"},"
                "\"id\":\"c\"}"));
    TEST_UNTIL(f.d.loop, f.wants[0].n_progress == 2);
    uv_sleep(AGX_DOCKER_PROGRESS_MS);
    test_httpd_chunk(f.held, AGX_STR("{\"status\":\"Download complete\",\"id\":\"b\"}"));
    TEST_UNTIL(f.d.loop, f.wants[0].n_progress == 3);
    ASSERT_UINT(3, f.wants[0].last.layers_total);
    ASSERT_UINT(1, f.wants[0].last.layers_done);
    ASSERT_UINT(100, f.wants[0].last.bytes_done);
    ASSERT_UINT(100, f.wants[0].last.bytes_total);
    finish(&f);
    teardown(&f);
}

TEST(ensure_of_the_same_image_by_several_is_one_pull)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x");
    want(&f, 1, "docker.io/library/x:latest");
    want(&f, 2, "y");
    TEST_UNTIL(f.d.loop, f.n_pulls == 2);
    agx_docker_ensure_cancel(f.wants[2].want);
    want(&f, 2, "x:latest");
    agx_docker_ensure_cancel(f.wants[2].want);
    f.held = NULL;
    agx_docker_ensure_cancel(f.wants[0].want); /* the other still wants it */
    for (int i = 0; i < 5; i++)
        (void)uv_run(agx_loop_uv(f.d.loop), UV_RUN_NOWAIT);
    ASSERT_UINT(0, f.wants[1].n_done);
    ASSERT_UINT(2, f.n_pulls);
    teardown(&f);
    ASSERT_UINT(0, f.wants[0].n_done + f.wants[1].n_done + f.wants[2].n_done);
}

TEST(ensure_by_several_tells_each)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x");
    want(&f, 1, "x:latest");
    want(&f, 2, "x");
    finish(&f);
    TEST_UNTIL(f.d.loop, f.wants[1].n_done == 1 && f.wants[2].n_done == 1);
    ASSERT_CSTR("sha256:1", f.wants[1].id);
    ASSERT_CSTR("sha256:1", f.wants[2].id);
    ASSERT_UINT(1, f.n_pulls);
    teardown(&f);
}

TEST(ensure_that_the_last_cancels_ends_the_pull)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x");
    agx_docker_ensure_cancel(f.wants[0].want);
    TEST_UNTIL(f.d.loop, test_httpd_open_conns(f.d.httpd) <= 1);
    want(&f, 0, "x"); /* and it can be wanted again */
    TEST_UNTIL(f.d.loop, f.n_pulls == 2);
    finish(&f);
    ASSERT_CSTR("sha256:1", f.wants[0].id);
    teardown(&f);
}

TEST(ensure_whose_pull_tells_an_error_fails_with_it)
{
    static const struct {
        const char *message;
        enum agx_code code;
    } cases[] = {
        { "manifest for x:latest not found: manifest unknown", AGX_NOT_FOUND },
        { "unauthorized: authentication required", AGX_PERMISSION_DENIED },
        { "dial tcp: lookup registry-1.docker.io: no such host", AGX_UNAVAILABLE },
        { "write /x: no space left on device", AGX_RESOURCE_EXHAUSTED },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        char line[300];
        struct fixture f;

        setup(&f);
        begin(&f, "x");
        (void)snprintf(line, sizeof(line), "{\"errorDetail\":{\"message\":\"%s\"},\"error\":\"e\"}",
                       cases[i].message);
        test_httpd_chunk(f.held, agx_str_from(line));
        finish(&f);
        ASSERT_INT(cases[i].code, f.wants[0].code);
        ASSERT_NOT_NULL(strstr(f.wants[0].error, "pull image 'x': "));
        ASSERT_NOT_NULL(strstr(f.wants[0].error, cases[i].message));
        teardown(&f);
    }
}

TEST(ensure_whose_pull_succeeds_without_an_image_fails)
{
    struct fixture f;

    setup(&f);
    f.never = true;
    begin(&f, "x");
    finish(&f);
    ASSERT_INT(AGX_NOT_FOUND, f.wants[0].code);
    ASSERT_UINT(1, f.n_pulls);
    teardown(&f);
}

TEST(ensure_whose_engine_dies_in_the_pull_is_unavailable)
{
    struct fixture f;

    setup(&f);
    begin(&f, "x");
    test_httpd_away(f.d.httpd);
    TEST_UNTIL(f.d.loop, f.wants[0].n_done == 1);
    ASSERT_INT(AGX_UNAVAILABLE, f.wants[0].code);
    test_httpd_back(f.d.httpd);
    f.there = true;
    want(&f, 0, "x");
    TEST_UNTIL(f.d.loop, f.wants[0].n_done == 1);
    ASSERT_CSTR("sha256:1", f.wants[0].id);
    teardown(&f);
}

TEST(ensure_may_be_cancelled_and_closed_in_its_callbacks)
{
    for (int then = CANCEL_ALL; then <= CLOSE; then++) {
        for (int in_done = 0; in_done < 2; in_done++) {
            struct fixture f;

            setup(&f);
            begin(&f, "x");
            want(&f, 1, "x");
            want(&f, 2, "x");
            f.then = in_done ? NOTHING : then;
            uv_sleep(AGX_DOCKER_PROGRESS_MS);
            test_httpd_chunk(f.held, AGX_STR("{\"status\":\"Already exists\",\"id\":\"a\"}"
                                             "{\"status\":\"Already exists\",\"id\":\"b\"}"));
            TEST_UNTIL(f.d.loop, f.wants[2].n_progress > 0);
            if (in_done) {
                f.then = then;
                f.there = true;
                test_httpd_finish(f.held);
                TEST_UNTIL(f.d.loop, f.wants[2].n_done > 0);
            }
            ASSERT_UINT(in_done, f.wants[0].n_done + f.wants[1].n_done + f.wants[2].n_done);
            teardown(&f);
        }
    }
}

TEST(ensure_sends_credentials_and_says_when_they_were_missing)
{
    struct agx_docker_puller_config config = AGX_DOCKER_PULLER_CONFIG_INIT;
    char dir[] = "/tmp/agx-pull-XXXXXX", path[64];
    struct agx_docker_env env = { .config = dir };
    struct fixture f;
    FILE *file;

    ASSERT_NOT_NULL(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/config.json", dir);
    file = fopen(path, "we");
    ASSERT_NOT_NULL(file);
    (void)fputs("{\"auths\":{\"reg.io\":{\"identitytoken\":\"t\"}},"
                "\"credHelpers\":{\"bad.io\":\"none\"}}",
                file);
    ASSERT_INT(0, fclose(file));
    setup(&f);
    f.puller = agx_docker_puller_close(f.puller);
    config.env = &env;
    ASSERT_OK(agx_docker_puller_open(f.d.engine, &config, &f.puller, NULL));
    env.config = "/nowhere"; /* it was copied */

    begin(&f, "reg.io/x");
    ASSERT_CSTR("eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJyZWcuaW8ifQ==", f.auth);
    agx_docker_ensure_cancel(f.wants[0].want);
    f.held = NULL;
    begin(&f, "bad.io/x");
    ASSERT_CSTR("", f.auth);
    test_httpd_chunk(f.held, AGX_STR("{\"error\":\"denied\"}"));
    finish(&f);
    ASSERT_NOT_NULL(strstr(f.wants[0].error, "docker-credential-none"));
    teardown(&f);
    ASSERT_INT(0, unlink(path));
    ASSERT_INT(0, rmdir(dir));
}

#include "base/buf.h"
#include "image/registry.h"
#include "tests/support/httpd.h"
#include "tests/support/loop.h"

#include <stdlib.h>

enum { SEEN_MAX = 16 };

/* What the server does with a request: the n-th of them has the n-th answer, the last one again and
 * again. "cut": the connection is cut; "hold": no answer; "body:N": N of the bytes, then cut. */
struct fixture {
    struct agx_loop *loop;
    struct test_httpd *httpd, *other; /* other: another host, as far as we can tell */
    struct agx_registry *registry;
    struct agx_registry_config config;
    struct agx_registry_call *call;
    char host[64], other_host[64];
    const char *const *script;
    unsigned n_seen;
    char seen[SEEN_MAX][600]; /* "METHOD target|Authorization|Range" */
    struct test_httpd_conn *held;
    struct agx_buf got;
    unsigned n_done, n_restarts, n_pieces;
    int piece_says;
    bool close_in_done;
    char error[500];
    enum agx_code code;
};

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;
    const char *answer = f->script[0];
    char *at;

    if (f->script[1])
        f->script++;
    ASSERT_TRUE(f->n_seen < SEEN_MAX);
    at = f->seen[f->n_seen++];
    (void)snprintf(at, sizeof(f->seen[0]), "%s%.*s %.*s|%.*s|%.*s|%.*s",
                   q->httpd == f->other ? "other " : "", AGX_STR_ARG(q->method),
                   AGX_STR_ARG(q->target), AGX_STR_ARG(test_httpd_header(q, "Authorization")),
                   AGX_STR_ARG(test_httpd_header(q, "Range")), AGX_STR_ARG(q->body));
    f->held = q->conn;
    if (strcmp(answer, "cut") == 0)
        test_httpd_cut(q->conn);
    else if (strcmp(answer, "hold") != 0)
        test_httpd_send(q->conn, agx_str_from(answer));
    if (strstr(answer, "X-Then: end"))
        test_httpd_hang_up(q->conn);
}

static int on_piece(void *user, struct agx_str bytes, struct agx_error **err)
{
    struct fixture *f = user;

    ASSERT_OK(agx_buf_append(&f->got, bytes));
    f->n_pieces++;
    if (f->piece_says < 0)
        return agx_error_set(err, (enum agx_code) - f->piece_says, "the disk is full");
    return f->piece_says;
}

static void on_restart(void *user)
{
    struct fixture *f = user;

    f->n_restarts++;
    agx_buf_clear(&f->got);
}

static void on_done(void *user, struct agx_str body, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_done++;
    f->code = error ? error->code : AGX_OK;
    ASSERT_OK(agx_buf_append(&f->got, body));
    if (error)
        agx_error_format(error, f->error, sizeof(f->error));
    agx_error_free(error);
    if (f->close_in_done)
        f->registry = agx_registry_close(f->registry);
    agx_loop_stop(f->loop);
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .loop = test_loop_open(),
                           .got = AGX_BUF_INIT(1 << 20),
                           .config = AGX_REGISTRY_CONFIG_INIT };
    f->httpd = test_httpd_open(f->loop, true, serve, f);
    f->other = test_httpd_open(f->loop, true, serve, f);
    (void)snprintf(f->host, sizeof(f->host), "%s", test_httpd_where(f->httpd) + strlen("http://"));
    (void)snprintf(f->other_host, sizeof(f->other_host), "%s",
                   test_httpd_where(f->other) + strlen("http://"));
    f->config.host = f->host;
    f->config.repository = "team/tool";
    f->config.retry_ms = 1;
}

static void open_registry(struct fixture *f)
{
    ASSERT_OK(agx_registry_open(f->loop, &f->config, &f->registry, NULL));
}

static void teardown(struct fixture *f)
{
    f->registry = agx_registry_close(f->registry);
    f->httpd = test_httpd_close(f->httpd);
    f->other = test_httpd_close(f->other);
    agx_buf_done(&f->got);
    test_loop_run(f->loop);
    test_loop_close(f->loop);
}

static void start(struct fixture *f, const struct agx_registry_request *request,
                  const char *const *script)
{
    struct agx_registry_request q = *request;

    if (!f->registry)
        open_registry(f);
    f->script = script;
    f->n_seen = f->n_done = 0;
    f->error[0] = '\0';
    agx_buf_clear(&f->got);
    q.done = on_done;
    agx_registry_get(f->registry, &q, f, &f->call);
    ASSERT_UINT(0, f->n_done);
}

static void run(struct fixture *f, const struct agx_registry_request *request,
                const char *const *script)
{
    start(f, request, script);
    test_loop_run_until_stop(f->loop);
    ASSERT_UINT(1, f->n_done);
}

static const struct agx_registry_request manifest = { .path = "manifests/latest",
                                                      .accept = "application/x",
                                                      .max_bytes = 100 };
static const struct agx_registry_request blob = { .path = "blobs/sha256:1",
                                                  .max_bytes = 10,
                                                  .is_exact = true,
                                                  .piece = on_piece,
                                                  .restart = on_restart };

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define OK10 "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
#define HALF "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX-Then: end\r\n\r\n01234"
#define REST "HTTP/1.1 206 Some\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789"
#define NONE(status) "HTTP/1.1 " status " X\r\nContent-Length: 0\r\n\r\n"
#define WANTS(challenge)                                                                           \
    ("HTTP/1.1 401 X\r\nWWW-Authenticate: " challenge "\r\nContent-Length: 0\r\n\r\n")
#define TOKEN(name) "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"token\":\"" name "\"}"
#define SCRIPT(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST(registry_gives_what_is_there)
{
    struct fixture f;

    setup(&f);
    run(&f, &manifest, SCRIPT(OK5));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&f.got));
    ASSERT_UINT(1, f.n_seen);
    ASSERT_CSTR("GET /v2/team/tool/manifests/latest|||", f.seen[0]);
    run(&f, &blob, SCRIPT(OK10));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|||", f.seen[0]);
    teardown(&f);
}

TEST(registry_that_refuses_is_quoted)
{
    struct fixture f;

    setup(&f);
    run(&f, &manifest,
        SCRIPT(
            "HTTP/1.1 404 X\r\nContent-Length: 71\r\n\r\n"
            "{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"no \\u00e4\\u001b[2J\"}]}"));
    ASSERT_INT(AGX_NOT_FOUND, f.code);
    ASSERT_NOT_NULL(strstr(f.error, f.host));
    ASSERT_NOT_NULL(strstr(f.error, "answers 404: no \xc3\xa4"));
    ASSERT_NULL(strchr(f.error, 0x1b));
    run(&f, &manifest,
        SCRIPT("HTTP/1.1 403 X\r\nContent-Length: 31\r\n\r\n"
               "{\"errors\":[{\"code\":\"DENIED\"}]} "));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "DENIED"));
    run(&f, &manifest, SCRIPT(NONE("418")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    ASSERT_UINT(1, f.n_seen);
    teardown(&f);
}

TEST(registry_that_is_busy_is_asked_again_and_not_for_ever)
{
    struct fixture f;

    setup(&f);
    f.config.tries = 3;
    run(&f, &manifest, SCRIPT(NONE("503"), "cut", OK5));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_UINT(3, f.n_seen);
    run(&f, &manifest, SCRIPT(NONE("503")));
    ASSERT_INT(AGX_UNAVAILABLE, f.code);
    ASSERT_UINT(3, f.n_seen);
    run(&f, &manifest, SCRIPT(NONE("429")));
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, f.code);
    ASSERT_UINT(3, f.n_seen);
    run(&f, &manifest, SCRIPT("cut"));
    ASSERT_INT(AGX_UNAVAILABLE, f.code);
    test_httpd_away(f.httpd);
    run(&f, &manifest, SCRIPT("hold"));
    ASSERT_INT(AGX_UNAVAILABLE, f.code);
    ASSERT_UINT(0, f.n_seen);
    teardown(&f);
}

TEST(registry_that_is_silent_is_given_up)
{
    struct fixture f;

    setup(&f);
    f.config.tries = 2;
    f.config.quiet_ms = 50;
    run(&f, &manifest, SCRIPT("hold"));
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.code);
    teardown(&f);
}

TEST(blob_that_breaks_goes_on_where_it_broke)
{
    struct fixture f;

    setup(&f);
    run(&f, &blob, SCRIPT(HALF, NONE("500"), REST));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    ASSERT_UINT(0, f.n_restarts);
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1||bytes=5-|", f.seen[1]);
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1||bytes=5-|", f.seen[2]);
    teardown(&f);
}

TEST(blob_that_breaks_begins_anew_where_the_registry_cannot_go_on)
{
    struct fixture f;

    setup(&f);
    run(&f, &blob, SCRIPT(HALF, OK10));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    ASSERT_UINT(1, f.n_restarts);
    run(&f, &blob, SCRIPT(HALF, NONE("416"), OK10));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    ASSERT_UINT(2, f.n_restarts);
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|||", f.seen[2]);
    teardown(&f);
}

TEST(blob_that_is_another_part_or_too_long_is_refused)
{
    struct fixture f;

    setup(&f);
    run(&f, &blob,
        SCRIPT(HALF, "HTTP/1.1 206 Some\r\nContent-Range: bytes 4-9/10\r\n"
                     "Content-Length: 6\r\n\r\n456789"));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &blob, SCRIPT(HALF, "HTTP/1.1 206 Some\r\nContent-Length: 5\r\n\r\n56789"));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &blob, SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a"));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "more of 'blobs/sha256:1' than 10 bytes"));
    run(&f, &manifest,
        SCRIPT("HTTP/1.1 200 OK\r\nX-Then: end\r\nContent-Length: 1000\r\n\r\n"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxx"));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    teardown(&f);
}

TEST(blob_that_is_too_short_is_asked_for_again_and_given_up)
{
    struct fixture f;

    setup(&f);
    f.config.tries = 2;
    run(&f, &blob, SCRIPT(OK5, NONE("200")));
    ASSERT_INT(AGX_UNAVAILABLE, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "of the 10 bytes"));
    teardown(&f);
}

TEST(blob_whose_taker_fails_ends_with_his_error)
{
    struct fixture f;

    setup(&f);
    f.piece_says = -AGX_RESOURCE_EXHAUSTED;
    run(&f, &blob, SCRIPT(OK10));
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, f.code);
    ASSERT_CSTR("the disk is full", f.error);
    ASSERT_UINT(1, f.n_seen);
    teardown(&f);
}

TEST(blob_waits_for_its_taker)
{
    struct fixture f;

    setup(&f);
    f.piece_says = 1;
    start(&f, &blob, SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"));
    while (f.n_pieces == 0)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    test_httpd_send(f.held, AGX_STR("56789"));
    for (int turn = 0; turn < 100; turn++)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    ASSERT_UINT(1, f.n_pieces);
    agx_registry_resume(f.call);
    test_loop_run_until_stop(f.loop);
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    teardown(&f);
}

/* "Location: http://WHERE/path" as an answer. */
static const char *redirect(char (*buf)[300], const char *where)
{
    (void)snprintf(*buf, sizeof(*buf),
                   "HTTP/1.1 307 X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", where);
    return *buf;
}

TEST(registry_that_sends_us_elsewhere_is_followed_without_who_we_are)
{
    struct agx_credentials me = { "s", "me", "secret" };
    char away[300], url[200];
    struct fixture f;

    setup(&f);
    f.config.credentials = &me;
    (void)snprintf(url, sizeof(url), "http://%s/cdn/x?sig=1", f.other_host);
    run(&f, &blob,
        SCRIPT(WANTS("Basic realm=\"r\""), redirect(&away, url), HALF, redirect(&away, url), REST));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_STR(AGX_STR("0123456789"), agx_buf_peek(&f.got));
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|Basic bWU6c2VjcmV0||", f.seen[1]);
    ASSERT_CSTR("other GET /cdn/x?sig=1|||", f.seen[2]);
    /* The address may be good for one time only: the registry is asked again. */
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|Basic bWU6c2VjcmV0|bytes=5-|", f.seen[3]);
    ASSERT_CSTR("other GET /cdn/x?sig=1||bytes=5-|", f.seen[4]);
    /* To itself it may know. */
    run(&f, &manifest, SCRIPT(redirect(&away, "/v2/elsewhere"), OK5));
    ASSERT_CSTR("GET /v2/elsewhere|Basic bWU6c2VjcmV0||", f.seen[1]);
    teardown(&f);
}

TEST(registry_that_sends_us_round_or_nowhere_is_given_up)
{
    char away[300];
    struct fixture f;

    setup(&f);
    run(&f, &blob, SCRIPT(redirect(&away, "/again")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    ASSERT_UINT(1 + AGX_PULL_REDIRECTS, f.n_seen);
    run(&f, &blob, SCRIPT(redirect(&away, "file:///etc/passwd")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &blob, SCRIPT(NONE("302")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    /* Where anybody could listen. */
    run(&f, &blob, SCRIPT(redirect(&away, "http://192.0.2.1/x")));
    ASSERT_INT(AGX_FAILED_PRECONDITION, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "'192.0.2.1' without TLS"));
    ASSERT_UINT(1, f.n_seen);
    teardown(&f);
}

TEST(registry_gets_a_token_for_those_who_have_no_name)
{
    char wants[400], host[64];
    struct fixture f;

    setup(&f);
    (void)snprintf(host, sizeof(host), "%s", f.other_host);
    (void)snprintf(wants, sizeof(wants),
                   "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"http://%s/token?x=1\","
                   "service=\"a b\",scope=\"repository:team/tool:pull\"\r\n"
                   "Content-Length: 0\r\n\r\n",
                   host);
    run(&f, &manifest, SCRIPT(wants, TOKEN("tok1"), OK5));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_CSTR("other GET /token?x=1&service=a%20b&scope=repository%3Ateam%2Ftool%3Apull|||",
                f.seen[1]);
    ASSERT_CSTR("GET /v2/team/tool/manifests/latest|Bearer tok1||", f.seen[2]);
    /* It is kept, until it has run out. */
    run(&f, &blob, SCRIPT(OK10));
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|Bearer tok1||", f.seen[0]);
    run(&f, &blob, SCRIPT(wants, TOKEN("tok2"), OK10));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_CSTR("GET /v2/team/tool/blobs/sha256:1|Bearer tok2||", f.seen[2]);
    teardown(&f);
}

TEST(registry_gets_a_token_by_name_or_by_the_token_that_stands_for_one)
{
    struct agx_credentials me = { "s", "me", "secret" }, token = { "s", NULL, "id&tok" };
    struct fixture f;
    char wants[400];

    setup(&f);
    (void)snprintf(wants, sizeof(wants),
                   "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"http://%s/token\"\r\n"
                   "Content-Length: 0\r\n\r\n",
                   f.other_host);
    f.config.credentials = &me;
    run(&f, &manifest, SCRIPT(wants, NONE("503"), wants, TOKEN("tok1"), OK5));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_CSTR("other GET /token?scope=repository%3Ateam%2Ftool%3Apull&account=me|"
                "Basic bWU6c2VjcmV0||",
                f.seen[3]);
    f.registry = agx_registry_close(f.registry);
    f.config.credentials = &token;
    run(&f, &manifest,
        SCRIPT(wants, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{\"access_token\":\"tok1\"}",
               OK5));
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_CSTR("other POST /token|||scope=repository%3Ateam%2Ftool%3Apull&grant_type=refresh_token"
                "&client_id=agentix&refresh_token=id%26tok",
                f.seen[1]);
    ASSERT_CSTR("GET /v2/team/tool/manifests/latest|Bearer tok1||", f.seen[2]);
    teardown(&f);
}

TEST(registry_that_does_not_know_us_is_told_apart)
{
    struct agx_credentials me = { "s", "me", "secret" }, token = { "s", NULL, "t" };
    struct fixture f;
    char wants[400];

    setup(&f);
    (void)snprintf(wants, sizeof(wants),
                   "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"http://%s/token\"\r\n"
                   "Content-Length: 0\r\n\r\n",
                   f.other_host);
    run(&f, &manifest, SCRIPT(WANTS("Basic realm=\"x\"")));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "wants credentials, and there are none"));
    run(&f, &manifest, SCRIPT(wants, NONE("401")));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "the server of tokens"));
    run(&f, &manifest, SCRIPT(WANTS("Negotiate")));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    run(&f, &manifest, SCRIPT(NONE("401")));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    run(&f, &manifest, SCRIPT(WANTS("\"")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    f.registry = agx_registry_close(f.registry);
    f.config.credentials = &token;
    run(&f, &manifest, SCRIPT(WANTS("Basic realm=\"x\"")));
    ASSERT_NOT_NULL(strstr(f.error, "a token only"));
    f.registry = agx_registry_close(f.registry);
    f.config.credentials = &me;
    run(&f, &manifest, SCRIPT(WANTS("Basic realm=\"x\"")));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    ASSERT_NOT_NULL(strstr(f.error, "does not accept the credentials of 'me'"));
    ASSERT_UINT(2, f.n_seen);
    ASSERT_NULL(strstr(f.error, "secret"));
    teardown(&f);
}

TEST(registry_whose_tokens_never_work_is_given_up)
{
    char wants[400];
    struct fixture f;

    setup(&f);
    (void)snprintf(wants, sizeof(wants),
                   "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"http://%s/token\"\r\n"
                   "Content-Length: 0\r\n\r\n",
                   f.other_host);
    run(&f, &manifest,
        SCRIPT(wants, TOKEN("tok1"), wants, TOKEN("tok2"), wants, TOKEN("tok3"), wants));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.code);
    ASSERT_UINT(7, f.n_seen);
    teardown(&f);
}

TEST(registry_whose_token_is_hostile_is_given_up)
{
    struct agx_credentials me = { "s", "me", "secret" };
    struct fixture f;
    char wants[400];

    setup(&f);
    f.config.credentials = &me;
    (void)snprintf(wants, sizeof(wants),
                   "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"http://%s/token\"\r\n"
                   "Content-Length: 0\r\n\r\n",
                   f.other_host);
    run(&f, &manifest,
        SCRIPT(wants,
               "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{\"token\":\"a\\r\\nX: y\"}   "));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &manifest, SCRIPT(wants, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &manifest, SCRIPT(WANTS("Bearer realm=\"ftp://x/\"")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    run(&f, &manifest, SCRIPT(WANTS("Bearer scope=\"x\"")));
    ASSERT_INT(AGX_DATA_LOSS, f.code);
    /* Nobody who is not on this machine gets a password without TLS. */
    run(&f, &manifest, SCRIPT(WANTS("Bearer realm=\"http://192.0.2.1/\"")));
    ASSERT_INT(AGX_FAILED_PRECONDITION, f.code);
    ASSERT_UINT(1, f.n_seen);
    teardown(&f);
}

TEST(registry_calls_that_are_cancelled_or_closed_are_not_told)
{
    struct fixture f;

    setup(&f);
    start(&f, &blob, SCRIPT("hold"));
    agx_registry_cancel(f.call);
    start(&f, &blob, SCRIPT("hold"));
    while (f.n_seen == 0)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    agx_registry_cancel(f.call);
    agx_registry_cancel(NULL);
    f.registry = agx_registry_close(f.registry);
    f.config.retry_ms = 100000;
    start(&f, &manifest, SCRIPT(NONE("503"))); /* it waits to try again when it is closed */
    start(&f, &manifest, SCRIPT(NONE("503")));
    while (f.n_seen == 0)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    teardown(&f);
    ASSERT_UINT(0, f.n_done);
}

TEST(registry_may_be_closed_when_a_call_ends)
{
    struct fixture f;

    setup(&f);
    f.close_in_done = true;
    run(&f, &manifest, SCRIPT(OK5));
    run(&f, &blob, SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a"));
    run(&f, &manifest, SCRIPT(NONE("404")));
    teardown(&f);
}

TEST(registry_is_spoken_to_with_tls_unless_it_is_on_this_machine_or_named)
{
    static const char *const insecure[] = { "other:1", "localhost.example:5000", NULL };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct fixture f;

    setup(&f);
    f.config.tries = 1;
    f.config.connect_ms = 200; /* no matter whether somebody answers for it */
    f.config.host = "a host";
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_registry_open(f.loop, &f.config, &f.registry, &err));
    /* Names below .invalid are nobody's: what is asked is told in the error. */
    f.config.host = "registry.invalid:5000";
    run(&f, &manifest, SCRIPT(OK5));
    ASSERT_NOT_NULL(strstr(f.error, "'https://registry.invalid:5000/v2/team/tool/"));
    f.registry = agx_registry_close(f.registry);
    f.config.insecure = (const char *const[]){ insecure[0], "registry.invalid:5000", NULL };
    run(&f, &manifest, SCRIPT(OK5));
    ASSERT_NOT_NULL(strstr(f.error, "'http://registry.invalid:5000/v2/team/tool/"));
    teardown(&f);
}

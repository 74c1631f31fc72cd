/* Networks that are prepared in advance, against a scripted engine. */
#include "backend/docker/docker.h"
#include "backend/docker/spare_networks.h"
#include "tests/support/backend.h"
#include "tests/support/docker_engine.h"

#include <stdlib.h>

/* What the engine has, and what it was asked for. */
static struct world {
    struct agx_loop *loop;
    struct test_httpd *httpd;
    struct agx_backend *b;
    struct agx_sandbox sb;
    char dir[64];
    const char *networks, *containers; /* its lists at the beginning */
    unsigned make_status;              /* of networks */
    bool hangs;                        /* networks are never made */
    unsigned n_made, n_removed, n_listed, n_containers;
    char names[16][64]; /* of networks that were made */
    char removed[256];  /* what was removed, with blanks between */
    char mode[64];      /* the network of the last container */
} w;

/* The value of a member that is a string, wherever it stands. */
static void copy_member(struct agx_str body, const char *member, char out[64])
{
    const char *at = memmem(body.ptr, body.len, member, strlen(member)), *end;
    size_t n;

    ASSERT_NOT_NULL(at);
    at += strlen(member);
    end = memchr(at, '"', (size_t)(body.ptr + body.len - at));
    ASSERT_NOT_NULL(end);
    n = (size_t)(end - at);
    ASSERT_TRUE(n < 64);
    memcpy(out, at, n);
    out[n] = '\0';
}

static void serve_network(const struct test_httpd_request *q)
{
    ASSERT_TRUE(w.n_made < AGX_ARRAY_LEN(w.names));
    copy_member(q->body, "\"Name\":\"", w.names[w.n_made++]);
    if (!w.hangs)
        test_httpd_answer(q->conn, w.make_status,
                          w.make_status == 201 ? "{\"Id\":\"made\"}" : "{\"message\":\"no\"}");
}

static void serve_removal(const struct test_httpd_request *q)
{
    size_t len = strlen(w.removed);
    const char *slash = memrchr(q->path.ptr, '/', q->path.len);

    w.n_removed++;
    (void)snprintf(w.removed + len, sizeof(w.removed) - len, "%.*s ",
                   (int)(q->path.ptr + q->path.len - slash - 1), slash + 1);
    test_httpd_answer(q->conn, 204, "");
}

static void serve(void *user, const struct test_httpd_request *q)
{
    (void)user;
    if (test_httpd_is(q, "GET", "/_ping"))
        test_httpd_send(q->conn, AGX_STR("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\n"
                                         "Content-Length: 2\r\n\r\nOK"));
    else if (test_httpd_is(q, "GET", "/v1.41/events"))
        test_httpd_begin(q->conn, 200);
    else if (test_httpd_is(q, "POST", "/v1.41/networks/create"))
        serve_network(q);
    else if (agx_str_eq(q->method, AGX_STR("DELETE")))
        serve_removal(q);
    else if (test_httpd_is(q, "GET", "/v1.41/networks"))
        test_httpd_answer(q->conn, 200, w.n_listed++ == 0 ? w.networks : "[]");
    else if (test_httpd_is(q, "GET", "/v1.41/containers/json"))
        test_httpd_answer(q->conn, 200, q->query.len == 5 ? w.containers : "[]");
    else if (test_httpd_is(q, "POST", "/v1.41/containers/create")) {
        w.n_containers++;
        copy_member(q->body, "\"NetworkMode\":\"", w.mode);
        test_httpd_answer(q->conn, 500, "{\"message\":\"no space left\"}");
    } else
        test_httpd_answer(q->conn, 200, "{\"Id\":\"sha256:1\",\"Config\":{\"Cmd\":[\"sh\"]}}");
}

static void open_world(unsigned networks_ready, bool compat)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;
    struct agx_spec spec;
    char target[128];

    w.loop = test_loop_open();
    w.httpd = test_httpd_open(w.loop, false, serve, NULL);
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/agx-docker-unit-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(w.dir));
    (void)snprintf(target, sizeof(target), "unix://%s", test_httpd_where(w.httpd));
    c.target = target;
    c.state_dir = w.dir;
    c.init_path = "/usr/lib/agentix/agentix-init";
    c.control = AGX_DOCKER_CONTROL_PIDFD;
    c.isolation = AGX_DOCKER_ISOLATION_OFF;
    c.networks_ready = networks_ready;
    c.common.compat = compat;
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "busybox:1", NULL));
    ASSERT_OK(agx_sandbox_init(&w.sb, "web-1", &spec, NULL));
}

static void begin(void)
{
    w = (struct world){ .networks = "[]", .containers = "[]", .make_status = 201 };
}

static void close_world(void)
{
    char command[128];

    test_backend_close(w.b);
    w.httpd = test_httpd_close(w.httpd);
    agx_sandbox_done(&w.sb);
    test_loop_close(w.loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", w.dir);
    ASSERT_INT(0, system(command));
}

TEST(as_many_networks_as_wanted_are_made_and_no_more)
{
    begin();
    open_world(3, false);
    TEST_UNTIL(w.loop, w.n_made == 3);
    test_pause(w.loop, 50);
    ASSERT_UINT(3, w.n_made);
    for (size_t i = 0; i < 3; i++)
        ASSERT_TRUE(agx_docker_spare_networks_is(w.names[i]));
    ASSERT_TRUE(strcmp(w.names[0], w.names[1]) != 0);
    ASSERT_FALSE(agx_docker_spare_networks_is("agentix-ready-1"));
    ASSERT_FALSE(agx_docker_spare_networks_is(NULL));
    close_world();
}

TEST(networks_of_an_earlier_daemon_that_no_container_is_made_for_are_removed)
{
    begin();
    w.networks = "[{\"Id\":\"n1\",\"Name\":\"agentix.ready-1\"},"
                 "{\"Id\":\"n2\",\"Name\":\"agentix.ready-2\"},"
                 "{\"Id\":\"n3\",\"Name\":\"agentix.ready-3\"},"
                 "{\"Id\":\"n4\",\"Name\":\"agentix.ready-4\"},"
                 "{\"Id\":\"n5\",\"Name\":\"agentix-web-1\"}]";
    w.containers = "[{\"Id\":\"c1\",\"HostConfig\":{\"NetworkMode\":\"agentix.ready-2\"}},"
                   "{\"Id\":\"c2\",\"HostConfig\":{\"NetworkMode\":\"n3\"}},"
                   "{\"Id\":\"c3\",\"HostConfig\":{\"NetworkMode\":\"x\"},\"NetworkSettings\":"
                   "{\"Networks\":{\"agentix.ready-4\":{}}}}]";
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    ASSERT_CSTR("n1 ", w.removed);
    close_world();
}

TEST(nothing_is_removed_when_the_engine_does_not_say_what_is_used)
{
    begin();
    w.networks = "[{\"Id\":\"n1\",\"Name\":\"agentix.ready-1\"}]";
    w.containers = "nonsense";
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    ASSERT_UINT(0, w.n_removed);
    close_world();
}

TEST(a_create_takes_one_and_another_is_made_later)
{
    struct test_reply r;
    uint64_t start;

    begin();
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    test_pause(w.loop, 20);
    start = uv_hrtime();
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_INTERNAL, r.code); /* at its container */
    ASSERT_UINT(1, w.n_containers);
    ASSERT_CSTR(w.names[0], w.mode);
    if (uv_hrtime() - start < AGX_DOCKER_NETWORK_LATER_MS * UINT64_C(1000000))
        ASSERT_UINT(1, w.n_made);
    /* Nobody else gets it: the engine may have made a container for it after all. */
    ASSERT_NOT_NULL(strstr(w.removed, w.names[0]));
    TEST_UNTIL(w.loop, w.n_made == 2);
    ASSERT_TRUE(strcmp(w.names[0], w.names[1]) != 0);
    close_world();
}

TEST(a_create_that_finds_none_ready_makes_its_own)
{
    begin();
    w.hangs = true;
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    w.hangs = false;
    ASSERT_INT(AGX_INTERNAL, test_backend_do(w.b, &w.sb, AGX_DO_CREATE).code);
    ASSERT_UINT(2, w.n_made);
    ASSERT_CSTR("agentix-web-1", w.names[1]);
    ASSERT_CSTR("agentix-web-1", w.mode);
    close_world();
}

TEST(a_sandbox_without_a_network_takes_none)
{
    begin();
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    test_pause(w.loop, 20);
    w.sb.spec.network = AGX_NETWORK_NONE;
    ASSERT_INT(AGX_INTERNAL, test_backend_do(w.b, &w.sb, AGX_DO_CREATE).code);
    ASSERT_CSTR("none", w.mode);
    close_world();
}

TEST(an_engine_that_makes_none_is_not_asked_without_end)
{
    begin();
    w.make_status = 500;
    open_world(2, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    test_pause(w.loop, 100);
    ASSERT_UINT(1, w.n_made);
    close_world();
}

TEST(none_is_kept_by_default_nor_where_names_are_those_of_agents_sandbox)
{
    for (unsigned compat = 0; compat < 2; compat++) {
        begin();
        open_world(compat ? 2 : 0, compat);
        ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(w.b, "web-1"));
        test_pause(w.loop, 20);
        ASSERT_UINT(0, w.n_made);
        close_world();
    }
}

TEST(a_backend_that_closes_while_one_is_made_ends)
{
    begin();
    w.hangs = true;
    open_world(1, false);
    TEST_UNTIL(w.loop, w.n_made == 1);
    close_world();
}

/* The Docker backend against a scripted engine: its requests, their order, and answers that arrive
 * too late. tests/conformance has tests with running sandboxes. */
#include "backend/docker/docker.h"

#include "base/uuid.h"
#include "tests/support/backend.h"
#include "tests/support/docker_engine.h"

#include <fcntl.h>
#include <stdlib.h>

/* One answer: to requests of this method whose target contains all parts of the text between '*'.
 */
struct rule {
    const char *method, *text;
    unsigned status; /* 0: none comes */
    const char *body;
    unsigned times; /* 0: always */
};

static struct world {
    struct agx_loop *loop;
    struct test_httpd *httpd;
    struct agx_backend *b;
    char dir[64], instance[AGX_UUID_TEXT_SIZE];
    struct rule rules[16];
    size_t n_rules;
    char log[8192]; /* "METHOD path" of each request but pings and events, a line each */
    struct agx_sandbox sb;
} w;

static void note(const struct test_httpd_request *q)
{
    size_t len = strlen(w.log);

    (void)snprintf(w.log + len, sizeof(w.log) - len, "%.*s %.*s\n", AGX_STR_ARG(q->method),
                   AGX_STR_ARG(q->path));
}

static bool fits(const struct rule *r, const struct test_httpd_request *q)
{
    struct agx_str rest = agx_str_from(r->text), part;

    while (agx_str_split(&rest, '*', &part)) {
        if (!memmem(q->target.ptr, q->target.len, part.ptr, part.len))
            return false;
    }
    return agx_str_eq(agx_str_from(r->method), q->method);
}

static void serve(void *user, const struct test_httpd_request *q)
{
    (void)user;
    if (test_httpd_is(q, "GET", "/_ping")) {
        test_httpd_send(q->conn, AGX_STR("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\n"
                                         "Content-Length: 2\r\n\r\nOK"));
        return;
    }
    if (memmem(q->path.ptr, q->path.len, "/events", 7)) {
        test_httpd_begin(q->conn, 200);
        return;
    }
    note(q);
    for (size_t i = w.n_rules; i-- > 0;) { /* the newest that fits */
        struct rule *r = &w.rules[i];

        if (!fits(r, q))
            continue;
        if (r->times > 0 && --r->times == 0)
            r->text = "\n";
        if (r->status > 0)
            test_httpd_answer(q->conn, r->status, r->body);
        return;
    }
    test_httpd_answer(q->conn, 200, "[]");
}

static void when(const char *method, const char *text, unsigned status, const char *body,
                 unsigned times)
{
    ASSERT_TRUE(w.n_rules < AGX_ARRAY_LEN(w.rules));
    w.rules[w.n_rules++] = (struct rule){ method, text, status, body, times };
}

static void make_sandbox(const char *id)
{
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "busybox:1", NULL));
    ASSERT_OK(agx_sandbox_init(&w.sb, id, &spec, NULL));
}

static void open_world(void)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;
    char target[128], path[128];
    ssize_t n;
    int fd;

    w = (struct world){ .loop = test_loop_open() };
    w.httpd = test_httpd_open(w.loop, false, serve, NULL);
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/agx-docker-unit-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(w.dir));
    (void)snprintf(target, sizeof(target), "unix://%s", test_httpd_where(w.httpd));
    c.target = target;
    c.state_dir = w.dir;
    c.init_path = "/usr/lib/agentix/agentix-init";
    c.control = AGX_DOCKER_CONTROL_PIDFD;
    c.isolation = AGX_DOCKER_ISOLATION_OFF;
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
    (void)snprintf(path, sizeof(path), "%s/instance", w.dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT_TRUE(fd >= 0);
    n = read(fd, w.instance, sizeof(w.instance) - 1);
    ASSERT_INT(AGX_UUID_TEXT_SIZE - 1, n);
    close(fd);
    make_sandbox("web-1");
}

static void close_world(void)
{
    char command[128];

    if (w.b)
        test_backend_close(w.b);
    w.httpd = test_httpd_close(w.httpd);
    agx_sandbox_done(&w.sb);
    test_loop_close(w.loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", w.dir);
    ASSERT_INT(0, system(command));
}

/* One entry of the engine's list. Static: the last few are good. */
static const char *entry(const char *id, const char *sandbox, const char *component,
                         const char *state)
{
    static char texts[8][1024];
    static unsigned at;
    char *text = texts[at++ % AGX_ARRAY_LEN(texts)];

    (void)snprintf(text, sizeof(texts[0]),
                   "{\"Id\":\"%s\",\"State\":\"%s\",\"Labels\":{\"io.agentix.instance\":\"%s\","
                   "\"io.agentix.sandbox-id\":\"%s\",\"io.agentix.component\":\"%s\","
                   "\"io.agentix.companion-index\":\"1\",\"io.agentix.exec-user\":\"0\","
                   "\"io.agentix.control\":\"pidfd\"}}",
                   id, state, w.instance, sandbox, component);
    return text;
}

static const char *list(const char *a, const char *b)
{
    static char texts[4][4096];
    static unsigned at;
    char *text = texts[at++ % AGX_ARRAY_LEN(texts)];

    (void)snprintf(text, sizeof(texts[0]), "[%s%s%s]", a, b ? "," : "", b ? b : "");
    return text;
}

static unsigned count(const char *line)
{
    unsigned n = 0;

    for (const char *at = w.log; (at = strstr(at, line)); at++)
        n++;
    return n;
}

/* ---- looks ---- */

struct sights {
    unsigned n, n_done;
    char text[512];
};

static void on_seen(void *user, const struct agx_backend_seen *seen)
{
    struct sights *s = user;
    size_t len = strlen(s->text);

    s->n++;
    (void)snprintf(s->text + len, sizeof(s->text) - len, "%s:%d%s", seen->sandbox_id, seen->primary,
                   seen->remains ? "+" : "");
    for (size_t i = 0; i < seen->companions_len; i++) {
        len = strlen(s->text);
        (void)snprintf(s->text + len, sizeof(s->text) - len, ",%d", seen->companions[i]);
    }
    len = strlen(s->text);
    (void)snprintf(s->text + len, sizeof(s->text) - len, " ");
}

static void on_looked(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct sights *)user)->n_done++;
}

TEST(a_look_at_all_joins_containers_and_networks_of_each_sandbox)
{
    char containers[4096], networks[2048];
    struct sights s = { 0 };
    struct agx_backend_op *op;

    open_world();
    (void)snprintf(
        containers, sizeof(containers), "[%s,%s,%s,%s]", entry("c1", "web-1", "primary", "running"),
        entry("c2", "web-1", "companion", "paused"), entry("c3", "old-1", "primary", "exited"),
        "{\"Id\":\"x\",\"State\":\"running\",\"Labels\":{\"io.agentix.instance\":"
        "\"another\",\"io.agentix.sandbox-id\":\"theirs\"}}");
    (void)snprintf(networks, sizeof(networks), "[%s,%s]", entry("n1", "web-1", "network", ""),
                   entry("n2", "lone", "network", ""));
    when("GET", "/containers/json", 200, containers, 0);
    when("GET", "/networks?", 200, networks, 0);
    when("GET", "/containers/c3/json", 200,
         "{\"State\":{\"Status\":\"exited\",\"OOMKilled\":true}}", 0);
    ASSERT_OK(agx_backend_look(w.b, NULL, on_seen, on_looked, &s, &op, NULL));
    test_wait(w.loop, &s.n_done, 1);
    /* 1 missing, 3 out of memory, 4 paused, 5 running */
    ASSERT_CSTR("lone:1+ old-1:3 web-1:5,1,4 ", s.text);
    close_world();
}

TEST(a_look_at_one_that_is_not_there_sees_nothing_once)
{
    open_world();
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(w.b, "web-1"));
    close_world();
}

TEST(an_engine_that_is_away_fails_looks_and_operations_and_says_so)
{
    struct test_reply r;

    open_world();
    test_httpd_away(w.httpd);
    r = test_backend_look(w.b, NULL);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "Docker Engine"));
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    test_httpd_back(w.httpd);
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(w.b, "web-1"));
    close_world();
}

TEST(an_answer_that_is_no_list_is_data_loss)
{
    open_world();
    when("GET", "/containers/json", 200, "{\"what\":1}", 0);
    ASSERT_INT(AGX_DATA_LOSS, test_backend_look(w.b, NULL).code);
    ASSERT_INT(AGX_DATA_LOSS, test_backend_do(w.b, &w.sb, AGX_DO_DELETE).code);
    close_world();
}

/* ---- stop and delete ---- */

TEST(stop_of_nothing_is_not_found_and_halt_is_done)
{
    open_world();
    ASSERT_INT(AGX_NOT_FOUND, test_backend_do(w.b, &w.sb, AGX_DO_STOP).code);
    test_backend_ok(w.b, &w.sb, AGX_DO_HALT);
    close_world();
}

TEST(stop_stops_all_containers_side_by_side_and_tells_of_a_failure)
{
    struct test_reply r;

    open_world();
    when("GET", "/containers/json", 200,
         list(entry("c1", "web-1", "primary", "running"),
              entry("c2", "web-1", "companion", "running")),
         0);
    when("POST", "/containers/c1/stop?t=1", 204, "", 0);
    when("POST", "/containers/c2/stop?t=1", 500, "{\"message\":\"it sticks\"}", 1);
    r = test_backend_do(w.b, &w.sb, AGX_DO_STOP);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "it sticks"));
    test_backend_ok(w.b, &w.sb, AGX_DO_STOP);
    ASSERT_UINT(2, count("/containers/c1/stop"));
    close_world();
}

TEST(delete_goes_on_until_the_engine_lets_go)
{
    open_world();
    when("GET", "/containers/json*web-1", 200,
         list(entry("c1", "web-1", "primary", "exited"), NULL), 2);
    when("GET", "/networks?*web-1", 200, list(entry("n1", "web-1", "network", ""), NULL), 3);
    when("DELETE", "/containers/c1", 409, "{\"message\":\"removal in progress\"}", 1);
    when("DELETE", "/networks/n1", 403, "{\"message\":\"has active endpoints\"}", 1);
    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    ASSERT_UINT(2, count("DELETE /v1.41/containers/c1"));
    ASSERT_UINT(2, count("DELETE /v1.41/networks/n1"));
    close_world();
}

TEST(delete_of_what_is_gone_meanwhile_is_done)
{
    open_world();
    when("GET", "/containers/json*web-1", 200,
         list(entry("c1", "web-1", "primary", "running"), NULL), 1);
    when("POST", "/containers/c1/stop", 404, "{\"message\":\"no such container\"}", 0);
    when("DELETE", "/containers/c1", 404, "{\"message\":\"no such container\"}", 0);
    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    close_world();
}

/* ---- create ---- */

static void add_image(void)
{
    when("GET", "/images/", 200,
         "{\"Id\":\"sha256:1\",\"Config\":{\"User\":\"\",\"Cmd\":[\"sh\"]}}", 0);
}

TEST(a_create_that_fails_removes_what_it_made)
{
    struct test_reply r;

    open_world();
    add_image();
    when("POST", "/networks/create", 201, "{\"Id\":\"n1\"}", 0);
    when("POST", "/containers/create", 500, "{\"message\":\"no space left\"}", 0);
    when("GET", "/networks?", 200, list(entry("n1", "web-1", "network", ""), NULL), 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "make sandbox 'web-1': no space left"));
    ASSERT_UINT(1, r.n_begun);
    ASSERT_UINT(1, count("DELETE /v1.41/networks/n1"));
    ASSERT_UINT(0, count("/start"));
    close_world();
}

static void add_port(uint32_t host, uint32_t container, enum agx_protocol protocol)
{
    struct agx_port *p;

    ASSERT_OK(agx_spec_add_port(&w.sb.spec, &p, NULL));
    *p = (struct agx_port){ container, host, (int32_t)protocol };
}

TEST(a_create_with_ports_that_fails_names_them)
{
    struct test_reply r;

    open_world();
    add_image();
    add_port(8080, 80, AGX_PROTOCOL_TCP);
    add_port(5353, 53, AGX_PROTOCOL_UDP);
    when("POST", "/networks/create", 201, "{\"Id\":\"n1\"}", 0);
    when("POST", "/containers/create", 201, "{\"Id\":\"c1\"}", 0);
    when("POST", "/containers/c1/start", 500, "{\"message\":\"port is already allocated\"}", 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_CSTR("failed to create container with port bindings [8080->80/tcp, 5353->53/udp]: "
                "start sandbox 'web-1': port is already allocated",
                r.text);
    when("POST", "/containers/create", 500,
         "{\"message\":\"storage-opt is supported only for overlay over xfs\"}", 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_NULL(strstr(r.text, "port bindings"));
    ASSERT_NOT_NULL(strstr(r.text, "Prerequisites"));
    close_world();
}

TEST(a_main_process_that_ends_at_once_fails_the_create_with_its_exit_code)
{
    struct test_reply r;

    open_world();
    add_image();
    when("POST", "/networks/create", 201, "{\"Id\":\"n1\"}", 0);
    when("POST", "/containers/create", 201, "{\"Id\":\"c1\"}", 0);
    when("POST", "/containers/c1/start", 204, "", 0);
    when("GET", "/containers/c1/json", 200, "{\"State\":{\"Status\":\"exited\",\"ExitCode\":127}}",
         0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "exit code 127"));
    close_world();
}

/* A daemon that died had asked for its removal, for it was half-made; and for its start before. */
TEST(a_create_whose_container_goes_when_it_was_taken_up_makes_it_again)
{
    struct test_reply r;

    open_world();
    add_image();
    when("GET", "/containers/json*web-1", 200,
         list(entry("c1", "web-1", "primary", "running"), NULL), 1);
    when("GET", "/networks/agentix-web-1", 200, "{\"Id\":\"n1\"}", 0);
    when("GET", "/containers/c1/json", 404, "{\"message\":\"No such container: c1\"}", 0);
    when("POST", "/networks/create", 201, "{\"Id\":\"n2\"}", 0);
    when("POST", "/containers/create", 201, "{\"Id\":\"c2\"}", 0);
    when("POST", "/containers/c2/start", 409,
         "{\"message\":\"container is marked for removal and cannot be started\"}", 1);
    when("GET", "/containers/c2/json", 200, "{\"State\":{\"Status\":\"exited\",\"ExitCode\":6}}",
         0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "exit code 6"));
    ASSERT_UINT(2, count("POST /v1.41/containers/create"));
    close_world();
}

TEST(a_create_that_makes_its_container_again_copies_again)
{
    struct agx_copy *c;
    char source[128];

    open_world();
    add_image();
    (void)snprintf(source, sizeof(source), "%s/instance", w.dir);
    ASSERT_OK(agx_spec_add_copy(&w.sb.spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->source, source, NULL));
    ASSERT_OK(agx_text_set(&c->target, "/instance", NULL));
    when("HEAD", "/containers/c2/archive", 404, "", 0);
    when("PUT", "/containers/c2/archive", 200, "", 0);
    when("POST", "/networks/create", 201, "{\"Id\":\"n2\"}", 0);
    when("POST", "/containers/create", 201, "{\"Id\":\"c2\"}", 0);
    when("POST", "/containers/c2/start", 409,
         "{\"message\":\"container is marked for removal and cannot be started\"}", 1);
    when("GET", "/containers/c2/json", 200, "{\"State\":{\"Status\":\"exited\",\"ExitCode\":6}}",
         0);
    ASSERT_INT(AGX_FAILED_PRECONDITION, test_backend_do(w.b, &w.sb, AGX_DO_CREATE).code);
    ASSERT_UINT(2, count("POST /v1.41/containers/create"));
    ASSERT_UINT(2, count("PUT /v1.41/containers/c2/archive"));
    close_world();
}

TEST(a_create_that_finds_a_container_on_its_way_out_makes_another)
{
    open_world();
    add_image();
    when("GET", "/containers/json*web-1", 200,
         list(entry("c1", "web-1", "primary", "removing"), NULL), 2);
    when("DELETE", "/containers/c1", 409, "{\"message\":\"removal is already in progress\"}", 1);
    when("POST", "/networks/create", 201, "{\"Id\":\"n2\"}", 0);
    when("POST", "/containers/create", 500, "{\"message\":\"enough\"}", 0);
    ASSERT_INT(AGX_INTERNAL, test_backend_do(w.b, &w.sb, AGX_DO_CREATE).code);
    ASSERT_UINT(0, count("POST /v1.41/containers/c1/start"));
    ASSERT_UINT(1, count("POST /v1.41/containers/create"));
    close_world();
}

TEST(ranges_that_the_engine_knows_to_be_taken_are_passed_over)
{
    struct test_reply r;

    open_world();
    add_image();
    when("POST", "/networks/create", 201, "{\"Id\":\"n1\"}", 0);
    when("POST", "/networks/create", 403, "{\"message\":\"Pool overlaps with other one\"}", 3);
    when("POST", "/containers/create", 201, "{\"Id\":\"c1\"}", 0);
    when("POST", "/containers/c1/start", 500, "{\"message\":\"enough\"}", 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_UINT(4, count("POST /v1.41/networks/create"));
    close_world();
}

TEST(a_name_that_something_foreign_has_is_an_error_and_stays_alone)
{
    struct test_reply r;

    open_world();
    add_image();
    when("POST", "/networks/create", 201, "{\"Id\":\"n1\"}", 0);
    when("POST", "/containers/create", 409, "{\"message\":\"in use\"}", 0);
    when("GET", "/containers/agentix-web-1/json", 200,
         "{\"Id\":\"x\",\"Config\":{\"Labels\":{\"a\":\"b\"}}}", 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_ALREADY_EXISTS, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "agentix-web-1"));
    ASSERT_UINT(0, count("DELETE"));
    close_world();
}

/* ---- resume ---- */

static void add_stopped(void)
{
    when("GET", "/containers/json*web-1", 200,
         list(entry("c1", "web-1", "primary", "exited"),
              entry("c2", "web-1", "companion", "exited")),
         0);
}

TEST(a_resume_that_fails_stops_what_it_started)
{
    struct test_reply r;
    struct agx_companion *c;

    open_world();
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(agx_spec_add_companion(&w.sb.spec, &c, NULL));
        ASSERT_OK(agx_text_set(&c->name, i == 0 ? "cache" : "db", NULL));
        ASSERT_OK(agx_text_set(&c->image, "busybox:1", NULL));
    }
    add_stopped();
    when("GET", "/networks/agentix-web-1", 200,
         "{\"Id\":\"n1\",\"IPAM\":{\"Config\":[{\"Subnet\":\"10.1.0.0/28\"}]}}", 0);
    when("POST", "/containers/c1/start", 500, "{\"message\":\"port is already allocated\"}", 0);
    when("POST", "/containers/c2/start", 204, "", 0);
    r = test_backend_do(w.b, &w.sb, AGX_DO_RESUME);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "port is already allocated"));
    ASSERT_UINT(1, count("POST /v1.41/containers/c2/stop"));
    ASSERT_UINT(0, count("DELETE"));
    close_world();
}

TEST(a_network_that_was_pruned_is_made_again_by_a_resume)
{
    open_world();
    add_stopped();
    when("GET", "/networks/agentix-web-1", 404, "{\"message\":\"no such network\"}", 0);
    when("POST", "/networks/create", 201, "{\"Id\":\"n2\"}", 0);
    when("POST", "/disconnect", 404, "{\"message\":\"is not connected\"}", 0);
    when("POST", "/connect", 200, "", 0);
    when("POST", "/containers/c1/start", 500, "{\"message\":\"enough\"}", 0);
    ASSERT_INT(AGX_INTERNAL, test_backend_do(w.b, &w.sb, AGX_DO_RESUME).code);
    ASSERT_UINT(1, count("POST /v1.41/networks/create"));
    ASSERT_UINT(1, count("POST /v1.41/networks/agentix-web-1/connect"));
    ASSERT_UINT(1, count("POST /v1.41/containers/c1/start"));
    close_world();
}

/* ---- second networks of one name ---- */

/* Two networks of web-1, and its primary, which is in `used` (NULL: in none). Twice, and one of
 * them from then on. */
static void add_dup_networks(const char *state, const char *used)
{
    static char container[1600];
    const char *text = entry("c1", "web-1", "primary", state);

    (void)snprintf(container, sizeof(container),
                   "[%.*s,\"HostConfig\":{\"NetworkMode\":\"agentix-web-1\"},\"NetworkSettings\":"
                   "{\"Networks\":{\"agentix-web-1\":{\"NetworkID\":\"%s\"}}}}]",
                   (int)(strlen(text) - 1), text, used ? used : "");
    when("GET", "/containers/json", 200, container, 0);
    when("GET", "/networks?", 200,
         list(entry("n1", "web-1", "network", ""), entry("n2", "web-1", "network", "")), 0);
}

static void wait_for(const char *line, unsigned times)
{
    for (int i = 0; i < 4000 && count(line) < times; i++)
        test_pause(w.loop, 5);
    ASSERT_TRUE(count(line) >= times);
}

TEST(a_look_removes_the_network_that_nobody_uses)
{
    open_world();
    add_dup_networks("running", "n1");
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, "web-1"));
    wait_for("DELETE /v1.41/networks/n2", 1);
    ASSERT_UINT(1, count("DELETE"));
    close_world();
}

TEST(a_network_that_may_be_about_to_be_used_is_left_alone)
{
    struct test_reply resume;

    open_world();
    add_dup_networks("running", NULL);
    when("GET", "/containers/json*web-1", 0, NULL, 1);
    test_backend_begin(w.b, &w.sb, AGX_DO_RESUME, &resume);
    wait_for("GET /v1.41/containers/json", 1);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, "web-1"));
    wait_for("GET /v1.41/networks", 2);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, "web-1"));
    wait_for("GET /v1.41/networks", 4);
    ASSERT_UINT(0, count("DELETE"));
    close_world();
}

TEST(a_resume_that_finds_two_networks_of_its_name_goes_on_with_one)
{
    open_world();
    add_dup_networks("exited", "n2");
    when("GET", "/networks/agentix-web-1", 200, "{\"Id\":\"n2\"}", 0);
    when("GET", "/networks/agentix-web-1", 400,
         "{\"message\":\"network agentix-web-1 is ambiguous (2 matches found on name)\"}", 2);
    when("POST", "/containers/c1/start", 500, "{\"message\":\"enough\"}", 0);
    ASSERT_INT(AGX_INTERNAL, test_backend_do(w.b, &w.sb, AGX_DO_RESUME).code);
    ASSERT_UINT(2, count("DELETE /v1.41/networks/n1"));
    ASSERT_UINT(0, count("DELETE /v1.41/networks/n2"));
    ASSERT_UINT(1, count("POST /v1.41/containers/c1/start"));
    close_world();
}

/* ---- one at a time ---- */

TEST(a_second_operation_is_refused_until_the_first_has_ended_also_when_it_was_given_up)
{
    struct test_reply first, second;

    open_world();
    when("GET", "/containers/json*web-1", 0, NULL, 1);
    test_backend_begin(w.b, &w.sb, AGX_DO_STOP, &first);
    second = test_backend_do(w.b, &w.sb, AGX_DO_DELETE);
    ASSERT_INT(AGX_UNAVAILABLE, second.code);
    agx_backend_abandon(first.op);
    second = test_backend_do(w.b, &w.sb, AGX_DO_DELETE);
    ASSERT_INT(AGX_UNAVAILABLE, second.code);
    ASSERT_UINT(0, first.n_done);
    close_world();
    ASSERT_UINT(0, first.n_done);
}

TEST(a_hanging_engine_is_left_when_an_operation_is_cancelled)
{
    struct test_reply r;

    open_world();
    when("GET", "/containers/json*web-1", 0, NULL, 1);
    test_backend_begin(w.b, &w.sb, AGX_DO_DELETE, &r);
    wait_for("GET /v1.41/containers/json", 1);
    agx_backend_cancel(r.op);
    test_wait(w.loop, &r.n_done, 1);
    ASSERT_INT(AGX_CANCELLED, r.code);
    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    close_world();
}

TEST(a_close_in_the_middle_calls_no_hook)
{
    static const char *const stuck[] = { "/containers/json", "/images/", "/networks/create" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(stuck); i++) {
        struct test_reply r;

        open_world();
        add_image();
        when(i == 2 ? "POST" : "GET", stuck[i], 0, NULL, 0);
        when("POST", "/containers/create", 201, "{\"Id\":\"c1\"}", 0);
        test_backend_begin(w.b, &w.sb, AGX_DO_CREATE, &r);
        test_pause(w.loop, 30);
        test_backend_close(w.b);
        w.b = NULL;
        ASSERT_UINT(0, r.n_done);
        close_world();
    }
}

/* ---- what it cannot give ---- */

TEST(what_a_sandbox_without_a_network_cannot_have_is_refused_by_name)
{
    struct agx_error *err = NULL;
    struct agx_port *port;

    open_world();
    ASSERT_OK(test_backend_check(w.b, &w.sb.spec, NULL));
    w.sb.spec.network = AGX_NETWORK_NONE;
    ASSERT_OK(test_backend_check(w.b, &w.sb.spec, NULL));
    ASSERT_OK(agx_spec_add_port(&w.sb.spec, &port, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(w.b, &w.sb.spec, &err));
    ASSERT_MESSAGE(err, "ports");
    agx_error_free(err);
    close_world();
}

TEST(what_the_engine_cannot_give_is_refused_by_name_once_it_is_known)
{
    struct agx_error *err = NULL;

    open_world();
    when("GET", "/info", 200,
         "{\"Driver\":\"overlay2\",\"DriverStatus\":[[\"Backing Filesystem\",\"extfs\"]]}", 0);
    ASSERT_OK(agx_text_set(&w.sb.spec.limits.disk, "10g", NULL));
    ASSERT_OK(test_backend_check(w.b, &w.sb.spec, NULL)); /* nothing is known yet */
    while (count("/info") == 0)
        test_pause(w.loop, 5);
    test_pause(w.loop, 20);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(w.b, &w.sb.spec, &err));
    ASSERT_MESSAGE(err, "disk_limit");
    agx_error_free(err);
    close_world();
}

/* What a backend of that kind says of the world's sandbox. */
static void warns(enum agx_docker_control control, bool compat, const char *words)
{
    _cleanup_(agx_words_done) struct agx_words warnings = { 0 };
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;

    test_backend_close(w.b);
    c.target = "unix:///nowhere";
    c.state_dir = w.dir;
    c.init_path = "/init";
    c.control = control;
    c.common.compat = compat;
    c.isolation = AGX_DOCKER_ISOLATION_OFF;
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
    ASSERT_OK(agx_backend_check(w.b, &w.sb.spec, &warnings, NULL));
    ASSERT_UINT(words ? 1 : 0, warnings.len);
    if (words)
        ASSERT_NOT_NULL(strstr(warnings.items[0], words));
}

TEST(who_can_leave_setuid_programs_is_warned_of)
{
    struct agx_mount *m;

    open_world();
    warns(AGX_DOCKER_CONTROL_PIDFD, true, NULL);
    ASSERT_OK(agx_spec_add_mount(&w.sb.spec, &m, NULL));
    warns(AGX_DOCKER_CONTROL_PIDFD, true, NULL);
    m->writable = true;
    warns(AGX_DOCKER_CONTROL_PIDFD, true, "compatibility mode");
    warns(AGX_DOCKER_CONTROL_ENGINE, false, "docker.control: engine");
    warns(AGX_DOCKER_CONTROL_PIDFD, false, NULL);
    warns(AGX_DOCKER_CONTROL_STDIO, false, NULL);
    m->suid = AGX_SUID_ALLOW;
    warns(AGX_DOCKER_CONTROL_PIDFD, true, NULL);
    close_world();
}

TEST(an_instance_is_kept_and_one_that_is_none_is_refused)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;
    struct agx_error *err = NULL;
    char path[128];
    FILE *f;

    open_world();
    c.target = "unix:///nowhere";
    c.state_dir = w.dir;
    c.init_path = "/init";
    c.control = AGX_DOCKER_CONTROL_PIDFD;
    c.isolation = AGX_DOCKER_ISOLATION_OFF;
    test_backend_close(w.b);
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
    test_backend_close(w.b);
    (void)snprintf(path, sizeof(path), "%s/instance", w.dir);
    f = fopen(path, "w");
    ASSERT_NOT_NULL(f);
    (void)fprintf(f, "no\n");
    (void)fclose(f);
    ASSERT_CODE(AGX_DATA_LOSS, agx_backend_docker_open(w.loop, &c, &w.b, &err));
    ASSERT_MESSAGE(err, "instance");
    agx_error_free(err);
    w.b = NULL;
    close_world();
}

TEST(an_engine_on_another_machine_gets_no_sandbox_that_cannot_be_isolated)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;
    struct agx_error *err = NULL;
    struct test_reply r;

    open_world();
    test_backend_close(w.b);
    c.target = "tcp://192.0.2.1:2375";
    c.state_dir = w.dir;
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(w.b, &w.sb.spec, &err));
    ASSERT_MESSAGE(err, "docker.isolation");
    agx_error_free(err);
    r = test_backend_do(w.b, &w.sb, AGX_DO_RESUME);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    w.sb.spec.network = AGX_NETWORK_NONE;
    ASSERT_OK(test_backend_check(w.b, &w.sb.spec, NULL));
    close_world();
}

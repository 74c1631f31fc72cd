#include "tests/support/docker_engine.h"

void test_docker_ping(struct test_docker *d, struct test_httpd_conn *c)
{
    char head[200];

    (void)snprintf(head, sizeof(head),
                   "HTTP/1.1 200 OK\r\n%s%s%sContent-Type: text/plain\r\n"
                   "Content-Length: 2\r\n\r\nOK",
                   d->api ? "Api-Version: " : "", d->api ? d->api : "", d->api ? "\r\n" : "");
    test_httpd_send(c, agx_str_from(head));
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct test_docker *d = user;

    if (!test_httpd_is(q, "GET", "/_ping")) {
        d->serve(d->user, q);
        return;
    }
    d->n_pings++;
    d->pinged = q->conn;
    if (!d->hangs)
        test_docker_ping(d, q->conn);
}

void test_docker_open(struct test_docker *d, test_httpd_fn serve_fn, void *user)
{
    struct agx_docker_engine_config config = AGX_DOCKER_ENGINE_CONFIG_INIT;
    struct agx_engine_endpoint endpoint;
    char host[100];

    *d = (struct test_docker){
        .loop = test_loop_open(), .api = "1.41", .serve = serve_fn, .user = user
    };
    d->httpd = test_httpd_open(d->loop, false, serve, d);
    (void)snprintf(host, sizeof(host), "unix://%s", test_httpd_where(d->httpd));
    ASSERT_OK(agx_engine_endpoint_find(host, &(struct agx_docker_env){ 0 }, &endpoint, NULL));
    config.endpoint = &endpoint;
    ASSERT_OK(agx_docker_engine_open(d->loop, &config, &d->engine, NULL));
    agx_engine_endpoint_done(&endpoint);
}

void test_docker_close(struct test_docker *d)
{
    d->engine = agx_docker_engine_close(d->engine);
    d->httpd = test_httpd_close(d->httpd);
    test_loop_run(d->loop);
    test_loop_close(d->loop);
}

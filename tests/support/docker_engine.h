/*
 * docker_engine.h: a Docker Engine whose answers come from the test: its server and our client, on
 * one loop. This file answers GET /_ping, with `api` as the version.
 */
#ifndef AGX_TESTS_DOCKER_ENGINE_H
#define AGX_TESTS_DOCKER_ENGINE_H

#include "backend/docker/api/engine.h"
#include "tests/support/httpd.h"
#include "tests/support/loop.h"

struct test_docker {
    struct agx_loop *loop;
    struct test_httpd *httpd;
    struct agx_docker_engine *engine;
    const char *api; /* "1.41"; NULL: the header is missing */
    bool hangs;      /* pings are not answered: see test_docker_ping() */
    unsigned n_pings;
    struct test_httpd_conn *pinged; /* the last one */
    test_httpd_fn serve;            /* answers all requests except pings */
    void *user;
};

/* Answers a ping with the version of `api`, if any. */
void test_docker_ping(struct test_docker *d, struct test_httpd_conn *c);
void test_docker_open(struct test_docker *d, test_httpd_fn serve, void *user);
/* Closes the engine (unless it is closed already), the server and the loop. */
void test_docker_close(struct test_docker *d);

/* Turns the loop until the condition holds; the test's own time limit ends it otherwise. */
#define TEST_UNTIL(loop, condition)                                                                \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv(loop), UV_RUN_NOWAIT)

#endif

/*
 * dockerd.h: requests to the real Docker Engine beside a test that runs under
 * tests/support/docker_box.py, and a proxy that holds or fails the requests that the test names.
 */
#ifndef AGX_TESTS_DOCKERD_H
#define AGX_TESTS_DOCKERD_H

#include "tests/support/test.h"

/* The socket of the box's engine; it exists only inside the box. */
#define TEST_DOCKERD_SOCKET "/run/docker.sock"
#define TEST_DOCKERD_IMAGE "agx-busybox:1"

enum { TEST_DOCKERD_ANSWER = 1 << 20 };

/* Sends one request and returns the HTTP status. `body` may be NULL. The answer's body is stored in
 * `ret`, which has TEST_DOCKERD_ANSWER bytes, or is NULL. Without an engine the test is skipped. */
unsigned test_dockerd_ask(const char *method, const char *path, const char *body, char *ret);

/* Waits until the engine has finished the requests of clients that have closed: it carries out a
 * request that was sent, and keeps its connection until then. No other client may be connected. */
void test_dockerd_settle(void);

/* Fails the test if containers, volumes or networks (other than the engine's own) are left. */
void test_dockerd_is_empty(void);
/* Removes all of these, for a test that failed in the middle. */
void test_dockerd_empty(void);

enum test_proxy_rule {
    TEST_PROXY_PASS,
    TEST_PROXY_HOLD, /* the next matching request waits; the others pass */
    TEST_PROXY_FAIL, /* the next matching request is answered with 500 "on purpose" */
    TEST_PROXY_WALL, /* every matching request waits */
};

/* Opens a socket at `path` that leads to the engine. */
void test_proxy_open(const char *path);
/* Sets the rule for requests whose line begins with `method` ("": any) and contains `text`. Held
 * requests continue when the rule changes. */
void test_proxy_set(enum test_proxy_rule rule, const char *method, const char *text);

#endif

/*
 * dockerd.h: the real Docker engine beside a test that tests/support/docker_box.py started: asked
 * directly, and by a proxy that holds up or fails what the test names.
 */
#ifndef AGX_TESTS_DOCKERD_H
#define AGX_TESTS_DOCKERD_H

#include "tests/support/test.h"

/* The engine of the box; nothing outside has a socket there. */
#define TEST_DOCKERD_SOCKET "/run/docker.sock"
#define TEST_DOCKERD_IMAGE "agx-busybox:1"

enum { TEST_DOCKERD_ANSWER = 1 << 20 };

/* One request, at once; the HTTP status. `body` NULL: none. The answer's body is in `ret`, which is
 * as large as TEST_DOCKERD_ANSWER, or NULL. Without an engine the test is skipped. */
unsigned test_dockerd_ask(const char *method, const char *path, const char *body, char *ret);

/* Waits until the engine does nothing more for clients that are gone: a request that was sent is
 * carried out, and its connection stands until then. No other client may be there. */
void test_dockerd_settle(void);

/* Fails the test where containers, networks (but the engine's own) or volumes are left. */
void test_dockerd_is_empty(void);
/* Removes all of them: after a test that failed in the middle. */
void test_dockerd_empty(void);

enum test_proxy_rule {
    TEST_PROXY_PASS,
    TEST_PROXY_HOLD, /* the next request that fits does not get further; the others pass */
    TEST_PROXY_FAIL, /* the next request that fits is answered with 500 "on purpose" */
    TEST_PROXY_WALL, /* no request that fits gets further */
};

/* A socket at `path` that leads to the engine, from now on. */
void test_proxy_open(const char *path);
/* Requests whose line begins with `method` ("": any) and contains `text`. What is held goes on when
 * the rule changes. */
void test_proxy_set(enum test_proxy_rule rule, const char *method, const char *text);

#endif

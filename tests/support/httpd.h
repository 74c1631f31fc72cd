/*
 * httpd.h: an HTTP/1.1 server for tests, on a Unix socket (or TCP) in the test's own loop. It calls
 * a function of the test for each whole request, which answers or does something else.
 *
 *     static void serve(void *user, const struct test_httpd_request *q)
 *     {
 *         if (test_httpd_is(q, "GET", "/v1.41/info"))
 *             test_httpd_answer(q->conn, 200, "{}");
 *         else
 *             test_httpd_answer(q->conn, 404, "{\"message\":\"no such thing\"}");
 *     }
 */
#ifndef AGX_TESTS_HTTPD_H
#define AGX_TESTS_HTTPD_H

#include "base/str.h"
#include "loop/loop.h"

struct test_httpd;
struct test_httpd_conn;

/* The request is borrowed for the call. */
struct test_httpd_request {
    struct test_httpd *httpd;
    struct test_httpd_conn *conn;  /* valid until its end, for a later answer */
    struct agx_str method, target; /* the target includes the query */
    struct agx_str path, query;
    struct agx_str head; /* the whole head */
    struct agx_str body;
};

typedef void (*test_httpd_fn)(void *user, const struct test_httpd_request *q);

/* Listens at a new path below /tmp, or (`tcp`) at a port of 127.0.0.1. */
struct test_httpd *test_httpd_open(struct agx_loop *l, bool tcp, test_httpd_fn serve, void *user);
/* The socket's path, or "http://127.0.0.1:PORT". */
const char *test_httpd_where(const struct test_httpd *h);
/* Stops listening and cuts every connection; listens again at the same path. */
void test_httpd_away(struct test_httpd *h);
void test_httpd_back(struct test_httpd *h);
/* Closes the server; the loop must turn once more. Returns NULL. */
struct test_httpd *test_httpd_close(struct test_httpd *h);

/* All connections so far; open connections; all requests so far. */
unsigned test_httpd_conns(const struct test_httpd *h);
unsigned test_httpd_open_conns(const struct test_httpd *h);
unsigned test_httpd_requests(const struct test_httpd *h);

bool test_httpd_is(const struct test_httpd_request *q, const char *method, const char *path);
/* The value of a header, or an empty string. */
struct agx_str test_httpd_header(const struct test_httpd_request *q, const char *name);

/* Sends a whole answer with a length. */
void test_httpd_answer(struct test_httpd_conn *c, unsigned status, const char *body);
/* Sends any bytes, such as a head, a part of one, or a body. */
void test_httpd_send(struct test_httpd_conn *c, struct agx_str bytes);
/* Sends an answer of unknown length (chunked): the head, the pieces, the end. */
void test_httpd_begin(struct test_httpd_conn *c, unsigned status);
void test_httpd_chunk(struct test_httpd_conn *c, struct agx_str bytes);
void test_httpd_finish(struct test_httpd_conn *c);
/* Answers "101 UPGRADED": from now on the client's bytes go to `data` (len 0: the end). */
void test_httpd_upgrade(struct test_httpd_conn *c,
                        void (*data)(void *user, struct test_httpd_conn *c, struct agx_str bytes));
/* Closes the connection in order, after all sent bytes; or at once. */
void test_httpd_hang_up(struct test_httpd_conn *c);
void test_httpd_cut(struct test_httpd_conn *c);

#endif

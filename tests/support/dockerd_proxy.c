/*
 * dockerd_proxy.c: passes bytes between a backend and the engine, with one thread per connection.
 *
 * A client waits for the answer before its next request, and writes a request line in one piece, so
 * bytes that begin like a request are a request. Threads never touch the harness; after a failure
 * they close the connection, as if the engine had ended.
 */
#include "tests/support/dockerd.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum test_proxy_rule rule;
    char method[16], text[128];
    unsigned changes; /* how often the rule has changed */
} now;

void test_proxy_set(enum test_proxy_rule rule, const char *method, const char *text)
{
    (void)pthread_mutex_lock(&lock);
    now.rule = rule;
    (void)snprintf(now.method, sizeof(now.method), "%s", method);
    (void)snprintf(now.text, sizeof(now.text), "%s", text);
    now.changes++;
    (void)pthread_mutex_unlock(&lock);
}

static unsigned changes(void)
{
    unsigned n;

    (void)pthread_mutex_lock(&lock);
    n = now.changes;
    (void)pthread_mutex_unlock(&lock);
    return n;
}

static bool is_request(const char *bytes, size_t len)
{
    static const char *const methods[] = { "GET /", "POST /", "PUT /", "DELETE /", "HEAD /" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(methods); i++) {
        if (len > strlen(methods[i]) && memcmp(bytes, methods[i], strlen(methods[i])) == 0)
            return true;
    }
    return false;
}

/* Decides what happens to these bytes; a rule for one request applies only once. */
static enum test_proxy_rule judge(const char *bytes, size_t len, unsigned *ret_changes)
{
    enum test_proxy_rule rule = TEST_PROXY_PASS;
    const char *end = memchr(bytes, '\r', len);
    size_t line = end ? (size_t)(end - bytes) : len;

    (void)pthread_mutex_lock(&lock);
    *ret_changes = now.changes;
    if (now.rule != TEST_PROXY_PASS && is_request(bytes, len) &&
        memcmp(bytes, now.method, strlen(now.method)) == 0 &&
        memmem(bytes, line, now.text, strlen(now.text))) {
        rule = now.rule;
        if (rule != TEST_PROXY_WALL)
            now.rule = TEST_PROXY_PASS;
    }
    (void)pthread_mutex_unlock(&lock);
    return rule;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Waits until the rule changes (true) or the client closes (false). If both have happened, it
 * returns false: a request that the client gave up must not reach the engine. */
static bool hold(int client, unsigned since)
{
    struct pollfd p = { .fd = client, .events = POLLRDHUP };

    while (changes() == since) {
        if (poll(&p, 1, 10) > 0)
            return false;
    }
    return poll(&p, 1, 0) == 0;
}

static void refuse(int client)
{
    static const char answer[] = "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n"
                                 "Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
                                 "{\"message\":\"on purpose\"}";
    char rest[4096];

    (void)send_all(client, answer, sizeof(answer) - 1);
    (void)shutdown(client, SHUT_WR);
    while (read(client, rest, sizeof(rest)) > 0)
        ;
}

/* Passes bytes of the client on; false: the connection is over. After the client's last byte the
 * engine ends it. */
static bool forward(struct pollfd *from, int engine)
{
    char bytes[65536];
    int client = from->fd;
    ssize_t n = read(client, bytes, sizeof(bytes));
    unsigned since;

    if (n <= 0) {
        (void)shutdown(engine, SHUT_WR);
        from->fd = -1;
        return n == 0;
    }
    switch (judge(bytes, (size_t)n, &since)) {
    case TEST_PROXY_FAIL:
        refuse(client);
        return false;
    case TEST_PROXY_HOLD:
    case TEST_PROXY_WALL:
        if (!hold(client, since))
            return false;
        break;
    case TEST_PROXY_PASS:
        break;
    }
    return send_all(engine, bytes, (size_t)n);
}

static bool backward(int client, int engine)
{
    char bytes[65536];
    ssize_t n = read(engine, bytes, sizeof(bytes));

    return n > 0 && send_all(client, bytes, (size_t)n);
}

/* Takes the argument that start_thread() passed. */
static int take_fd(void *user)
{
    int *own = user, fd = *own;

    free(own);
    return fd;
}

static void *serve(void *user)
{
    struct sockaddr_un endpoint = { .sun_family = AF_UNIX, .sun_path = TEST_DOCKERD_SOCKET };
    int client = take_fd(user), engine = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd p[] = { { .fd = engine, .events = POLLIN }, { .fd = client, .events = POLLIN } };
    bool open = engine >= 0 && connect(engine, (struct sockaddr *)&endpoint, sizeof(endpoint)) == 0;

    while (open && poll(p, 2, -1) > 0) {
        if (p[0].revents)
            open = backward(client, engine);
        if (open && p[1].revents)
            open = forward(&p[1], engine);
    }
    (void)close(client);
    (void)close(engine);
    return NULL;
}

static void start_thread(void *(*run)(void *), int fd)
{
    int *own = malloc(sizeof(*own));
    pthread_attr_t detached;
    pthread_t thread;

    if (!own)
        abort();
    *own = fd;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, run, own) != 0)
        (void)close(take_fd(own));
    (void)pthread_attr_destroy(&detached);
}

static void *take(void *user)
{
    int listener = take_fd(user), client;

    while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        start_thread(serve, client);
    return NULL;
}

void test_proxy_open(const char *path)
{
    struct sockaddr_un endpoint = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT_TRUE(listener >= 0 && strlen(path) < sizeof(endpoint.sun_path));
    memcpy(endpoint.sun_path, path, strlen(path) + 1);
    (void)unlink(path);
    ASSERT_INT(0, bind(listener, (struct sockaddr *)&endpoint, sizeof(endpoint)));
    ASSERT_INT(0, listen(listener, 128));
    start_thread(take, listener);
}

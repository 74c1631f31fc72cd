/* dockerd.c: sends requests to the Docker Engine, each on a new connection. */
#include "tests/support/dockerd.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_engine(void)
{
    struct sockaddr_un endpoint = { .sun_family = AF_UNIX, .sun_path = TEST_DOCKERD_SOCKET };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT_TRUE(fd >= 0);
    if (!getenv("AGX_DOCKER_BOX"))
        SKIP("no Docker Engine of its own: run it with tests/support/docker_box.py");
    ASSERT_INT(0, connect(fd, (struct sockaddr *)&endpoint, sizeof(endpoint)));
    return fd;
}

unsigned test_dockerd_ask(const char *method, const char *path, const char *body, char *ret)
{
    static char answer[TEST_DOCKERD_ANSWER];
    int fd = connect_engine();
    unsigned status = 0;
    size_t len = 0;
    ssize_t n;

    /* HTTP/1.0: the answer ends with the connection. */
    (void)dprintf(fd,
                  "%s %s HTTP/1.0\r\nHost: engine\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, body ? strlen(body) : 0, body ? body : "");
    while (len < sizeof(answer) - 1 && (n = read(fd, answer + len, sizeof(answer) - 1 - len)) > 0)
        len += (size_t)n;
    (void)close(fd);
    answer[len] = '\0';
    if (sscanf(answer, "HTTP/1.%*c %u", &status) != 1)
        FAIL("%s %s: no answer", method, path);
    if (ret) {
        const char *start = strstr(answer, "\r\n\r\n");

        ASSERT_NOT_NULL(start);
        (void)snprintf(ret, TEST_DOCKERD_ANSWER, "%s", start + 4);
    }
    return status;
}

/* The number of the engine's connections: sockets of its address that do not listen. */
static unsigned connections(void)
{
    static const char listens[] = " 00010000 ";
    const size_t len = strlen(TEST_DOCKERD_SOCKET);
    FILE *f = fopen("/proc/net/unix", "r");
    char line[512];
    unsigned n = 0;

    ASSERT_NOT_NULL(f);
    while (fgets(line, sizeof(line), f)) {
        size_t end = strcspn(line, "\n");

        n += end > len && memcmp(line + end - len, TEST_DOCKERD_SOCKET, len) == 0 &&
             line[end - len - 1] == ' ' && !strstr(line, listens);
    }
    (void)fclose(f);
    return n;
}

void test_dockerd_settle(void)
{
    while (connections() > 0)
        (void)usleep(5000);
}

/* A kind of object: the path of its list, the member that has the list, the field that names an
 * item, and the path and query that remove one. */
static const struct kind {
    const char *list, *member, *id, *place, *how;
} kinds[] = {
    { "/containers/json?all=1", NULL, "Id", "/containers/", "?force=1&v=1" },
    { "/networks?filters=%7B%22type%22%3A%5B%22custom%22%5D%7D", NULL, "Id", "/networks/", "" },
    { "/volumes", "Volumes", "Name", "/volumes/", "?force=1" },
};

/* Calls `each` for each existing item. */
static void for_each(const struct kind *k, void (*each)(const struct kind *k, json_t *item))
{
    static char text[TEST_DOCKERD_ANSWER];
    json_t *all, *items, *item;
    size_t i;

    ASSERT_UINT(200, test_dockerd_ask("GET", k->list, NULL, text));
    all = json_loads(text, 0, NULL);
    ASSERT_NOT_NULL(all);
    items = k->member ? json_object_get(all, k->member) : all;
    json_array_foreach(items, i, item) each(k, item);
    json_decref(all);
}

static void complain(const struct kind *k, json_t *item)
{
    char *text = json_dumps(item, JSON_COMPACT);

    FAIL("left behind, of '%s': %.600s", k->list, text);
}

static void remove_item(const struct kind *k, json_t *item)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s%s%s", k->place,
                   json_string_value(json_object_get(item, k->id)), k->how);
    (void)test_dockerd_ask("DELETE", path, NULL, NULL);
}

void test_dockerd_is_empty(void)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++)
        for_each(&kinds[i], complain);
}

void test_dockerd_empty(void)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++)
        for_each(&kinds[i], remove_item);
}

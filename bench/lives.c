/*
 * lives.c: creates sandboxes, waits until they are READY and deletes them, several at a time.
 *
 *     lives SOCKET IMAGE PREFIX COUNT AT-ONCE
 *
 * Prints the number of sandboxes per second. AT-ONCE threads run, each with its own connection, and
 * wait in unary calls, as the command line does. The ids are PREFIX-1 and so on.
 */
#include "base/clock.h"
#include "grpc/client.h"
#include "wire/control_request.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"
#include "wire/view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/banned.h"

enum { COUNT_MAX = 1000000, AT_ONCE_MAX = 256, ID_MAX = 128, REQUEST_MAX = 4096 };

static const char *socket_path, *image, *prefix;
static uint64_t count;
static atomic_uint_fast64_t begun;

/* One thread and its connection. */
struct lane {
    pthread_t thread;
    struct agx_grpc_client *client;
    struct agx_error *error;
};

static int call(struct lane *l, const char *method, const struct agx_buf *request,
                struct agx_buf *reply)
{
    const struct agx_grpc_request q = { .path = method, .message = agx_buf_peek(request) };

    return agx_grpc_client_call(l->client, &q, reply, NULL, &l->error);
}

static int await(struct lane *l, char *id, enum agx_state state)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(REQUEST_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_wait_request q = { .id = id,
                                        .states = 1u << state | 1u << AGX_STATE_FAILED,
                                        .timeout_ns = AGX_NS_UNSET };
    struct agx_sandbox_view view = { .state = AGX_STATE_NONE };
    int r = agx_wait_sandbox_encode(&request, &q);

    if (r == 0)
        r = call(l, AGX_METHOD_WAIT_SANDBOX, &request, &reply);
    if (r == 0)
        r = agx_sandbox_view_decode(&view, agx_buf_peek(&reply), NULL, &l->error);
    if (r < 0)
        return r;
    if (view.state != state)
        r = agx_error_set(&l->error, AGX_ABORTED, "sandbox '%s' failed", id);
    agx_sandbox_view_done(&view);
    return r;
}

static int create(struct lane *l, char *id)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(REQUEST_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_create_request q;
    int r;

    agx_create_request_init(&q);
    q.has_spec = true;
    q.spec.image = (char *)image;
    q.sandbox_id = id;
    r = agx_create_request_encode(&request, &q);
    return r < 0 ? r : call(l, AGX_METHOD_CREATE_SANDBOX, &request, &reply);
}

static int discard(struct lane *l, const char *id)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(REQUEST_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    int r = agx_id_encode(&request, id);

    return r < 0 ? r : call(l, AGX_METHOD_DELETE_SANDBOX, &request, &reply);
}

static int live(struct lane *l, uint64_t number)
{
    char id[ID_MAX];
    int r;

    (void)snprintf(id, sizeof(id), "%s-%llu", prefix, (unsigned long long)number);
    r = create(l, id);
    if (r == 0)
        r = await(l, id, AGX_STATE_READY);
    if (r == 0)
        r = discard(l, id);
    return r < 0 ? r : await(l, id, AGX_STATE_DELETED);
}

static void *run(void *lane)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    struct lane *l = lane;
    int r = agx_grpc_client_open(socket_path, &config, &l->client, &l->error);
    uint64_t number;

    while (r == 0 && (number = ++begun) <= count)
        r = live(l, number);
    l->client = agx_grpc_client_close(l->client);
    return NULL;
}

/* Returns whether all lives succeeded. */
static bool run_all(struct lane *lanes, size_t n)
{
    bool whole = true;
    char text[300];
    size_t started = 0;

    while (started < n && pthread_create(&lanes[started].thread, NULL, run, &lanes[started]) == 0)
        started++;
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(lanes[i].thread, NULL);
        if (!lanes[i].error)
            continue;
        fprintf(stderr, "lives: %s\n", agx_error_format(lanes[i].error, text, sizeof(text)));
        lanes[i].error = agx_error_free(lanes[i].error);
        whole = false;
    }
    return whole && started == n;
}

int main(int argc, char **argv)
{
    static struct lane lanes[AT_ONCE_MAX];
    uint64_t at_once = 0, began = agx_clock_ns();

    if (argc != 6 || !agx_parse_u64(agx_str_from(argv[4]), COUNT_MAX, &count) || count == 0 ||
        !agx_parse_u64(agx_str_from(argv[5]), AT_ONCE_MAX, &at_once) || at_once == 0) {
        fprintf(stderr, "usage: lives SOCKET IMAGE PREFIX COUNT AT-ONCE\n");
        return 2;
    }
    socket_path = argv[1];
    image = argv[2];
    prefix = argv[3];
    if (!run_all(lanes, at_once))
        return 1;
    printf("%.1f\n", (double)count * 1e9 / (double)(agx_clock_ns() - began));
    return 0;
}

/*
 * subscribers.c: opens many subscriptions to the events of one sandbox, for the daemon's figures.
 *
 *     subscribers SOCKET SANDBOX N ROUNDS
 *
 * Opens N subscriptions over several connections, and waits until each has its snapshot. Then it
 * runs ROUNDS commands in the sandbox, one after the other. Every subscriber gets two events for
 * each command (started, finished). It prints the number of events that arrived, and events per
 * second. With 0 rounds it prints `ready` and keeps the subscriptions open until its standard input
 * ends.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "grpc/client.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/banned.h"

enum { STREAMS = 500, CONNS_MAX = 64, EVENTS_OF_A_COMMAND = 2 };

/* A connection and its subscriptions. */
struct line {
    struct agx_grpc_client *client;
    struct agx_grpc_reply *replies[STREAMS];
    size_t n;
};

struct crowd {
    const char *socket;
    struct agx_buf subscribe, command; /* the two requests */
    struct line *lines;
    size_t n_lines, n;
    uint64_t got;
};

static int encode(struct crowd *c, char *sandbox)
{
    static char *words[] = { (char *)"true" };
    const struct agx_exec_request q = { .exec = { .sandbox_id = sandbox,
                                                  .command = { .items = words, .len = 1 } } };
    const struct agx_subscribe_request s = { .sandbox_id = sandbox,
                                             .from_sequence = 0,
                                             .snapshot = true };
    int r = agx_subscribe_request_encode(&c->subscribe, &s);

    return r < 0 ? r : agx_exec_request_encode(&c->command, &q);
}

static int open_line(struct crowd *c, struct line *l, size_t n, struct agx_error **err)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    const struct agx_grpc_request q = { .path = AGX_METHOD_SUBSCRIBE,
                                        .message = agx_buf_peek(&c->subscribe) };
    int r = agx_grpc_client_open(c->socket, &config, &l->client, err);

    for (; r == 0 && l->n < n; l->n++)
        r = agx_grpc_client_start(l->client, &q, &l->replies[l->n], err);
    return r;
}

/* Reads what has arrived on one connection. */
static int drain(struct crowd *c, struct line *l, struct agx_error **err)
{
    struct agx_str message;
    int r = 0;

    for (size_t i = 0; i < l->n; i++) {
        while ((r = agx_grpc_reply_next(l->replies[i], 0, &message, err)) == 1)
            c->got++;
        if (r != AGX_GRPC_NOTHING_YET)
            return r < 0 ? r : agx_error_set(err, AGX_ABORTED, "a subscription ended");
    }
    return 0;
}

/* Whether a subscription has a reply already: reading for one subscription may also have read the
 * bytes of another on the same connection. */
static bool any_ready(const struct crowd *c)
{
    for (size_t i = 0; i < c->n_lines; i++)
        for (size_t k = 0; k < c->lines[i].n; k++)
            if (agx_grpc_reply_ready(c->lines[i].replies[k]))
                return true;
    return false;
}

static int wait_for_more(const struct crowd *c, struct agx_error **err)
{
    struct pollfd fds[CONNS_MAX];

    for (size_t i = 0; i < c->n_lines; i++)
        fds[i] = (struct pollfd){ .fd = agx_grpc_client_fd(c->lines[i].client),
                                  .events = agx_grpc_client_events(c->lines[i].client) };
    return poll(fds, c->n_lines, -1) < 0 ? agx_error_set(err, AGX_INTERNAL, "poll failed") : 0;
}

/* Waits until `wanted` events have arrived in all. */
static int collect(struct crowd *c, uint64_t wanted, struct agx_error **err)
{
    int r = 0;

    for (;;) {
        for (size_t i = 0; r == 0 && i < c->n_lines; i++)
            r = drain(c, &c->lines[i], err);
        if (r < 0 || c->got >= wanted)
            return r;
        if (!any_ready(c))
            r = wait_for_more(c, err);
    }
}

static int open_all(struct crowd *c, size_t n, struct agx_error **err)
{
    int r = 0;

    c->n_lines = (n + STREAMS - 1) / STREAMS;
    c->lines = agx_alloc(c->n_lines * sizeof(struct line));
    for (size_t i = 0; r == 0 && i < c->n_lines; i++) {
        size_t left = n - c->n;

        r = open_line(c, &c->lines[i], left < STREAMS ? left : STREAMS, err);
        c->n += c->lines[i].n;
    }
    return r;
}

/* Runs the commands, and prints the events that arrived. */
static int run(struct crowd *c, uint64_t rounds, struct agx_error **err)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    const struct agx_grpc_request q = { .path = AGX_METHOD_CREATE_EXEC,
                                        .message = agx_buf_peek(&c->command) };
    struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_grpc_client *client = NULL;
    uint64_t before = c->got, began = agx_clock_ns();
    int r = agx_grpc_client_open(c->socket, &config, &client, err);

    for (uint64_t i = 0; r == 0 && i < rounds; i++) {
        agx_buf_clear(&reply);
        r = agx_grpc_client_call(client, &q, &reply, NULL, err);
        if (r == 0)
            r = collect(c, before + (i + 1) * EVENTS_OF_A_COMMAND * c->n, err);
    }
    if (r == 0)
        printf("%llu %.0f\n", (unsigned long long)(c->got - before),
               (double)(c->got - before) * 1e9 / (double)(agx_clock_ns() - began));
    agx_buf_done(&reply);
    agx_grpc_client_close(client);
    return r;
}

static void wait_for_end(void)
{
    char c;

    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
}

static void close_all(struct crowd *c)
{
    for (size_t i = 0; c->lines && i < c->n_lines; i++) {
        struct line *l = &c->lines[i];

        for (size_t k = 0; k < l->n; k++)
            agx_grpc_reply_close(l->replies[k]);
        agx_grpc_client_close(l->client);
    }
    free(c->lines);
    agx_buf_done(&c->subscribe);
    agx_buf_done(&c->command);
}

int main(int argc, char **argv)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct crowd c = { .subscribe = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX),
                       .command = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX) };
    uint64_t n, rounds, snapshot;
    char text[300];
    int r;

    if (argc != 5 || !agx_parse_u64(agx_str_from(argv[3]), CONNS_MAX * STREAMS, &n) ||
        !agx_parse_u64(agx_str_from(argv[4]), 1000000, &rounds)) {
        fprintf(stderr, "usage: subscribers SOCKET SANDBOX N ROUNDS\n");
        return 2;
    }
    c.socket = argv[1];
    r = encode(&c, argv[2]);
    if (r == 0)
        r = open_all(&c, n, &err);
    /* Each subscription starts with the snapshot and the whole history, here of a new sandbox. */
    snapshot = 1 + 3;
    if (r == 0)
        r = collect(&c, n * snapshot, &err);
    if (r == 0 && rounds > 0)
        r = run(&c, rounds, &err);
    else if (r == 0)
        wait_for_end();
    close_all(&c);
    if (r < 0)
        fprintf(stderr, "subscribers: %s\n", agx_error_format(err, text, sizeof(text)));
    return r < 0;
}

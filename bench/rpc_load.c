/*
 * rpc_load.c: repeatedly calls a unary method of any gRPC server over one connection, with an empty
 * request.
 *
 *     rpc_load SOCKET METHOD SECONDS AT-ONCE
 *
 * Prints requests per second, and the latency in microseconds: the median, the 99th and the 99.9th
 * percentile.
 */
#include "base/clock.h"
#include "grpc/client.h"

#include <stdio.h>

#include "base/banned.h"

enum { AT_ONCE_MAX = 256, TIMES_MAX = 1 << 20 };

struct lane {
    struct agx_grpc_reply *reply;
    uint64_t began_ns;
};

static uint64_t times[TIMES_MAX];
static size_t n_times;
static uint64_t n_done;

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* A percentile of the sorted times. */
static double percentile_us(double part)
{
    return (double)times[(size_t)(part * (double)(n_times - 1))] / 1e3;
}

static int begin(struct agx_grpc_client *c, const char *method, struct lane *l,
                 struct agx_error **err)
{
    l->began_ns = agx_clock_ns();
    return agx_grpc_client_start(c, &(struct agx_grpc_request){ .path = method }, &l->reply, err);
}

/* Waits for the answer of the lane's call, and for the end of the call. */
static int end(struct lane *l, struct agx_error **err)
{
    struct agx_str message;
    int r;

    while ((r = agx_grpc_reply_next(l->reply, -1, &message, err)) > 0)
        ;
    l->reply = agx_grpc_reply_close(l->reply);
    n_done++;
    if (n_times < TIMES_MAX)
        times[n_times++] = agx_clock_ns() - l->began_ns;
    return r;
}

static int load(struct agx_grpc_client *c, const char *method, double seconds, size_t at_once,
                struct agx_error **err)
{
    static struct lane lanes[AT_ONCE_MAX];
    uint64_t began = agx_clock_ns(), until = began + (uint64_t)(seconds * 1e9);
    int r = 0;

    for (size_t i = 0; i < at_once && r == 0; i++)
        r = begin(c, method, &lanes[i], err);
    for (size_t i = 0; r == 0 && agx_clock_ns() < until; i = (i + 1) % at_once) {
        r = end(&lanes[i], err);
        if (r == 0)
            r = begin(c, method, &lanes[i], err);
    }
    if (r == 0 && n_times > 0) {
        qsort(times, n_times, sizeof(times[0]), by_value);
        printf("%.0f %.1f %.1f %.1f\n", (double)n_done * 1e9 / (double)(agx_clock_ns() - began),
               percentile_us(0.5), percentile_us(0.99), percentile_us(0.999));
    }
    for (size_t i = 0; i < at_once; i++)
        lanes[i].reply = agx_grpc_reply_close(lanes[i].reply);
    return r;
}

int main(int argc, char **argv)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_grpc_client *c = NULL;
    uint64_t at_once = 0;
    char text[300];
    int r;

    if (argc != 5 || !agx_parse_u64(agx_str_from(argv[4]), AT_ONCE_MAX, &at_once) || at_once == 0) {
        fprintf(stderr, "usage: rpc_load SOCKET METHOD SECONDS AT-ONCE\n");
        return 2;
    }
    r = agx_grpc_client_open(argv[1], &config, &c, &err);
    if (r == 0)
        r = load(c, argv[2], strtod(argv[3], NULL), at_once, &err);
    c = agx_grpc_client_close(c);
    if (r < 0)
        fprintf(stderr, "rpc_load: %s\n", agx_error_format(err, text, sizeof(text)));
    return r < 0;
}

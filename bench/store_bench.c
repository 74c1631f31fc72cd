/*
 * store_bench.c: measures how many batches per second become durable, 64 at a time, as if 64
 * clients called the daemon. Each batch is like that of an accepted operation: it replaces the
 * record of a sandbox and adds an event.
 *
 *     store_bench grouped|single DIR SECONDS
 *
 * DIR must not exist. It must be on the disk to measure; the caller removes it.
 */
#include "base/clock.h"
#include "store/store_batch.h"
#include "store/store_lmdb.h"

#include <stdio.h>
#include <string.h>

#define IN_FLIGHT 64

enum { SANDBOXES, EVENTS };
static const char *const tables[] = { "sandboxes", "events" };
static const struct agx_store_layout layout = { .tables = tables, .n_tables = 2, .version = 1 };

struct bench {
    struct agx_store *st;
    uint64_t end_us;
    uint64_t stored, next;
    unsigned in_flight;
    bool failed;
};

static void on_stored(void *user, struct agx_error *error);

static void commit_next(struct bench *b)
{
    static const char record[600], event[150];
    struct agx_store_batch *batch = agx_store_batch_new();
    char id[32], key[64];
    int id_len = snprintf(id, sizeof(id), "sandbox-%04u", (unsigned)(b->next % 1000));
    int key_len = snprintf(key, sizeof(key), "%s/%012ju", id, (uintmax_t)b->next);

    b->next++;
    agx_store_batch_put(batch, SANDBOXES, agx_str_bytes(id, (size_t)id_len),
                        agx_str_bytes(record, sizeof(record)));
    agx_store_batch_put(batch, EVENTS, agx_str_bytes(key, (size_t)key_len),
                        agx_str_bytes(event, sizeof(event)));
    if (agx_store_commit(b->st, &batch, on_stored, b, NULL) < 0)
        b->failed = true;
    else
        b->in_flight++;
    agx_store_batch_free(batch);
}

static void on_stored(void *user, struct agx_error *error)
{
    struct bench *b = user;

    b->in_flight--;
    b->stored++;
    b->failed = b->failed || error;
    agx_error_free(error);
    if (!b->failed && agx_clock_us() < b->end_us)
        commit_next(b);
}

static int run(const struct agx_store_lmdb_config *c, double seconds, struct agx_error **err)
{
    struct bench b = { 0 };
    struct agx_loop *l = NULL;
    uint64_t start_us, took_us;
    int r = agx_loop_open(&l, err);

    if (r == 0)
        r = agx_store_lmdb_open(l, c, &layout, &b.st, err);
    if (r < 0)
        return r;
    start_us = agx_clock_us();
    b.end_us = start_us + (uint64_t)(seconds * 1e6);
    for (int i = 0; i < IN_FLIGHT; i++)
        commit_next(&b);
    agx_loop_run(l);
    took_us = agx_clock_us() - start_us;
    agx_store_close(b.st, NULL, NULL);
    agx_loop_run(l);
    r = agx_loop_close(l, err);
    if (r == 0 && b.failed)
        r = agx_error_set(err, AGX_INTERNAL, "a batch was not stored");
    if (r == 0)
        printf("%.6g\n", (double)b.stored * 1e6 / (double)took_us);
    return r;
}

int main(int argc, char **argv)
{
    struct agx_store_lmdb_config c = AGX_STORE_LMDB_CONFIG_INIT;
    struct agx_error *err = NULL;
    char text[512];

    if (argc != 4 || (strcmp(argv[1], "grouped") != 0 && strcmp(argv[1], "single") != 0)) {
        fprintf(stderr, "usage: store_bench grouped|single DIR SECONDS\n");
        return 2;
    }
    c.grouping = strcmp(argv[1], "grouped") == 0;
    c.dir = argv[2];
    if (run(&c, strtod(argv[3], NULL), &err) < 0) {
        fprintf(stderr, "store_bench: %s\n", agx_error_format(err, text, sizeof(text)));
        agx_error_free(err);
        return 1;
    }
    return 0;
}

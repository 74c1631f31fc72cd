/* test_engine_upgrade.c: stores of former versions: what was in them is there, and goes on. */
#include "base/limits.h"
#include "store/store_batch.h"
#include "store/store_lmdb.h"
#include "tests/support/engine.h"

#include <endian.h>
#include <stdio.h>

/* Version 1: keys had the sandbox's id, with a NUL behind it, where now they have its number. */

static void on_done(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    *(bool *)user = true;
}

static struct agx_str old_key(char out[256], const char *id, const void *rest, size_t len)
{
    size_t n = strlen(id) + 1;

    memcpy(out, id, n);
    memcpy(out + n, rest, len);
    return agx_str_bytes(out, n + len);
}

static struct agx_str new_key(char out[16], uint64_t number, uint64_t sequence)
{
    const uint64_t both[2] = { htobe64(number), htobe64(sequence) };

    memcpy(out, both, sizeof(both));
    return agx_str_bytes(out, sequence > 0 ? sizeof(both) : sizeof(uint64_t));
}

static void put_old_event(struct agx_store_batch *b, const char *id, uint64_t sequence,
                          uint64_t position, struct agx_str value)
{
    uint64_t be = htobe64(sequence), at = htobe64(position);
    char bytes[256];
    struct agx_str key = old_key(bytes, id, &be, sizeof(be));

    agx_store_batch_put(b, AGX_TABLE_EVENTS, key, value);
    agx_store_batch_put(b, AGX_TABLE_POSITIONS, agx_str_bytes(&at, sizeof(at)), key);
}

static struct agx_str read_new(struct fixture *f, enum agx_schema_table table, struct agx_str key,
                               struct agx_buf *out)
{
    agx_buf_clear(out);
    ASSERT_INT(1, agx_store_get(f->store, table, key, out, NULL));
    return agx_buf_peek(out);
}

/* One sandbox as version 1 would have written it. */
static void put_old_sandbox(struct fixture *f, struct agx_store_batch *b, const char *id)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    uint64_t number = number_of(f, id), newest = sequence_of(f, id);
    char key[16];
    struct agx_str reserved = read_new(f, AGX_TABLE_SANDBOX_IDS, agx_str_from(id), &got);

    reserved.len = sizeof(uint64_t);
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_IDS, agx_str_from(id), reserved);
    agx_store_batch_put(b, AGX_TABLE_SPECS, agx_str_from(id),
                        read_new(f, AGX_TABLE_SPECS, new_key(key, number, 0), &got));
    agx_store_batch_put(b, AGX_TABLE_LIVES, agx_str_from(id),
                        read_new(f, AGX_TABLE_LIVES, new_key(key, number, 0), &got));
    for (uint64_t i = 1; i <= newest; i++) {
        struct agx_event_record record = { 0 };

        ASSERT_INT(1, agx_schema_get_event(f->store, number, i, &record, NULL));
        put_old_event(b, id, i, record.position,
                      read_new(f, AGX_TABLE_EVENTS, new_key(key, number, i), &got));
        agx_event_record_done(&record);
    }
}

static void put_old_exec(struct fixture *f, struct agx_store_batch *b, const char *sandbox,
                         const char *exec)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    struct agx_str id = agx_str_from(exec);
    char bytes[256];

    agx_store_batch_put(b, AGX_TABLE_EXEC_IDS, id, read_new(f, AGX_TABLE_EXEC_IDS, id, &got));
    agx_store_batch_put(b, AGX_TABLE_EXECS, id, read_new(f, AGX_TABLE_EXECS, id, &got));
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_EXECS, old_key(bytes, sandbox, exec, strlen(exec)),
                        AGX_STR(""));
}

/* A sandbox whose purge was in its middle: its first event is gone, its second is not. */
static void put_old_purge(struct agx_store_batch *b, uint64_t position)
{
    char bytes[256];

    agx_store_batch_put(b, AGX_TABLE_SANDBOX_IDS, AGX_STR("gone"), AGX_STR("\0\0\0\0\0\0\0\1"));
    agx_store_batch_put(b, AGX_TABLE_PURGES, AGX_STR("gone"), AGX_STR(""));
    put_old_event(b, "gone", 2, position, AGX_STR("of no interest"));
    agx_store_batch_put(b, AGX_TABLE_EXECS, AGX_STR("its-exec"), AGX_STR("neither"));
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_EXECS, old_key(bytes, "gone", "its-exec", 8),
                        AGX_STR(""));
}

static void close_store(struct fixture *f)
{
    bool closed = false;

    agx_store_close(f->store, on_done, &closed);
    UNTIL(f, closed);
}

static void open_on_disk(struct fixture *f, uint32_t version)
{
    struct agx_store_lmdb_config c = AGX_STORE_LMDB_CONFIG_INIT;
    static struct agx_store_layout layout;
    char dir[100];

    layout = agx_schema_layout;
    layout.version = version;
    snprintf(dir, sizeof(dir), "%s/store", f->dir);
    c.dir = dir;
    ASSERT_OK(agx_store_lmdb_open(f->loop, &c, &layout, &f->store, NULL));
}

/* Puts a store of version 1 into the place of the fixture's, and opens it with today's. */
static void exchange(struct fixture *f, struct agx_store_batch *b)
{
    bool done = false;

    fixture_close_engine(f);
    close_store(f);
    open_on_disk(f, 1);
    ASSERT_OK(agx_store_commit(f->store, &b, on_done, &done, NULL));
    UNTIL(f, done);
    close_store(f);
    open_on_disk(f, agx_schema_layout.version);
}

static uint64_t count(struct fixture *f, enum agx_schema_table table)
{
    const struct agx_store_range all = { .table = table };
    uint64_t n = 0;

    ASSERT_INT(0, agx_store_count(f->store, &all, &n, NULL));
    return n;
}

TEST(sandboxes_of_version_1_get_numbers_and_keep_all_else)
{
    struct agx_store_batch *b = agx_store_batch_new();
    struct fixture f;
    uint64_t position;

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    (void)ask_exec(&f, "box1", "exec1");
    UNTIL(&f, world_exec(f.world, "exec1"));
    world_exit(f.world, "exec1", 7);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FAILED);
    position = agx_engine_position(f.engine);
    put_old_sandbox(&f, b, "box1");
    put_old_sandbox(&f, b, "box2");
    put_old_exec(&f, b, "box1", "exec1");
    put_old_purge(b, position + 1);
    exchange(&f, b);
    fixture_open_engine(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_FAILED", events_of(&f, "box1"));
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box2"));
    ASSERT_INT(AGX_EXEC_FAILED, exec_state_of(&f, "exec1"));
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "gone").code);
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "box1").code);
    ASSERT_UINT(8, count(&f, AGX_TABLE_EVENTS)); /* nothing of what was being purged */
    ASSERT_UINT(8, count(&f, AGX_TABLE_POSITIONS));
    ASSERT_UINT(1, count(&f, AGX_TABLE_EXECS));
    ASSERT_UINT(0, count(&f, AGX_TABLE_PURGES));
    make_ready(&f, "box3"); /* whose number is no other's */
    ASSERT_TRUE(number_of(&f, "box3") > number_of(&f, "box1"));
    ASSERT_TRUE(number_of(&f, "box3") > number_of(&f, "box2"));
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box3"));
    fixture_close(&f);
}

TEST(unreadable_sandbox_of_version_1_stays_unreadable_and_its_id_taken)
{
    struct agx_store_batch *b = agx_store_batch_new();
    struct agx_engine_stats stats;
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    put_old_sandbox(&f, b, "box1");
    put_old_sandbox(&f, b, "box2");
    agx_store_batch_put(b, AGX_TABLE_SPECS, AGX_STR("box1"), AGX_STR("\xff\xff nonsense"));
    exchange(&f, b);
    fixture_open_engine(&f);
    agx_engine_stats(f.engine, &stats);
    ASSERT_UINT(1, stats.unreadable);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box2"));
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "box1").code);
    ASSERT_INT(AGX_SEEN_RUNNING, world_box(f.world, "box1")->seen);
    fixture_close(&f);
}

/*
 * schema_upgrade.c: data of version 1, which had the sandbox's id where version 2 has its number.
 *
 * All tables with such keys are emptied and filled again. Numbers are given as if they were
 * positions of new events, which therefore go on behind them. What is left of purged sandboxes
 * goes, as their purge would have had it. A record that cannot be read stays unreadable.
 */
#include "daemon/schema_internal.h"

#include "base/limits.h"

#include "base/banned.h"

/* A sandbox under way from one version to the other. */
struct move {
    struct agx_store *store;
    struct agx_store_batch *batch;
    struct agx_str id;
    uint64_t number; /* 0: it was purged */
};

/* What the old keys of one sandbox begin with: its id and a NUL. */
struct prefix {
    char bytes[AGX_IDENT_MAX + 1 + sizeof(uint64_t)];
    size_t len;
};

static struct prefix prefix_of(struct agx_str id)
{
    struct prefix p = { .len = AGX_MIN(id.len, (size_t)AGX_IDENT_MAX) };

    memcpy(p.bytes, id.ptr, p.len);
    p.bytes[p.len++] = '\0';
    return p;
}

/* 1: `out` has the value; 0: there is none; -AGX_DATA_LOSS: there is one, and it is damaged. */
static int read_old(const struct move *m, enum agx_schema_table table, struct agx_str key,
                    struct agx_buf *out, struct agx_error **err)
{
    struct agx_error *error = NULL;
    int r;

    agx_buf_clear(out);
    r = agx_store_get(m->store, table, key, out, &error);
    if (r == -AGX_DATA_LOSS)
        agx_error_free(error);
    else if (r < 0)
        agx_error_propagate(err, &error);
    return r;
}

/* A life that is damaged is left out, and one without a life is unreadable. */
static int move_life(const struct move *m, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf value = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    struct agx_key k = agx_key_of(m->number);
    int r = read_old(m, AGX_TABLE_LIVES, m->id, &value, err);

    if (r > 0)
        agx_store_batch_put(m->batch, AGX_TABLE_LIVES, agx_key_str(&k), agx_buf_peek(&value));
    return r == -AGX_DATA_LOSS || r > 0 ? 0 : r;
}

static void move_event(const struct move *m, uint64_t sequence, struct agx_str value)
{
    struct agx_key k = agx_key_of_event(m->number, sequence);
    struct agx_event_record record = { 0 };
    struct agx_error *unreadable = NULL;

    agx_store_batch_put(m->batch, AGX_TABLE_EVENTS, agx_key_str(&k), value);
    if (agx_event_record_decode(&record, value, &unreadable) == 0) {
        struct agx_key p = agx_key_of(record.position);

        agx_store_batch_put(m->batch, AGX_TABLE_POSITIONS, agx_key_str(&p), agx_key_str(&k));
    }
    agx_error_free(unreadable);
    agx_event_record_done(&record);
}

/* Sequences have no gaps. */
static int move_events(const struct move *m, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf value = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    struct prefix p = prefix_of(m->id);
    int r = 1;

    for (uint64_t sequence = 1; r != 0; sequence++) {
        agx_key_put_u64(p.bytes + p.len, sequence);
        r = read_old(m, AGX_TABLE_EVENTS, (struct agx_str){ p.bytes, p.len + sizeof(sequence) },
                     &value, err);
        if (r > 0)
            move_event(m, sequence, agx_buf_peek(&value));
        else if (r < 0 && r != -AGX_DATA_LOSS)
            return r;
    }
    return 0;
}

static int move_exec(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    const struct move *m = user;
    struct agx_str exec_id = agx_str_skip(key, m->id.len + 1);
    struct agx_key k = agx_key_of_exec(m->number, exec_id);

    (void)err;
    if (m->number > 0)
        agx_store_batch_put(m->batch, AGX_TABLE_SANDBOX_EXECS, agx_key_str(&k), value);
    else
        agx_store_batch_delete(m->batch, AGX_TABLE_EXECS, exec_id);
    return 0;
}

static int move_execs(struct move *m, struct agx_error **err)
{
    struct prefix from = prefix_of(m->id), to = from;
    struct agx_store_range range = { .table = AGX_TABLE_SANDBOX_EXECS,
                                     .from = { from.bytes, from.len },
                                     .to = { to.bytes, to.len } };

    to.bytes[to.len - 1] = '\1';
    return agx_store_scan(m->store, &range, move_exec, m, err);
}

/* `reserved` is when its id was. */
static int move_sandbox(struct move *m, uint64_t *last, struct agx_str reserved,
                        struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf spec = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    char both[2 * sizeof(uint64_t)] = { 0 };
    struct agx_key k;
    int r = read_old(m, AGX_TABLE_SPECS, m->id, &spec, err);

    if (r < 0 && r != -AGX_DATA_LOSS)
        return r;
    if (r == 0)
        return move_execs(m, err);
    k = agx_key_of(m->number = ++*last);
    /* One that is damaged is nothing from now on, which is unreadable, too. */
    agx_store_batch_put(m->batch, AGX_TABLE_SPECS, agx_key_str(&k), agx_buf_peek(&spec));
    memcpy(both, reserved.ptr, AGX_MIN(reserved.len, sizeof(uint64_t)));
    agx_key_put_u64(both + sizeof(uint64_t), m->number);
    agx_store_batch_put(m->batch, AGX_TABLE_SANDBOX_IDS, m->id, agx_str_bytes(both, sizeof(both)));
    r = move_life(m, err);
    if (r == 0)
        r = move_events(m, err);
    return r == 0 ? move_execs(m, err) : r;
}

static int add_id(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    (void)value;
    return agx_words_add(user, key, err);
}

int agx_schema_upgrade_1(struct agx_store *st, struct agx_store_batch *b, struct agx_error **err)
{
    static const enum agx_schema_table keyed[] = { AGX_TABLE_SPECS,         AGX_TABLE_LIVES,
                                                   AGX_TABLE_EVENTS,        AGX_TABLE_POSITIONS,
                                                   AGX_TABLE_SANDBOX_EXECS, AGX_TABLE_PURGES };
    _cleanup_buf_ struct agx_buf reserved = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    _cleanup_(agx_words_done) struct agx_words ids = { 0 };
    struct agx_key newest;
    uint64_t last;
    int r = agx_schema_last_position(st, &last, err);

    if (r == 0)
        r = agx_store_scan(st, &(struct agx_store_range){ .table = AGX_TABLE_SANDBOX_IDS }, add_id,
                           &ids, err);
    for (size_t i = 0; i < AGX_ARRAY_LEN(keyed); i++)
        agx_store_batch_delete_range(b, keyed[i], AGX_STR(""), AGX_STR(""));
    for (size_t i = 0; r == 0 && i < ids.len; i++) {
        struct move m = { .store = st, .batch = b, .id = agx_str_from(ids.items[i]) };

        agx_buf_clear(&reserved);
        r = agx_store_get(st, AGX_TABLE_SANDBOX_IDS, m.id, &reserved, err);
        if (r >= 0)
            r = move_sandbox(&m, &last, agx_buf_peek(&reserved), err);
    }
    newest = agx_key_of(last);
    agx_store_batch_put(b, AGX_TABLE_MARKS, AGX_MARK_POSITION, agx_key_str(&newest));
    return r < 0 ? agx_error_wrap(err, r, "give sandboxes their numbers") : 0;
}

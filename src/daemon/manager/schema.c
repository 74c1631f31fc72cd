/* schema.c: keys and records. Numbers in keys are big endian, so that they stand in their order. */
#include "daemon/manager/schema.h"

#include "base/limits.h"
#include "daemon/manager/schema_internal.h"

#include <inttypes.h>

#include "base/banned.h"

static const char *const tables[AGX_TABLE_COUNT] = {
    [AGX_TABLE_SANDBOX_IDS] = "sandbox_ids",
    [AGX_TABLE_EXEC_IDS] = "exec_ids",
    [AGX_TABLE_SPECS] = "specs",
    [AGX_TABLE_LIVES] = "lives",
    [AGX_TABLE_EVENTS] = "events",
    [AGX_TABLE_POSITIONS] = "positions",
    [AGX_TABLE_EXECS] = "execs",
    [AGX_TABLE_SANDBOX_EXECS] = "sandbox_execs",
    [AGX_TABLE_ACTIVE_EXECS] = "active_execs",
    [AGX_TABLE_MARKS] = "marks",
    [AGX_TABLE_PURGES] = "purges",
    [AGX_TABLE_WRITABLES] = "writables",
};

const struct agx_store_layout agx_schema_layout = { .tables = tables,
                                                    .n_tables = AGX_TABLE_COUNT,
                                                    .version = 2 };

void agx_key_put_u64(char *to, uint64_t n)
{
    for (int i = 7; i >= 0; i--, n >>= 8)
        to[i] = (char)(n & 0xff);
}

static uint64_t get_u64(const char *from)
{
    uint64_t n = 0;

    for (int i = 0; i < 8; i++)
        n = n << 8 | (uint8_t)from[i];
    return n;
}

struct agx_key agx_key_of(uint64_t number)
{
    struct agx_key k = { .len = sizeof(number) };

    agx_key_put_u64(k.bytes, number);
    return k;
}

struct agx_key agx_key_of_event(uint64_t number, uint64_t sequence)
{
    struct agx_key k = agx_key_of(number);

    agx_key_put_u64(k.bytes + k.len, sequence);
    k.len += sizeof(sequence);
    return k;
}

struct agx_key agx_key_of_exec(uint64_t number, struct agx_str exec_id)
{
    struct agx_key k = agx_key_of(number);
    size_t len = AGX_MIN(exec_id.len, sizeof(k.bytes) - k.len);

    memcpy(k.bytes + k.len, exec_id.ptr, len);
    k.len += len;
    return k;
}

uint64_t agx_schema_number_of(struct agx_str key)
{
    return key.len == sizeof(uint64_t) ? get_u64(key.ptr) : 0;
}

static void schema_spoil(struct agx_store_batch *b, int r, const char *what, const char *id)
{
    if (b && !b->error)
        (void)agx_error_set(&b->error, (enum agx_code)(-r), "encode %s '%s'", what, id);
}

/* Encodes with `call` into `out` and puts that under the key. */
#define PUT_ENCODED(b, table, key, what, id, call)                                                 \
    do {                                                                                           \
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);                      \
        int r_ = (call);                                                                           \
        if (r_ < 0)                                                                                \
            schema_spoil((b), r_, (what), (id));                                                   \
        else                                                                                       \
            agx_store_batch_put((b), (table), (key), agx_buf_peek(&out));                          \
    } while (0)

void agx_schema_put_sandbox(struct agx_store_batch *b, const struct agx_sandbox *sb)
{
    struct agx_key k = agx_key_of(sb->number);
    char reserved[2 * sizeof(uint64_t)];

    agx_key_put_u64(reserved, (uint64_t)sb->created.wall_ns);
    agx_key_put_u64(reserved + sizeof(uint64_t), sb->number);
    agx_store_batch_expect_absent(b, AGX_TABLE_SANDBOX_IDS, agx_str_from(sb->id));
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_IDS, agx_str_from(sb->id),
                        agx_str_bytes(reserved, sizeof(reserved)));
    PUT_ENCODED(b, AGX_TABLE_SPECS, agx_key_str(&k), "sandbox", sb->id,
                agx_sandbox_record_encode(&out, sb));
}

void agx_schema_put_life(struct agx_store_batch *b, const struct agx_sandbox *sb)
{
    struct agx_key k = agx_key_of(sb->number);

    PUT_ENCODED(b, AGX_TABLE_LIVES, agx_key_str(&k), "life of sandbox", sb->id,
                agx_life_record_encode(&out, &sb->life));
}

void agx_schema_reserve_exec(struct agx_store_batch *b, const struct agx_sandbox *sb,
                             const struct agx_exec *x)
{
    struct agx_key owner = agx_key_of_exec(sb->number, agx_str_from(x->id));
    char at[sizeof(uint64_t)];

    agx_key_put_u64(at, (uint64_t)x->created.wall_ns);
    agx_store_batch_expect_absent(b, AGX_TABLE_EXEC_IDS, agx_str_from(x->id));
    agx_store_batch_put(b, AGX_TABLE_EXEC_IDS, agx_str_from(x->id), agx_str_bytes(at, sizeof(at)));
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_EXECS, agx_key_str(&owner), AGX_STR(""));
}

void agx_schema_put_exec(struct agx_store_batch *b, const struct agx_exec *x)
{
    PUT_ENCODED(b, AGX_TABLE_EXECS, agx_str_from(x->id), "exec", x->id,
                agx_exec_record_encode(&out, x));
    if (x->phase == AGX_EXEC_PHASE_ENDED)
        agx_store_batch_delete(b, AGX_TABLE_ACTIVE_EXECS, agx_str_from(x->id));
    else
        agx_store_batch_put(b, AGX_TABLE_ACTIVE_EXECS, agx_str_from(x->id), AGX_STR(""));
}

void agx_schema_put_event(struct agx_store_batch *b, const struct agx_sandbox *sb,
                          uint64_t position, const struct agx_event *event)
{
    struct agx_key k = agx_key_of_event(sb->number, event->sequence), p = agx_key_of(position);
    /* The record borrows: encoding only reads it. */
    struct agx_event_record record = { .position = position,
                                       .sandbox_id = sb->id,
                                       .event = *event };

    PUT_ENCODED(b, AGX_TABLE_EVENTS, agx_key_str(&k), "event of sandbox", sb->id,
                agx_event_record_encode(&out, &record));
    agx_store_batch_put(b, AGX_TABLE_POSITIONS, agx_key_str(&p), agx_key_str(&k));
}

void agx_schema_purge(struct agx_store_batch *b, const struct agx_sandbox *sb, uint64_t position)
{
    struct agx_key newest = agx_key_of(position), k = agx_key_of(sb->number);

    agx_store_batch_put(b, AGX_TABLE_MARKS, AGX_MARK_POSITION, agx_key_str(&newest));
    agx_store_batch_delete(b, AGX_TABLE_SPECS, agx_key_str(&k));
    agx_store_batch_delete(b, AGX_TABLE_LIVES, agx_key_str(&k));
    agx_store_batch_put(b, AGX_TABLE_PURGES, agx_key_str(&k), AGX_STR(""));
}

/* A page of what is left of a purged sandbox. */
struct page {
    struct agx_store_batch *batch;
    size_t n;
};

static int purge_event(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct agx_event_record record = { 0 };
    struct agx_error *unreadable = NULL;
    struct page *page = user;

    (void)err;
    /* The place of one that cannot be read stays, and leads nowhere. */
    if (agx_event_record_decode(&record, value, &unreadable) == 0) {
        struct agx_key p = agx_key_of(record.position);

        agx_store_batch_delete(page->batch, AGX_TABLE_POSITIONS, agx_key_str(&p));
    }
    agx_store_batch_delete(page->batch, AGX_TABLE_EVENTS, key);
    page->n++;
    agx_error_free(unreadable);
    agx_event_record_done(&record);
    return 0;
}

static int purge_exec(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct page *page = user;

    (void)value;
    (void)err;
    if (key.len > sizeof(uint64_t))
        agx_store_batch_delete(page->batch, AGX_TABLE_EXECS, agx_str_skip(key, sizeof(uint64_t)));
    agx_store_batch_delete(page->batch, AGX_TABLE_SANDBOX_EXECS, key);
    page->n++;
    return 0;
}

static int take_number(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    (void)value;
    *(uint64_t *)user = agx_schema_number_of(key);
    if (*(uint64_t *)user == 0)
        return agx_error_set(err, AGX_DATA_LOSS, "a number of %zu bytes is to be purged", key.len);
    return 1;
}

int agx_schema_purge_page(struct agx_store *st, struct agx_store_batch *b, size_t limit,
                          struct agx_error **err)
{
    struct agx_store_range range = { .table = AGX_TABLE_PURGES, .limit = 1 };
    struct page page = { .batch = b };
    struct agx_error *damaged = NULL;
    uint64_t number = 0;
    struct agx_key from, to;
    int r = agx_store_scan(st, &range, take_number, &number, err);

    if (r < 0 || number == 0)
        return r;
    from = agx_key_of(number);
    to = agx_key_of(number + 1);
    range = (struct agx_store_range){ .table = AGX_TABLE_EVENTS,
                                      .from = agx_key_str(&from),
                                      .to = agx_key_str(&to),
                                      .limit = limit };
    r = agx_store_scan(st, &range, purge_event, &page, &damaged);
    if (r == -AGX_DATA_LOSS) /* what is damaged goes too */
        agx_store_batch_delete_range(b, AGX_TABLE_EVENTS, range.from, range.to);
    else if (r < 0)
        agx_error_propagate(err, &damaged);
    agx_error_free(damaged);
    if (r < 0 && r != -AGX_DATA_LOSS)
        return r;
    range.table = AGX_TABLE_SANDBOX_EXECS;
    r = agx_store_scan(st, &range, purge_exec, &page, err);
    if (r < 0)
        return r;
    if (page.n == 0)
        agx_store_batch_delete(b, AGX_TABLE_PURGES, agx_key_str(&from));
    return 1;
}

int agx_schema_is_reserved(struct agx_store *st, enum agx_schema_table table, const char *id,
                           struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);

    return agx_store_get(st, table, agx_str_from(id), &got, err);
}

int agx_schema_find_number(struct agx_store *st, const char *sandbox_id, uint64_t *ret_number,
                           struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_store_get(st, AGX_TABLE_SANDBOX_IDS, agx_str_from(sandbox_id), &got, err);

    if (r <= 0)
        return r;
    /* One that was purged before there were numbers has only the time. */
    *ret_number = agx_schema_number_of(agx_str_skip(agx_buf_peek(&got), sizeof(uint64_t)));
    return 1;
}

int agx_schema_get_spec(struct agx_store *st, uint64_t number, struct agx_buf *out,
                        struct agx_error **err)
{
    struct agx_key k = agx_key_of(number);

    return agx_store_get(st, AGX_TABLE_SPECS, agx_key_str(&k), out, err);
}

int agx_schema_get_life(struct agx_store *st, uint64_t number, struct agx_buf *out,
                        struct agx_error **err)
{
    struct agx_key k = agx_key_of(number);

    return agx_store_get(st, AGX_TABLE_LIVES, agx_key_str(&k), out, err);
}

int agx_schema_get_exec(struct agx_store *st, const char *exec_id, struct agx_exec *ret,
                        struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_store_get(st, AGX_TABLE_EXECS, agx_str_from(exec_id), &got, err);

    if (r <= 0)
        return r;
    r = agx_exec_record_decode(ret, agx_buf_peek(&got), err);
    return r < 0 ? agx_error_wrap(err, r, "read exec '%s'", exec_id) : 1;
}

static int get_event(struct agx_store *st, const struct agx_key *k, struct agx_event_record *ret,
                     struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_store_get(st, AGX_TABLE_EVENTS, agx_key_str(k), &got, err);

    if (r <= 0)
        return r;
    r = agx_event_record_decode(ret, agx_buf_peek(&got), err);
    return r < 0 ? r : 1;
}

int agx_schema_get_event(struct agx_store *st, uint64_t number, uint64_t sequence,
                         struct agx_event_record *ret, struct agx_error **err)
{
    struct agx_key k = agx_key_of_event(number, sequence);
    int r = get_event(st, &k, ret, err);

    return r < 0 ? agx_error_wrap(err, r, "read event %" PRIu64, sequence) : r;
}

/* One place in `positions`. */
struct place {
    uint64_t position;
    struct agx_key event;
};

static int copy_place(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct place *p = user;

    if (key.len != sizeof(uint64_t) || value.len > sizeof(p->event.bytes))
        return agx_error_set(err, AGX_DATA_LOSS, "a position in the store is none");
    p->position = get_u64(key.ptr);
    if (value.len > 0)
        memcpy(p->event.bytes, value.ptr, value.len);
    p->event.len = value.len;
    return 0;
}

int agx_schema_next_event(struct agx_store *st, uint64_t after, uint64_t last,
                          struct agx_event_record *ret, struct agx_error **err)
{
    struct agx_key to = agx_key_of(last + 1);

    while (after < last) {
        struct agx_key from = agx_key_of(after + 1);
        struct place p = { 0 };
        struct agx_store_range range = { .table = AGX_TABLE_POSITIONS,
                                         .from = agx_key_str(&from),
                                         .to = agx_key_str(&to),
                                         .limit = 1 };
        int r = agx_store_scan(st, &range, copy_place, &p, err);

        if (r < 0 || p.position == 0)
            return r;
        r = get_event(st, &p.event, ret, err);
        if (r != 0)
            return r < 0 ? agx_error_wrap(err, r, "read the event at position %" PRIu64, p.position)
                         : r;
        after = p.position; /* its sandbox was purged between the two reads */
    }
    return 0;
}

int agx_schema_last_position(struct agx_store *st, uint64_t *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf mark = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    struct place p = { 0 };
    struct agx_store_range range = { .table = AGX_TABLE_POSITIONS, .backward = true, .limit = 1 };
    int r = agx_store_scan(st, &range, copy_place, &p, err);

    if (r == 0)
        r = agx_store_get(st, AGX_TABLE_MARKS, AGX_MARK_POSITION, &mark, err);
    if (r < 0)
        return agx_error_wrap(err, r, "read the newest position");
    *ret = p.position;
    if (mark.len == sizeof(uint64_t))
        *ret = AGX_MAX(*ret, get_u64((const char *)mark.data));
    return 0;
}

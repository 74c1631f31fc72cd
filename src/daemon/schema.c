/* schema.c: keys and records. A key of two parts has a NUL between them, which no id contains. */
#include "daemon/schema.h"

#include "base/limits.h"

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
};

const struct agx_store_layout agx_schema_layout = { .tables = tables,
                                                    .n_tables = AGX_TABLE_COUNT,
                                                    .version = 1 };

#define MARK_POSITION AGX_STR("position")

/* Room for two ids with a NUL between them, or for an id, a NUL and a number. */
struct key {
    char bytes[2 * AGX_IDENT_MAX + 1];
    size_t len;
};

static void put_u64(char *to, uint64_t n)
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

static struct agx_str key_str(const struct key *k)
{
    return (struct agx_str){ k->bytes, k->len };
}

/* The id with a NUL behind it: in front of all keys that begin with it. An id that is none (too
 * long for one) has no keys. */
static struct key key_of(const char *id)
{
    struct key k = { .len = strlen(id) };

    if (k.len > AGX_IDENT_MAX)
        return (struct key){ 0 };
    memcpy(k.bytes, id, k.len);
    k.bytes[k.len++] = '\0';
    return k;
}

static struct key key_of_number(const char *id, uint64_t n)
{
    struct key k = key_of(id);

    put_u64(k.bytes + k.len, n);
    k.len += sizeof(n);
    return k;
}

static struct key key_of_pair(const char *id, const char *second)
{
    struct key k = key_of(id);
    size_t len = AGX_MIN(strlen(second), sizeof(k.bytes) - k.len);

    memcpy(k.bytes + k.len, second, len);
    k.len += len;
    return k;
}

static struct key key_of_position(uint64_t position)
{
    struct key k = { .len = sizeof(position) };

    put_u64(k.bytes, position);
    return k;
}

/* All keys that begin with the id and a NUL. */
static void range_of(const char *id, struct key *ret_from, struct key *ret_to)
{
    *ret_from = *ret_to = key_of(id);
    ret_to->bytes[ret_to->len - 1] = '\1';
}

static void spoil(struct agx_store_batch *b, int r, const char *what, const char *id)
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
            spoil((b), r_, (what), (id));                                                          \
        else                                                                                       \
            agx_store_batch_put((b), (table), (key), agx_buf_peek(&out));                          \
    } while (0)

static void reserve(struct agx_store_batch *b, enum agx_table table, const char *id,
                    const struct agx_stamp *when)
{
    char at[sizeof(uint64_t)];

    put_u64(at, (uint64_t)when->wall_ns);
    agx_store_batch_expect_absent(b, table, agx_str_from(id));
    agx_store_batch_put(b, table, agx_str_from(id), agx_str_bytes(at, sizeof(at)));
}

void agx_schema_put_sandbox(struct agx_store_batch *b, const struct agx_sandbox *sb)
{
    reserve(b, AGX_TABLE_SANDBOX_IDS, sb->id, &sb->created);
    PUT_ENCODED(b, AGX_TABLE_SPECS, agx_str_from(sb->id), "sandbox", sb->id,
                agx_sandbox_record_encode(&out, sb));
}

void agx_schema_put_life(struct agx_store_batch *b, const struct agx_sandbox *sb)
{
    PUT_ENCODED(b, AGX_TABLE_LIVES, agx_str_from(sb->id), "life of sandbox", sb->id,
                agx_life_record_encode(&out, &sb->life));
}

void agx_schema_reserve_exec(struct agx_store_batch *b, const struct agx_exec *x)
{
    struct key owner = key_of_pair(x->sandbox_id, x->id);

    reserve(b, AGX_TABLE_EXEC_IDS, x->id, &x->created);
    agx_store_batch_put(b, AGX_TABLE_SANDBOX_EXECS, key_str(&owner), AGX_STR(""));
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

void agx_schema_put_event(struct agx_store_batch *b, const char *sandbox_id, uint64_t position,
                          const struct agx_event *event)
{
    struct key k = key_of_number(sandbox_id, event->sequence), p = key_of_position(position);
    /* The record borrows: encoding only reads it. */
    struct agx_event_record record = { .position = position,
                                       .sandbox_id = (char *)sandbox_id,
                                       .event = *event };

    PUT_ENCODED(b, AGX_TABLE_EVENTS, key_str(&k), "event of sandbox", sandbox_id,
                agx_event_record_encode(&out, &record));
    agx_store_batch_put(b, AGX_TABLE_POSITIONS, key_str(&p), key_str(&k));
}

void agx_schema_purge(struct agx_store_batch *b, const char *sandbox_id, uint64_t position)
{
    struct key newest = key_of_position(position);

    agx_store_batch_put(b, AGX_TABLE_MARKS, MARK_POSITION, key_str(&newest));
    agx_store_batch_delete(b, AGX_TABLE_SPECS, agx_str_from(sandbox_id));
    agx_store_batch_delete(b, AGX_TABLE_LIVES, agx_str_from(sandbox_id));
    agx_store_batch_put(b, AGX_TABLE_PURGES, agx_str_from(sandbox_id), AGX_STR(""));
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
        struct key p = key_of_position(record.position);

        agx_store_batch_delete(page->batch, AGX_TABLE_POSITIONS, key_str(&p));
    }
    agx_store_batch_delete(page->batch, AGX_TABLE_EVENTS, key);
    page->n++;
    agx_error_free(unreadable);
    agx_event_record_done(&record);
    return 0;
}

static int purge_exec(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    size_t id = agx_str_find(key, '\0');
    struct page *page = user;

    (void)value;
    (void)err;
    if (id < key.len)
        agx_store_batch_delete(page->batch, AGX_TABLE_EXECS, agx_str_skip(key, id + 1));
    agx_store_batch_delete(page->batch, AGX_TABLE_SANDBOX_EXECS, key);
    page->n++;
    return 0;
}

static int take_id(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    char *id = user;

    (void)value;
    if (key.len > AGX_IDENT_MAX)
        return agx_error_set(err, AGX_DATA_LOSS, "an id of %zu bytes is to be purged", key.len);
    memcpy(id, key.ptr, key.len);
    id[key.len] = '\0';
    return 1;
}

int agx_schema_purge_page(struct agx_store *st, struct agx_store_batch *b, size_t limit,
                          struct agx_error **err)
{
    struct agx_store_range range = { .table = AGX_TABLE_PURGES, .limit = 1 };
    struct page page = { .batch = b };
    struct agx_error *damaged = NULL;
    char id[AGX_IDENT_MAX + 1] = "";
    struct key from, to;
    int r = agx_store_scan(st, &range, take_id, id, err);

    if (r < 0 || id[0] == '\0')
        return r;
    range_of(id, &from, &to);
    range = (struct agx_store_range){
        .table = AGX_TABLE_EVENTS, .from = key_str(&from), .to = key_str(&to), .limit = limit
    };
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
        agx_store_batch_delete(b, AGX_TABLE_PURGES, agx_str_from(id));
    return 1;
}

int agx_schema_is_reserved(struct agx_store *st, enum agx_table table, const char *id,
                           struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);

    return agx_store_get(st, table, agx_str_from(id), &got, err);
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

static int get_event(struct agx_store *st, const struct key *k, struct agx_event_record *ret,
                     struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_store_get(st, AGX_TABLE_EVENTS, key_str(k), &got, err);

    if (r <= 0)
        return r;
    r = agx_event_record_decode(ret, agx_buf_peek(&got), err);
    return r < 0 ? r : 1;
}

int agx_schema_get_event(struct agx_store *st, const char *sandbox_id, uint64_t sequence,
                         struct agx_event_record *ret, struct agx_error **err)
{
    struct key k = key_of_number(sandbox_id, sequence);
    int r = get_event(st, &k, ret, err);

    return r < 0 ? agx_error_wrap(err, r, "read event %" PRIu64 " of sandbox '%s'", sequence,
                                  sandbox_id)
                 : r;
}

/* One place in `positions`. */
struct place {
    uint64_t position;
    struct key event;
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
    struct key to = key_of_position(last + 1);

    while (after < last) {
        struct key from = key_of_position(after + 1);
        struct place p = { 0 };
        struct agx_store_range range = {
            .table = AGX_TABLE_POSITIONS, .from = key_str(&from), .to = key_str(&to), .limit = 1
        };
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
        r = agx_store_get(st, AGX_TABLE_MARKS, MARK_POSITION, &mark, err);
    if (r < 0)
        return agx_error_wrap(err, r, "read the newest position");
    *ret = p.position;
    if (mark.len == sizeof(uint64_t))
        *ret = AGX_MAX(*ret, get_u64((const char *)mark.data));
    return 0;
}

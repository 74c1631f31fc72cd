/*
 * store_mem.c: a store in memory: one sorted array per table.
 *
 * Invariant: a batch allocates all that it needs before it changes anything, so it is applied whole
 * or leaves no trace, like one on disk.
 */
#include "store/store_mem.h"

#include "base/fd.h"
#include "base/limits.h"
#include "loop/uverr.h"
#include "store/store_internal.h"

#include <assert.h>

#include "base/banned.h"

struct row {
    size_t key_len, value_len;
    char bytes[]; /* the key, then the value */
};

struct table {
    struct row **rows; /* sorted by key; owned */
    size_t len, cap;
};

struct store_mem {
    struct agx_store base;
    uv_timer_t soon; /* fires in the next turn; running while there is work */
    struct agx_store_queue queue;
    struct agx_store_stats stats;
    enum agx_code fail_code;
    size_t n_fail;
    bool held;
    struct {
        agx_done_fn done;
        void *user;
        struct agx_error *error;
    } backup;
    agx_done_fn closed;
    void *closed_user;
    struct table tables[];
};

static struct store_mem *mem_of(struct agx_store *st)
{
    return container_of(st, struct store_mem, base);
}

static struct agx_str row_key(const struct row *r)
{
    return (struct agx_str){ r->bytes, r->key_len };
}

static struct agx_str row_value(const struct row *r)
{
    return (struct agx_str){ r->bytes + r->key_len, r->value_len };
}

/* Index of the first row whose key is not below `key`. */
static size_t table_find(const struct table *t, struct agx_str key)
{
    size_t low = 0, high = t->len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (agx_store_key_cmp(row_key(t->rows[mid]), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const struct row *table_get(const struct table *t, struct agx_str key)
{
    size_t at = table_find(t, key);

    return at < t->len && agx_str_eq(row_key(t->rows[at]), key) ? t->rows[at] : NULL;
}

/* The range is the rows [*ret_first, *ret_end). */
static void table_range(const struct table *t, struct agx_str from, struct agx_str to,
                        size_t *ret_first, size_t *ret_end)
{
    *ret_first = table_find(t, from);
    *ret_end = to.len > 0 ? AGX_MAX(table_find(t, to), *ret_first) : t->len;
}

static void table_remove(struct table *t, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        free(t->rows[i]);
    if (end > first)
        memmove(t->rows + first, t->rows + end, (t->len - end) * sizeof(struct row *));
    t->len -= end - first;
}

/* Cannot fail: table_reserve() made room. */
static void table_put(struct table *t, struct row *r)
{
    size_t at;

    assert(r);
    at = table_find(t, row_key(r));
    if (at < t->len && agx_str_eq(row_key(t->rows[at]), row_key(r))) {
        free(t->rows[at]);
        t->rows[at] = r;
        return;
    }
    memmove(t->rows + at + 1, t->rows + at, (t->len - at) * sizeof(struct row *));
    t->rows[at] = r;
    t->len++;
}

static bool table_reserve(struct table *t, size_t n)
{
    struct row **rows;
    size_t cap = AGX_MAX(t->len + n, 2 * t->cap);

    if (t->cap - t->len >= n)
        return true;
    rows = realloc(t->rows, cap * sizeof(struct row *));
    if (!rows)
        return false;
    t->rows = rows;
    t->cap = cap;
    return true;
}

static struct row *row_new(const struct agx_store_change *c)
{
    struct row *r = malloc(sizeof(*r) + c->key.len + c->value.len);

    if (!r)
        return NULL;
    r->key_len = c->key.len;
    r->value_len = c->value.len;
    memcpy(r->bytes, c->key.ptr, c->key.len);
    memcpy(r->bytes + c->key.len, c->value.ptr, c->value.len);
    return r;
}

static int check_expectations(struct store_mem *m, struct agx_store_batch *b)
{
    struct agx_store_change c;

    for (size_t at = 0; agx_store_batch_next(b, &at, &c);) {
        if (c.kind != AGX_STORE_EXPECT_ABSENT)
            continue;
        if (table_get(&m->tables[c.table], c.key))
            return agx_store_batch_refuse(&c, m->base.layout->tables[c.table], &b->error);
    }
    return 0;
}

/* The rows of a batch, made before anything is changed. */
struct new_rows {
    struct row **rows;
    size_t len;
};

static bool make_rows(struct store_mem *m, const struct agx_store_batch *b, struct new_rows *n)
{
    struct agx_store_change c;
    size_t puts = 0;

    for (size_t at = 0; agx_store_batch_next(b, &at, &c);)
        puts += c.kind == AGX_STORE_PUT;
    n->rows = calloc(puts + 1, sizeof(struct row *));
    if (!n->rows)
        return false;
    for (size_t at = 0; agx_store_batch_next(b, &at, &c);) {
        if (c.kind != AGX_STORE_PUT)
            continue;
        n->rows[n->len] = row_new(&c);
        if (!n->rows[n->len] || !table_reserve(&m->tables[c.table], puts)) {
            free(n->rows[n->len]);
            return false;
        }
        n->len++;
    }
    return true;
}

static void change(struct store_mem *m, const struct agx_store_change *c)
{
    struct table *t = &m->tables[c->table];
    size_t first, end;

    if (c->kind == AGX_STORE_DELETE && table_get(t, c->key)) {
        first = table_find(t, c->key);
        table_remove(t, first, first + 1);
    } else if (c->kind == AGX_STORE_DELETE_RANGE) {
        table_range(t, c->key, c->value, &first, &end);
        table_remove(t, first, end);
    }
}

static int apply(struct store_mem *m, struct agx_store_batch *b)
{
    struct new_rows made = { 0 };
    struct agx_store_change c;
    size_t used = 0;
    int r = 0;

    if (make_rows(m, b, &made)) {
        for (size_t at = 0; agx_store_batch_next(b, &at, &c);) {
            if (c.kind == AGX_STORE_PUT)
                table_put(&m->tables[c.table], made.rows[used++]);
            else
                change(m, &c);
        }
    } else {
        r = agx_error_set(&b->error, AGX_RESOURCE_EXHAUSTED, "store: no memory for a batch");
        while (made.len > 0)
            free(made.rows[--made.len]);
    }
    free(made.rows);
    return r;
}

static void store_batch(struct store_mem *m, struct agx_store_batch *b)
{
    if (m->n_fail > 0) {
        m->n_fail--;
        m->stats.failed++;
        (void)agx_error_set(&b->error, m->fail_code, "store: made to fail");
    } else if (check_expectations(m, b) < 0) {
        m->stats.refused++;
    } else if (apply(m, b) < 0) {
        m->stats.failed++;
    } else {
        m->stats.batches++;
        m->stats.bytes += b->bytes.len;
    }
}

static void on_closed(uv_handle_t *h)
{
    struct store_mem *m = container_of((uv_timer_t *)h, struct store_mem, soon);

    if (m->closed)
        m->closed(m->closed_user, NULL);
    for (size_t i = 0; i < m->base.layout->n_tables; i++) {
        table_remove(&m->tables[i], 0, m->tables[i].len);
        free(m->tables[i].rows);
    }
    free(m);
}

static void finish_backup(struct store_mem *m)
{
    agx_done_fn done = AGX_TAKE_PTR(m->backup.done);

    if (done)
        done(m->backup.user, AGX_TAKE_PTR(m->backup.error));
}

static void on_soon(uv_timer_t *t)
{
    struct store_mem *m = container_of(t, struct store_mem, soon);
    struct agx_store_queue now = { 0 };
    struct agx_store_batch *b;
    uint64_t before;

    if (!m->held)
        agx_store_queue_move(&now, &m->queue);
    before = m->stats.batches;
    while ((b = agx_store_queue_pop(&now))) {
        store_batch(m, b);
        agx_store_finish(&m->base, b);
    }
    m->stats.commits += m->stats.batches > before;
    m->stats.group_max = AGX_MAX(m->stats.group_max, m->stats.batches - before);
    finish_backup(m);
    if (m->base.closing && m->queue.len == 0 && !uv_is_closing((uv_handle_t *)t))
        uv_close((uv_handle_t *)t, on_closed);
}

static void run_soon(struct store_mem *m)
{
    (void)uv_timer_start(&m->soon, on_soon, 0, 0);
}

static void mem_commit(struct agx_store *st, struct agx_store_batch *b)
{
    struct store_mem *m = mem_of(st);

    agx_store_queue_push(&m->queue, b);
    run_soon(m);
}

static int mem_get(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
                   struct agx_error **err)
{
    const struct row *r = table_get(&mem_of(st)->tables[table], key);

    if (!r)
        return 0;
    if (agx_buf_append(out, row_value(r)) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "store: a value of %zu bytes is too large here", r->value_len);
    return 1;
}

static int mem_scan(struct agx_store *st, const struct agx_store_range *range,
                    agx_store_visit_fn visit, void *user, struct agx_error **err)
{
    const struct table *t = &mem_of(st)->tables[range->table];
    size_t first, end, n;
    int r = 0;

    table_range(t, range->from, range->to, &first, &end);
    n = end - first;
    if (range->limit > 0)
        n = AGX_MIN(n, range->limit);
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct row *row = t->rows[range->backward ? end - 1 - i : first + i];

        r = visit(user, row_key(row), row_value(row), err);
    }
    return AGX_MIN(r, 0);
}

/* Lines of table and key: enough to see in a test that something was written. */
static int write_backup(struct store_mem *m, int fd, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_MESSAGE_MAX);

    for (size_t i = 0; i < m->base.layout->n_tables; i++) {
        for (size_t k = 0; k < m->tables[i].len; k++) {
            struct agx_str key = row_key(m->tables[i].rows[k]);

            if (agx_buf_printf(&out, "%s %.*s\n", m->base.layout->tables[i], AGX_STR_ARG(key)) < 0)
                return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "store: no memory to back up");
        }
    }
    return agx_fd_write_all(fd, agx_buf_peek(&out), err);
}

static int mem_backup(struct agx_store *st, int fd, agx_done_fn done, void *user,
                      struct agx_error **err)
{
    struct store_mem *m = mem_of(st);

    if (m->backup.done)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "store: another backup is running");
    m->backup.done = done;
    m->backup.user = user;
    (void)write_backup(m, fd, &m->backup.error);
    run_soon(m);
    return 0;
}

static void mem_stats(struct agx_store *st, struct agx_store_stats *ret)
{
    *ret = mem_of(st)->stats;
}

static void mem_close(struct agx_store *st, agx_done_fn closed, void *user)
{
    struct store_mem *m = mem_of(st);

    m->held = false;
    m->closed = closed;
    m->closed_user = user;
    run_soon(m);
}

static const struct agx_store_ops mem_ops = {
    .name = "mem",
    .commit = mem_commit,
    .get = mem_get,
    .scan = mem_scan,
    .backup = mem_backup,
    .stats = mem_stats,
    .close = mem_close,
};

int agx_store_mem_open(struct agx_loop *l, const struct agx_store_layout *layout,
                       struct agx_store **ret_store, struct agx_error **err)
{
    struct store_mem *m = calloc(1, sizeof(*m) + layout->n_tables * sizeof(struct table));
    int r;

    if (!m)
        return agx_error_errno(err, ENOMEM, "open store");
    r = uv_timer_init(agx_loop_uv(l), &m->soon);
    if (r < 0) {
        free(m);
        return agx_uverr_set(err, r, "open store");
    }
    m->base = (struct agx_store){
        .ops = &mem_ops, .layout = layout, .loop = l, .queue_max = AGX_STORE_QUEUE_MAX
    };
    *ret_store = &m->base;
    return 0;
}

void agx_store_mem_fail(struct agx_store *st, enum agx_code code, size_t n)
{
    assert(st->ops == &mem_ops);
    mem_of(st)->fail_code = code;
    mem_of(st)->n_fail = n;
}

void agx_store_mem_hold(struct agx_store *st, bool on)
{
    assert(st->ops == &mem_ops);
    mem_of(st)->held = on;
    if (!on)
        run_soon(mem_of(st));
}

/*
 * store_batch.c: a batch is one buffer: for each change a header, the key and the value. Headers
 * are copied in and out, so they need no alignment.
 */
#include "store/store_batch.h"

#include "base/limits.h"

#include <assert.h>

#include "base/banned.h"

struct header {
    uint32_t kind, table, key_len, value_len;
};

struct agx_store_batch *agx_store_batch_new(void)
{
    struct agx_store_batch *b = calloc(1, sizeof(*b));

    if (b)
        b->bytes.max = AGX_STORE_BATCH_MAX;
    return b;
}

struct agx_store_batch *agx_store_batch_free(struct agx_store_batch *b)
{
    if (!b)
        return NULL;
    agx_error_free(b->error);
    agx_buf_done(&b->bytes);
    free(b);
    return NULL;
}

/* Reserves room for the whole change first, so that a batch never has half a change. */
static void store_batch_add(struct agx_store_batch *b, const struct agx_store_change *c)
{
    struct header h = { c->kind, c->table, (uint32_t)c->key.len, (uint32_t)c->value.len };

    if (!b || b->error)
        return;
    if (c->value.len > AGX_STORE_BATCH_MAX ||
        agx_buf_reserve(&b->bytes, sizeof(h) + c->key.len + c->value.len) < 0) {
        (void)agx_error_set(&b->error, AGX_RESOURCE_EXHAUSTED,
                            "a batch of more than %zu bytes, or no memory for one",
                            (size_t)AGX_STORE_BATCH_MAX);
        return;
    }
    (void)!agx_buf_append(&b->bytes, agx_str_bytes(&h, sizeof(h)));
    (void)!agx_buf_append(&b->bytes, c->key);
    (void)!agx_buf_append(&b->bytes, c->value);
}

static void add_key(struct agx_store_batch *b, const struct agx_store_change *c)
{
    if (!b || b->error)
        return;
    if (c->key.len == 0 || c->key.len > AGX_STORE_KEY_MAX) {
        (void)agx_error_set(&b->error, AGX_INVALID_ARGUMENT,
                            "a key of %zu bytes, which must be 1 to %d", c->key.len,
                            AGX_STORE_KEY_MAX);
        return;
    }
    store_batch_add(b, c);
}

void agx_store_batch_put(struct agx_store_batch *b, unsigned table, struct agx_str key,
                         struct agx_str value)
{
    add_key(b, &(struct agx_store_change){ AGX_STORE_PUT, table, key, value });
}

void agx_store_batch_delete(struct agx_store_batch *b, unsigned table, struct agx_str key)
{
    add_key(b, &(struct agx_store_change){ AGX_STORE_DELETE, table, key, { NULL, 0 } });
}

void agx_store_batch_delete_range(struct agx_store_batch *b, unsigned table, struct agx_str from,
                                  struct agx_str to)
{
    if (b && !b->error && (from.len > AGX_STORE_KEY_MAX || to.len > AGX_STORE_KEY_MAX))
        (void)agx_error_set(&b->error, AGX_INVALID_ARGUMENT,
                            "an end of a range of more than %d bytes", AGX_STORE_KEY_MAX);
    store_batch_add(b, &(struct agx_store_change){ AGX_STORE_DELETE_RANGE, table, from, to });
}

void agx_store_batch_expect_absent(struct agx_store_batch *b, unsigned table, struct agx_str key)
{
    add_key(b, &(struct agx_store_change){ AGX_STORE_EXPECT_ABSENT, table, key, { NULL, 0 } });
}

bool agx_store_batch_next(const struct agx_store_batch *b, size_t *at, struct agx_store_change *ret)
{
    struct agx_str rest = agx_str_skip(agx_buf_peek(&b->bytes), *at);
    struct header h;

    if (rest.len == 0)
        return false;
    assert(rest.len >= sizeof(h));
    memcpy(&h, rest.ptr, sizeof(h));
    rest = agx_str_skip(rest, sizeof(h));
    *ret = (struct agx_store_change){
        .kind = (enum agx_store_kind)h.kind,
        .table = h.table,
        .key = { rest.ptr, h.key_len },
        .value = { rest.ptr + h.key_len, h.value_len },
    };
    *at += sizeof(h) + h.key_len + h.value_len;
    return true;
}

int agx_store_batch_refuse(const struct agx_store_change *c, const char *table,
                           struct agx_error **err)
{
    return agx_error_set(err, AGX_ALREADY_EXISTS, "'%.*s' exists already in '%s'",
                         AGX_STR_ARG(c->key), table);
}

void agx_store_queue_push(struct agx_store_queue *q, struct agx_store_batch *b)
{
    agx_list_push_back(&q->batches, &b->node);
    q->len++;
}

struct agx_store_batch *agx_store_queue_peek(const struct agx_store_queue *q)
{
    return AGX_LIST_FIRST(&q->batches, struct agx_store_batch, node);
}

struct agx_store_batch *agx_store_queue_pop(struct agx_store_queue *q)
{
    struct agx_store_batch *b = AGX_LIST_TAKE(&q->batches, struct agx_store_batch, node);

    if (b)
        q->len--;
    return b;
}

void agx_store_queue_move(struct agx_store_queue *to, struct agx_store_queue *from)
{
    agx_list_move(&to->batches, &from->batches);
    to->len += from->len;
    from->len = 0;
}

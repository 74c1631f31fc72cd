/*
 * store_batch.h: changes that are stored together or not at all.
 *
 *     struct agx_store_batch *b = agx_store_batch_new();
 *     agx_store_batch_expect_absent(b, TABLE_IDS, id);
 *     agx_store_batch_put(b, TABLE_IDS, id, AGX_STR(""));
 *     agx_store_batch_put(b, TABLE_SANDBOXES, id, record);
 *     r = agx_store_commit(st, &b, on_stored, op, err);
 *     agx_store_batch_free(b);          // NULL if it was taken
 *
 * Filling does not fail: an error (no memory, an invalid key, too many bytes) marks the batch, and
 * the commit returns it. Even a NULL batch (no memory) may be filled.
 *
 * All expectations are checked first, then the changes are applied in their order.
 */
#ifndef AGX_STORE_STORE_BATCH_H
#define AGX_STORE_STORE_BATCH_H

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"

struct agx_store_batch {
    struct agx_buf bytes;    /* the changes, one after the other */
    struct agx_error *error; /* what spoilt it; later: why it was not stored */
    /* What follows belongs to the store that took it. */
    struct agx_list_node node; /* in a struct agx_store_queue */
    agx_done_fn done;
    void *user;
};

enum agx_store_kind {
    AGX_STORE_PUT,
    AGX_STORE_DELETE,
    AGX_STORE_DELETE_RANGE,
    AGX_STORE_EXPECT_ABSENT,
};

struct agx_store_change {
    enum agx_store_kind kind;
    unsigned table;
    struct agx_str key;   /* DELETE_RANGE: the first */
    struct agx_str value; /* DELETE_RANGE: the end, exclusive */
};

struct agx_store_batch *agx_store_batch_new(void);
struct agx_store_batch *agx_store_batch_free(struct agx_store_batch *b);

/* Copies key and value. A key has 1 to AGX_STORE_KEY_MAX bytes; the value may be empty. */
void agx_store_batch_put(struct agx_store_batch *b, unsigned table, struct agx_str key,
                         struct agx_str value);

/* No effect when there is no such key. */
void agx_store_batch_delete(struct agx_store_batch *b, unsigned table, struct agx_str key);

/* Deletes all records with from <= key < to; an empty bound is unbounded. */
void agx_store_batch_delete_range(struct agx_store_batch *b, unsigned table, struct agx_str from,
                                  struct agx_str to);

/* The batch is refused with AGX_ALREADY_EXISTS when the key exists. */
void agx_store_batch_expect_absent(struct agx_store_batch *b, unsigned table, struct agx_str key);

/* The changes one after the other, from *at = 0 on; false at the end. Borrowed from the batch. */
bool agx_store_batch_next(const struct agx_store_batch *b, size_t *at,
                          struct agx_store_change *ret);

/* Makes the error of a failed expectation; `table` is the change's table name. */
int agx_store_batch_refuse(const struct agx_store_change *c, const char *table,
                           struct agx_error **err);

static inline void agx_store_batch_freep(struct agx_store_batch **b)
{
    *b = agx_store_batch_free(*b);
}

/* Batches in their order. All zero: none. */
struct agx_store_queue {
    struct agx_list batches; /* of struct agx_store_batch */
    size_t len;
};

void agx_store_queue_push(struct agx_store_queue *q, struct agx_store_batch *b);
/* The first, or NULL; borrowed. */
struct agx_store_batch *agx_store_queue_peek(const struct agx_store_queue *q);
/* Takes it out. */
struct agx_store_batch *agx_store_queue_pop(struct agx_store_queue *q);
/* Appends all of `from` to `to`. */
void agx_store_queue_move(struct agx_store_queue *to, struct agx_store_queue *from);

#endif

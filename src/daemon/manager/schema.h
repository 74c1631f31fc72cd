/*
 * schema.h: what the daemon's store has: its tables, their keys, and the records in them.
 *
 * Records of a sandbox have its number in their keys, not its id: numbers rise, so what is new
 * stands together at the end of a table, in few pages, where ids are all over it. The number is the
 * position of the sandbox's first event, and is no other's ever.
 *
 * Writing fills a batch and cannot fail: what goes wrong spoils the batch, and the commit says it.
 * docs/design/daemon.md has the table of tables.
 */
#ifndef AGX_DAEMON_MANAGER_SCHEMA_H
#define AGX_DAEMON_MANAGER_SCHEMA_H

#include "core/exec.h"
#include "store/store.h"
#include "store/store_batch.h"
#include "wire/record.h"

enum agx_schema_table {
    AGX_TABLE_SANDBOX_IDS,
    AGX_TABLE_EXEC_IDS,
    AGX_TABLE_SPECS,
    AGX_TABLE_LIVES,
    AGX_TABLE_EVENTS,
    AGX_TABLE_POSITIONS,
    AGX_TABLE_EXECS,
    AGX_TABLE_SANDBOX_EXECS,
    AGX_TABLE_ACTIVE_EXECS,
    AGX_TABLE_MARKS,
    AGX_TABLE_PURGES,
    AGX_TABLE_WRITABLES,
    AGX_TABLE_COUNT,
};

extern const struct agx_store_layout agx_schema_layout;

/* A new sandbox: reserves its id for ever and keeps its spec. The batch is refused when the id was
 * reserved before. */
void agx_schema_put_sandbox(struct agx_store_batch *b, const struct agx_sandbox *sb);
void agx_schema_put_life(struct agx_store_batch *b, const struct agx_sandbox *sb);
/* The same for an exec. */
void agx_schema_reserve_exec(struct agx_store_batch *b, const struct agx_sandbox *sb,
                             const struct agx_exec *x);
void agx_schema_put_exec(struct agx_store_batch *b, const struct agx_exec *x);
void agx_schema_put_event(struct agx_store_batch *b, const struct agx_sandbox *sb,
                          uint64_t position, const struct agx_event *event);
/* The sandbox goes, but for its reserved id; its events and execs are noted down for
 * agx_schema_purge_page(). `position` is the newest of all: it is kept, since the event that had it
 * will go. */
void agx_schema_purge(struct agx_store_batch *b, const struct agx_sandbox *sb, uint64_t position);
/* Removes up to `limit` events and as many execs of a purged sandbox. 1: there may be more; 0:
 * there was nothing. */
int agx_schema_purge_page(struct agx_store *st, struct agx_store_batch *b, size_t limit,
                          struct agx_error **err) AGX_MUST_CHECK;

/* 1: the id was used, `table` says for what; 0: it is free. */
int agx_schema_is_reserved(struct agx_store *st, enum agx_schema_table table, const char *id,
                           struct agx_error **err) AGX_MUST_CHECK;

/* 1: the id was used, and the sandbox has, or had, that number; 0: it is free. */
int agx_schema_find_number(struct agx_store *st, const char *sandbox_id, uint64_t *ret_number,
                           struct agx_error **err) AGX_MUST_CHECK;
/* 1: its spec, or its life, was appended to `out`. 0: there is none. */
int agx_schema_get_spec(struct agx_store *st, uint64_t number, struct agx_buf *out,
                        struct agx_error **err) AGX_MUST_CHECK;
int agx_schema_get_life(struct agx_store *st, uint64_t number, struct agx_buf *out,
                        struct agx_error **err) AGX_MUST_CHECK;
/* What the key of a spec says; 0: it is none. */
uint64_t agx_schema_number_of(struct agx_str key);

/* 1: the caller owns what was read; 0: there is none. */
int agx_schema_get_exec(struct agx_store *st, const char *exec_id, struct agx_exec *ret,
                        struct agx_error **err) AGX_MUST_CHECK;
int agx_schema_get_event(struct agx_store *st, uint64_t number, uint64_t sequence,
                         struct agx_event_record *ret, struct agx_error **err) AGX_MUST_CHECK;
/* The first event with a position in (after, last]. */
int agx_schema_next_event(struct agx_store *st, uint64_t after, uint64_t last,
                          struct agx_event_record *ret, struct agx_error **err) AGX_MUST_CHECK;

/* The newest position ever given to an event; 0: none. */
int agx_schema_last_position(struct agx_store *st, uint64_t *ret,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif

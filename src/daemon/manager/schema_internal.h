/* schema_internal.h: keys, for schema.c and writables_store.c. */
#ifndef AGX_DAEMON_MANAGER_SCHEMA_INTERNAL_H
#define AGX_DAEMON_MANAGER_SCHEMA_INTERNAL_H

#include "core/ident.h"
#include "daemon/manager/schema.h"

/* In `marks`. */
#define AGX_MARK_POSITION AGX_STR("position")

/* Room for a number and an id. */
struct agx_key {
    char bytes[sizeof(uint64_t) + AGX_IDENT_MAX];
    size_t len;
};

void agx_key_put_u64(char *to, uint64_t n);

static inline struct agx_str agx_key_str(const struct agx_key *k)
{
    return (struct agx_str){ k->bytes, k->len };
}

/* Of a sandbox, or of a position; in front of all keys that begin with it. */
struct agx_key agx_key_of(uint64_t number);
struct agx_key agx_key_of_event(uint64_t number, uint64_t sequence);
struct agx_key agx_key_of_exec(uint64_t number, struct agx_str exec_id);

#endif

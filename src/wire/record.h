/*
 * record.h: the daemon's records as bytes for the store (agentix/store/v1/record.proto).
 *
 * Encoding appends to `out` and fails only with -AGX_RESOURCE_EXHAUSTED. Decoding returns
 * -AGX_DATA_LOSS for malformed records; after a failure there is nothing to free.
 */
#ifndef AGX_WIRE_RECORD_H
#define AGX_WIRE_RECORD_H

#include "base/buf.h"
#include "core/exec.h"

/* The immutable part of a sandbox: id, owner, created, spec. After decoding, `life` is that of a
 * new record until the mutable part is decoded too. */
int agx_sandbox_record_encode(struct agx_buf *out, const struct agx_sandbox *sb) AGX_MUST_CHECK;
int agx_sandbox_record_decode(struct agx_sandbox *sb, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;

/* The mutable part, except `running` and `active_execs`, which are NONE and 0 after decoding. `sb`
 * comes from the function above, and is unchanged after a failure. */
int agx_life_record_encode(struct agx_buf *out, const struct agx_life *life) AGX_MUST_CHECK;
int agx_life_record_decode(struct agx_sandbox *sb, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;

/* All except `running`, which is NONE after decoding. */
int agx_exec_record_encode(struct agx_buf *out, const struct agx_exec *e) AGX_MUST_CHECK;
int agx_exec_record_decode(struct agx_exec *e, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;

struct agx_event_record {
    uint64_t position; /* among the events of all sandboxes, from 1 */
    char *sandbox_id;
    struct agx_event event; /* never synthetic */
};

int agx_event_record_encode(struct agx_buf *out,
                            const struct agx_event_record *record) AGX_MUST_CHECK;
int agx_event_record_decode(struct agx_event_record *record, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_event_record_done(struct agx_event_record *record);

#endif

/*
 * record.h: what the daemon keeps, as bytes for the store (agentix/store/v1/record.proto).
 *
 * Encoding appends to `out` and fails only with -AGX_RESOURCE_EXHAUSTED. Decoding: what cannot be
 * one of ours is -AGX_DATA_LOSS; after a failure there is nothing to free.
 */
#ifndef AGX_WIRE_RECORD_H
#define AGX_WIRE_RECORD_H

#include "base/buf.h"
#include "core/exec.h"

/* What never changes of a sandbox: id, owner, created, spec. In what was read, `life` is that of a
 * record that was just made, until the other half was read too. */
int agx_sandbox_record_encode(struct agx_buf *out, const struct agx_sandbox *sb) AGX_MUST_CHECK;
int agx_sandbox_record_decode(struct agx_sandbox *sb, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;

/* What changes, all but `running` and `active_execs`, which are NONE and 0 in what was read. `sb`
 * comes from the function above, and stays as it was after a failure. */
int agx_life_record_encode(struct agx_buf *out, const struct agx_life *life) AGX_MUST_CHECK;
int agx_life_record_decode(struct agx_sandbox *sb, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;

/* All but `running`, which is NONE in what was read. */
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

/* tally.h: the quota of each uid: counts what a user has, against a limit. */
#ifndef AGX_DAEMON_TALLY_H
#define AGX_DAEMON_TALLY_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

enum agx_tally_kind { AGX_TALLY_SANDBOXES, AGX_TALLY_EXECS, AGX_TALLY_COUNT };

struct agx_tally {
    /* One row per uid that ever had something; few, since few users may connect. */
    struct agx_tally_row {
        uid_t uid;
        uint32_t n[AGX_TALLY_COUNT];
    } * rows;
    size_t len;
    uint32_t max[AGX_TALLY_COUNT]; /* 0: no limit */
};

/* May this uid have one more? -AGX_RESOURCE_EXHAUSTED with the limit and its key. */
int agx_tally_check(const struct agx_tally *t, uid_t uid, enum agx_tally_kind kind,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Sets `counted`, so that an object is counted only once. */
void agx_tally_add(struct agx_tally *t, uid_t uid, enum agx_tally_kind kind, bool *counted);
/* No effect unless it was counted. */
void agx_tally_drop(struct agx_tally *t, uid_t uid, enum agx_tally_kind kind, bool *counted);
/* Accepts NULL. */
void agx_tally_done(struct agx_tally *t);

#endif

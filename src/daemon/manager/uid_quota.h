/* uid_quota.h: the quota of each uid: counts what a user has, against a limit. */
#ifndef AGX_DAEMON_MANAGER_UID_QUOTA_H
#define AGX_DAEMON_MANAGER_UID_QUOTA_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

enum agx_uid_quota_kind { AGX_UID_QUOTA_SANDBOXES, AGX_UID_QUOTA_EXECS, AGX_UID_QUOTA_COUNT };

struct agx_uid_quota {
    /* One row per uid that ever had something; few, since few users may connect. */
    struct agx_uid_quota_row {
        uid_t uid;
        uint32_t n[AGX_UID_QUOTA_COUNT];
    } * rows;
    size_t len;
    uint32_t max[AGX_UID_QUOTA_COUNT]; /* 0: no limit */
};

/* May this uid have one more? -AGX_RESOURCE_EXHAUSTED with the limit and its key. */
int agx_uid_quota_check(const struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                        struct agx_error **err) AGX_MUST_CHECK;
/* Sets `counted`, so that an object is counted only once. */
void agx_uid_quota_add(struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                       bool *counted);
/* No effect unless it was counted. */
void agx_uid_quota_drop(struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                        bool *counted);
/* Accepts NULL. */
void agx_uid_quota_done(struct agx_uid_quota *t);

#endif

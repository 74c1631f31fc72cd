/* uid_quota.c: few rows, so a linear search. */
#include "daemon/manager/uid_quota.h"

#include "base/banned.h"

static const struct {
    const char *what, *key;
} kinds[AGX_UID_QUOTA_COUNT] = {
    [AGX_UID_QUOTA_SANDBOXES] = { "sandboxes that are not deleted", "limits.sandboxes_per_uid" },
    [AGX_UID_QUOTA_EXECS] = { "active execs", "limits.execs_per_uid" },
};

static struct agx_uid_quota_row *uid_quota_find(const struct agx_uid_quota *t, uid_t uid)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->rows[i].uid == uid)
            return &t->rows[i];
    return NULL;
}

int agx_uid_quota_check(const struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                        struct agx_error **err)
{
    const struct agx_uid_quota_row *row = uid_quota_find(t, uid);

    if (t->max[kind] == 0 || !row || row->n[kind] < t->max[kind])
        return 0;
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                         "uid %ju has %u %s, which is the limit (configuration: %s)",
                         (uintmax_t)uid, row->n[kind], kinds[kind].what, kinds[kind].key);
}

void agx_uid_quota_add(struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                       bool *counted)
{
    struct agx_uid_quota_row *row = uid_quota_find(t, uid);

    if (*counted)
        return;
    if (!row) {
        row = reallocarray(t->rows, t->len + 1, sizeof(*row));
        if (!row)
            abort();
        t->rows = row;
        row = &t->rows[t->len++];
        *row = (struct agx_uid_quota_row){ .uid = uid };
    }
    row->n[kind]++;
    *counted = true;
}

void agx_uid_quota_drop(struct agx_uid_quota *t, uid_t uid, enum agx_uid_quota_kind kind,
                        bool *counted)
{
    if (!*counted)
        return;
    *counted = false;
    uid_quota_find(t, uid)->n[kind]--;
}

void agx_uid_quota_done(struct agx_uid_quota *t)
{
    if (!t)
        return;
    free(t->rows);
    *t = (struct agx_uid_quota){ 0 };
}

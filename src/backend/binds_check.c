/*
 * binds_check.c: the last look at mounts, right before they are shown.
 *
 * Paths were looked at when the create was accepted, but a create may wait, or be carried on days
 * later. What is left is the moment until the engine opens the path itself, which only it could
 * close.
 */
#include "backend/binds.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/banned.h"

/* Whom commands run as, by number. */
struct owner {
    uint64_t uid, gid;
    bool has_gid; /* else his groups are what the image's passwd says */
};

/* "1000", "1000:100", "0:0". False: it is a name, and only the image knows who that is. */
static bool parse_user(const char *user, struct owner *ret)
{
    struct agx_str rest = agx_str_from(user), who = { 0 };

    if (!agx_str_split(&rest, ':', &who) || !agx_parse_u64(who, UINT32_MAX, &ret->uid))
        return false;
    ret->has_gid = rest.ptr != NULL;
    return !ret->has_gid || agx_parse_u64(rest, UINT32_MAX, &ret->gid);
}

/* False where it is certain. By the mode alone: a list of access rights may say more. */
static bool may_write(const char *path, const struct owner *o)
{
    struct stat st;
    mode_t need, has;

    if (o->uid == 0 || stat(path, &st) < 0 ||
        lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0)
        return true;
    need = S_ISDIR(st.st_mode) ? W_OK | X_OK : W_OK;
    has = st.st_mode;
    if (st.st_uid == o->uid)
        has >>= 6;
    else if (!o->has_gid)
        has |= has >> 3;
    else if (st.st_gid == o->gid)
        has >>= 3;
    return (has & need) == need;
}

static int check_one(const struct agx_bind *b, const struct agx_sources *sources,
                     struct agx_error **err)
{
    struct agx_sources s = *sources;
    enum agx_path_kind kind;
    int r = agx_sources_look(&s, b->source, &kind, err);

    if (r < 0)
        return agx_error_wrap(err, r, "mount '%s'", b->target);
    if (kind == AGX_PATH_SYMLINK)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "mount source must not be a symlink: %s",
                             b->source);
    if (kind == AGX_PATH_OTHER)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "mount source must be a file, directory, or unix socket: %s",
                             b->source);
    return 0;
}

int agx_binds_check(const struct agx_binds *b, const struct agx_sources *sources, const char *user,
                    struct agx_error **err)
{
    struct owner owner = { 0 };
    bool known = user && parse_user(user, &owner);

    for (size_t i = 0; i < b->len; i++) {
        const struct agx_bind *one = &b->items[i];
        int r = check_one(one, sources, err);

        if (r < 0)
            return r;
        if (known && one->writable && !may_write(one->source, &owner))
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "mount '%s' is to be writable, but the image's user '%s' may not "
                                 "write to '%s': give it the right (chown, chmod or setfacl), or "
                                 "mount it read-only",
                                 one->target, user, one->source);
    }
    return 0;
}

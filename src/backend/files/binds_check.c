/*
 * binds_check.c: opens the sources of mounts, right before a sandbox gets them.
 *
 * Paths were checked when the create was accepted, but a create may wait, or continue days later.
 * From here on a source is its descriptor.
 */
#include "backend/files/binds.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/banned.h"

/* The user that commands run as, by number. */
struct owner {
    uint64_t uid, gid;
    bool has_gid; /* else the groups come from the image's passwd */
};

/* "1000", "1000:100", "0:0". False for a name, which only the image can resolve. */
static bool parse_user(const char *user, struct owner *ret)
{
    struct agx_str rest = agx_str_from(user), who = { 0 };

    if (!agx_str_split(&rest, ':', &who) || !agx_parse_u64(who, UINT32_MAX, &ret->uid))
        return false;
    ret->has_gid = rest.ptr != NULL;
    return !ret->has_gid || agx_parse_u64(rest, UINT32_MAX, &ret->gid);
}

/* Writes a path through which calls by name reach the file of an O_PATH descriptor. */
static void name_fd(int fd, char out[32])
{
    (void)snprintf(out, 32, "/proc/self/fd/%d", fd);
}

/* False only where it is certain. Reads the mode alone: an ACL may grant more. */
static bool may_write(const struct agx_hostpath *from, const struct owner *o)
{
    mode_t need = S_ISDIR(from->mode) ? W_OK | X_OK : W_OK, has = from->mode;
    char path[32];

    name_fd(from->fd, path);
    if (o->uid == 0 || getxattr(path, "system.posix_acl_access", NULL, 0) > 0)
        return true;
    if (from->uid == o->uid)
        has >>= 6;
    else if (!o->has_gid)
        has |= has >> 3;
    else if (from->gid == o->gid)
        has >>= 3;
    return (has & need) == need;
}

static int open_one(struct agx_bind *b, const struct agx_sources_asker *asker,
                    struct agx_error **err)
{
    enum agx_path_kind kind;
    int r = agx_sources_open(asker, b->source, false, &b->from, err);

    if (r < 0)
        return agx_error_wrap(err, r, "mount '%s'", b->target);
    kind = agx_sources_kind(b->from.mode);
    if (kind == AGX_PATH_SYMLINK)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "mount source must not be a symlink: %s",
                             b->source);
    if (kind == AGX_PATH_OTHER)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "mount source must be a file, directory, or unix socket: %s",
                             b->source);
    return 0;
}

int agx_binds_open(struct agx_binds *b, const struct agx_sources_asker *asker, const char *user,
                   struct agx_error **err)
{
    struct owner owner = { 0 };
    bool known = user && parse_user(user, &owner);

    for (size_t i = 0; i < b->len; i++) {
        struct agx_bind *one = &b->items[i];
        int r = open_one(one, asker, err);

        if (r < 0)
            return r;
        if (known && one->writable && !may_write(&one->from, &owner))
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "mount '%s' is writable, but the image's user '%s' may not "
                                 "write to '%s': grant access (chown, chmod or setfacl), or "
                                 "mount it read-only",
                                 one->target, user, one->source);
    }
    return 0;
}

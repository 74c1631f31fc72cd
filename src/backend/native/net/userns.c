/* userns.c: see userns.h. */
#include "backend/native/net/userns.h"

#include "base/fd.h"
#include "base/idmap.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

enum { SETTING_MAX = 64, MOUNTINFO_MAX = 4 << 20, SUBIDS_LOWEST = 100000 };

/* ---- what there is ---- */

static bool setting_is(const char *root, const char *name, const char *value)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(SETTING_MAX);
    char path[PATH_MAX];
    struct agx_str line;

    (void)snprintf(path, sizeof(path), "%s/proc/sys/%s", root, name);
    if (agx_fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
        return false;
    line = agx_buf_peek(&text);
    line.len = agx_str_find(line, '\n');
    return agx_str_eq(line, agx_str_from(value));
}

void agx_userns_find(const char *root, const char *name, char ret[PATH_MAX])
{
    static const char *const dirs[] = { "/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(dirs); i++) {
        (void)snprintf(ret, PATH_MAX, "%s%s/%s", root, dirs[i], name);
        if (access(ret, X_OK) == 0)
            return;
    }
    ret[0] = '\0';
}

/* The mount point of a line of mountinfo: its fifth field. */
static struct agx_str mount_point(struct agx_str line)
{
    struct agx_str field = { 0 };

    for (int i = 0; i < 5; i++) {
        if (!agx_str_split(&line, ' ', &field))
            return (struct agx_str){ 0 };
    }
    return field;
}

/* The kernel allows mounting a new /proc only to a process that sees a whole one. A mount on an
 * empty directory in it does not count: binfmt_misc is mounted on one. */
static bool hides_proc(struct agx_str mountinfo)
{
    struct agx_str line;

    while (agx_str_split(&mountinfo, '\n', &line)) {
        const struct agx_str at = mount_point(line);

        if (agx_str_starts(at, AGX_STR("/proc/")) &&
            !agx_str_eq(at, AGX_STR("/proc/sys/fs/binfmt_misc")))
            return true;
    }
    return false;
}

void agx_userns_look(const char *root, struct agx_userns_facts *ret)
{
    _cleanup_buf_ struct agx_buf mounts = AGX_BUF_INIT(MOUNTINFO_MAX);
    char path[PATH_MAX];

    *ret = (struct agx_userns_facts){
        .none_allowed = setting_is(root, "user/max_user_namespaces", "0"),
        .clone_forbidden = setting_is(root, "kernel/unprivileged_userns_clone", "0"),
        .apparmor = setting_is(root, "kernel/apparmor_restrict_unprivileged_userns", "1"),
    };
    agx_userns_find(root, "newuidmap", ret->newuidmap);
    agx_userns_find(root, "newgidmap", ret->newgidmap);
    (void)snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    ret->proc_hidden =
        agx_fd_read_file(AT_FDCWD, path, &mounts, NULL) == 0 && hides_proc(agx_buf_peek(&mounts));
}

/* ---- what follows from it ---- */

static int forbid(struct agx_error **err, const char *why, const char *help)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "sandboxes of an ordinary user need user namespaces, and %s: %s, or run "
                         "agentixd as root",
                         why, help);
}

int agx_userns_check(const struct agx_userns_facts *f, bool tried, struct agx_error **err)
{
    if (f->none_allowed)
        return forbid(err, "user.max_user_namespaces is 0",
                      "'sudo sysctl user.max_user_namespaces=15000'");
    if (f->clone_forbidden)
        return forbid(err, "kernel.unprivileged_userns_clone is 0",
                      "'sudo sysctl kernel.unprivileged_userns_clone=1'");
    if (tried && f->apparmor)
        return forbid(err, "kernel.apparmor_restrict_unprivileged_userns is 1",
                      "'sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0', or give "
                      "agentix-init an AppArmor profile with 'userns,'");
    if (!f->newuidmap[0] || !f->newgidmap[0])
        return forbid(err,
                      f->newuidmap[0] ? "newgidmap is not installed" : "newuidmap is not installed",
                      "install the package 'uidmap' (Debian, Ubuntu) or 'shadow-utils'");
    if (f->proc_hidden)
        return forbid(
            err, "something is mounted over parts of /proc, so that sandboxes cannot mount theirs",
            "give this container an unmasked /proc");
    return 0;
}

/* ---- ids ---- */

static bool parse_range(struct agx_str line, const char *user, uint32_t uid, struct agx_subids *ret)
{
    struct agx_str name = { 0 }, first = { 0 };
    uint64_t id, from, n;

    if (!agx_str_split(&line, ':', &name) || !agx_str_split(&line, ':', &first))
        return false;
    if (!agx_str_eq(name, agx_str_from(user)) &&
        !(agx_parse_u64(name, UINT32_MAX, &id) && id == uid))
        return false;
    if (!agx_parse_u64(agx_str_trim(first), UINT32_MAX, &from) ||
        !agx_parse_u64(agx_str_trim(line), UINT32_MAX, &n) || n < AGX_IDMAP_IDS)
        return false;
    *ret = (struct agx_subids){ (uint32_t)from, (uint32_t)n };
    return true;
}

int agx_subids_find(struct agx_str text, const char *user, uint32_t uid, bool groups,
                    struct agx_subids *ret, struct agx_error **err)
{
    struct agx_str line;

    while (agx_str_split(&text, '\n', &line)) {
        if (parse_range(line, user, uid, ret))
            return 0;
    }
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "/etc/sub%s has no range of %d ids for user '%s': 'sudo usermod "
                         "--add-sub%ss %d-%d %s' adds one (choose another range if that one "
                         "is taken), or run agentixd as root",
                         groups ? "gid" : "uid", AGX_IDMAP_IDS, user, groups ? "gid" : "uid",
                         SUBIDS_LOWEST, SUBIDS_LOWEST + AGX_IDMAP_IDS - 1, user);
}

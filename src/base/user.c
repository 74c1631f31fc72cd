/* user.c: parses passwd and group line by line. */
#include "base/user.h"

#include "base/macros.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { FILE_MAX = 4 << 20 };

/* The kernel uses the largest number as "no id". */
static bool parse_id(struct agx_str s, uint32_t *ret)
{
    uint64_t v;

    if (!agx_parse_u64(s, UINT32_MAX - 1, &v))
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* The fields of the next line that has at least `min` of them. */
static bool next_line(struct agx_str *file, struct agx_str *fields, size_t max, size_t min)
{
    struct agx_str line;

    while (agx_str_split(file, '\n', &line)) {
        size_t n = 0;

        while (n < max && agx_str_split(&line, ':', &fields[n]))
            n++;
        if (n >= min)
            return true;
    }
    return false;
}

/* Found by name or by number, whichever line comes first. */
static bool find_passwd(struct agx_str who, struct agx_str passwd, struct agx_user *ret,
                        struct agx_str *ret_name)
{
    struct agx_str f[7];
    uint32_t want = 0, uid, gid;
    bool numeric = parse_id(who, &want);

    while (next_line(&passwd, f, AGX_ARRAY_LEN(f), 6)) {
        if (!parse_id(f[2], &uid) || !parse_id(f[3], &gid))
            continue;
        if (!agx_str_eq(f[0], who) && !(numeric && uid == want))
            continue;
        ret->uid = uid;
        ret->gid = gid;
        if (f[5].len > 0)
            ret->home = f[5];
        *ret_name = f[0];
        return true;
    }
    ret->uid = want;
    return numeric;
}

static bool find_group(struct agx_str which, struct agx_str group, gid_t *ret)
{
    struct agx_str f[4];
    uint32_t want = 0, gid;
    bool numeric = parse_id(which, &want);

    while (next_line(&group, f, AGX_ARRAY_LEN(f), 3)) {
        if (!parse_id(f[2], &gid))
            continue;
        if (agx_str_eq(f[0], which) || (numeric && gid == want)) {
            *ret = gid;
            return true;
        }
    }
    *ret = want;
    return numeric;
}

static bool is_member(struct agx_str members, struct agx_str name)
{
    struct agx_str one;

    while (agx_str_split(&members, ',', &one)) {
        if (agx_str_eq(one, name))
            return true;
    }
    return false;
}

static bool add_group(struct agx_user *u, gid_t gid)
{
    for (size_t i = 0; i < u->n_groups; i++) {
        if (u->groups[i] == gid)
            return true;
    }
    if (u->n_groups == AGX_USER_GROUPS_MAX)
        return false;
    u->groups[u->n_groups++] = gid;
    return true;
}

/* Adds the groups that have the user as a member. */
static bool add_memberships(struct agx_user *u, struct agx_str name, struct agx_str group)
{
    struct agx_str f[4];
    uint32_t gid;

    while (next_line(&group, f, AGX_ARRAY_LEN(f), 4)) {
        if (parse_id(f[2], &gid) && is_member(f[3], name) && !add_group(u, gid))
            return false;
    }
    return true;
}

const char *agx_user_find(struct agx_str spec, struct agx_str passwd, struct agx_str group,
                          struct agx_user *ret)
{
    size_t colon = agx_str_find(spec, ':');
    struct agx_str who = { spec.ptr, colon }, which = { 0 }, name = { 0 };

    if (colon < spec.len)
        which = agx_str_skip(spec, colon + 1);
    ret->uid = 0;
    ret->gid = 0;
    ret->n_groups = 0;
    ret->home = AGX_STR("/");
    if (who.len == 0)
        who = AGX_STR("0");
    if (!find_passwd(who, passwd, ret, &name))
        return "no such user";
    if (which.len > 0 && !find_group(which, group, &ret->gid))
        return "no such group";
    (void)add_group(ret, ret->gid);
    if (which.len == 0 && name.len > 0 && !add_memberships(ret, name, group))
        return "too many groups";
    return NULL;
}

bool agx_user_join(struct agx_user *u, struct agx_str groups)
{
    struct agx_str one;
    uint32_t gid;

    while (agx_str_split(&groups, ',', &one)) {
        if (!parse_id(one, &gid) || !add_group(u, gid))
            return false;
    }
    return true;
}

bool agx_user_listed(struct agx_str file, uint32_t id)
{
    struct agx_str f[3];
    uint32_t found;

    while (next_line(&file, f, AGX_ARRAY_LEN(f), AGX_ARRAY_LEN(f))) {
        if (parse_id(f[2], &found) && found == id)
            return true;
    }
    return false;
}

struct agx_str agx_user_read_file(const char *path)
{
    /* It may be a FIFO, or a link to one: never wait for it. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    return agx_user_read_fd(fd);
}

struct agx_str agx_user_read_fd(int fd)
{
    struct agx_str none = { 0 };
    struct stat st;
    size_t got = 0;
    char *at;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        st.st_size > FILE_MAX)
        return none;
    at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return none;
    while (got < (size_t)st.st_size) {
        ssize_t n = read(fd, at + got, (size_t)st.st_size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return agx_str_bytes(at, got);
}

/*
 * cgroup_find.c: which cgroup hierarchies this host has, and where they are mounted.
 *
 * A line of mountinfo: "36 25 0:31 /root /mount/point rw,relatime shared:9 - cgroup cgroup rw,cpu".
 * A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", of version 2 "0::/path". The path is relative
 * to the root of our cgroup namespace, as is the mount's root. Where a container has only its own
 * part mounted, the path begins with the mount's root, which is cut off.
 */
#include "backend/native/limits/cgroup_internal.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

enum { TEXT_MAX = 4 << 20 }; /* mountinfo: ten thousand mounts with long names */

unsigned agx_cgroup_controllers(struct agx_str names, char separator)
{
    static const struct {
        struct agx_str name;
        unsigned bit;
    } known[] = {
        { { "cpu", 3 }, AGX_CGROUP_CPU },       { { "cpuacct", 7 }, AGX_CGROUP_CPUACCT },
        { { "memory", 6 }, AGX_CGROUP_MEMORY }, { { "pids", 4 }, AGX_CGROUP_PIDS },
        { { "io", 2 }, AGX_CGROUP_IO },
    };
    unsigned found = 0;
    struct agx_str name;

    while (agx_str_split(&names, separator, &name)) {
        for (size_t i = 0; i < AGX_ARRAY_LEN(known); i++) {
            if (agx_str_eq(name, known[i].name))
                found |= known[i].bit;
        }
    }
    return found;
}

/* The fields that we need of one line of mountinfo. */
struct mount_line {
    struct agx_str root, point, type, options;
};

static bool read_mount(struct agx_str line, struct mount_line *ret)
{
    struct agx_str word;
    int n = 0;

    for (; n < 6 && agx_str_split(&line, ' ', &word); n++) {
        if (n == 3)
            ret->root = word;
        if (n == 4)
            ret->point = word;
    }
    while (n == 6 && agx_str_split(&line, ' ', &word)) {
        if (agx_str_eq(word, AGX_STR("-")))
            return agx_str_split(&line, ' ', &ret->type) && agx_str_split(&line, ' ', &word) &&
                   agx_str_split(&line, ' ', &ret->options);
    }
    return false;
}

/* The path of our group in the hierarchy with that controller; controller 0 means version 2. */
static struct agx_str own_path(struct agx_str cgroup, unsigned controller)
{
    struct agx_str line, number, names;

    while (agx_str_split(&cgroup, '\n', &line)) {
        if (!agx_str_split(&line, ':', &number) || !agx_str_split(&line, ':', &names) || !line.ptr)
            continue;
        if (controller ? (agx_cgroup_controllers(names, ',') & controller) != 0
                       : agx_str_eq(number, AGX_STR("0")) && names.len == 0)
            return line;
    }
    return AGX_STR("/");
}

/* False: too long, or escaped: no administrator mounts cgroups at such a place. */
static bool keep_mount(const struct mount_line *l, struct agx_str own, struct agx_cgroup_mount *ret)
{
    if (l->point.len >= sizeof(ret->point) || own.len >= sizeof(ret->own) ||
        memchr(l->point.ptr, '\\', l->point.len))
        return false;
    if (l->root.len > 1 && agx_str_starts(own, l->root))
        own = agx_str_skip(own, l->root.len);
    /* Outside of what is mounted ("/.." in front), or its root. */
    if (own.len <= 1 || agx_str_starts(own, AGX_STR("/..")))
        own = AGX_STR("");
    (void)snprintf(ret->point, sizeof(ret->point), "%.*s", AGX_STR_ARG(l->point));
    (void)snprintf(ret->own, sizeof(ret->own), "%.*s", AGX_STR_ARG(own));
    return true;
}

void agx_cgroup_find_v1(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mounts *ret)
{
    struct agx_str line;
    struct mount_line l;

    *ret = (struct agx_cgroup_mounts){ .version = 0 };
    while (ret->n < AGX_CGROUP_TASKS_MAX && agx_str_split(&mountinfo, '\n', &line)) {
        struct agx_cgroup_mount *m = &ret->mounts[ret->n];
        unsigned bits;

        if (!read_mount(line, &l) || !agx_str_eq(l.type, AGX_STR("cgroup")))
            continue;
        bits = agx_cgroup_controllers(l.options, ',') & ~(unsigned)AGX_CGROUP_IO;
        /* A hierarchy that is mounted twice counts once. */
        if (!bits || (bits & ret->found) || !keep_mount(&l, own_path(cgroup, bits), m))
            continue;
        m->controllers = bits;
        ret->found |= bits;
        ret->n++;
    }
    if ((ret->found & AGX_CGROUP_NEEDED) == AGX_CGROUP_NEEDED)
        ret->version = 1;
}

bool agx_cgroup_find_v2(struct agx_str mountinfo, struct agx_str cgroup,
                        struct agx_cgroup_mount *ret)
{
    struct agx_str line;
    struct mount_line l;

    while (agx_str_split(&mountinfo, '\n', &line)) {
        if (read_mount(line, &l) && agx_str_eq(l.type, AGX_STR("cgroup2")) &&
            keep_mount(&l, own_path(cgroup, 0), ret))
            return true;
    }
    return false;
}

/* The controllers at the root of version 2; none when the file cannot be read. */
static unsigned controllers_of(const char *point)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    _cleanup_close_ int fd = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct agx_str names;

    if (fd < 0 || agx_fd_read_file(fd, "cgroup.controllers", &text, NULL) < 0)
        return 0;
    names = agx_buf_peek(&text);
    if (names.len > 0 && names.ptr[names.len - 1] == '\n')
        names.len--;
    return agx_cgroup_controllers(names, ' ');
}

static int nothing_found(const struct agx_cgroup_mounts *m, struct agx_error **err)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "this host has no control groups for%s%s%s: mount cgroup2 at "
                         "'/sys/fs/cgroup', or the controllers of version 1 below it",
                         m->found & AGX_CGROUP_CPU ? "" : " cpu",
                         m->found & AGX_CGROUP_MEMORY ? "" : " memory",
                         m->found & AGX_CGROUP_PIDS ? "" : " pids");
}

int agx_cgroup_find(struct agx_cgroup_mounts *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf mountinfo = AGX_BUF_INIT(TEXT_MAX);
    _cleanup_buf_ struct agx_buf cgroup = AGX_BUF_INIT(TEXT_MAX);
    struct agx_cgroup_mount v2;
    int r;

    r = agx_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", &mountinfo, err);
    if (r >= 0)
        r = agx_fd_read_file(AT_FDCWD, "/proc/self/cgroup", &cgroup, err);
    if (r < 0)
        return r;
    agx_cgroup_find_v1(agx_buf_peek(&mountinfo), agx_buf_peek(&cgroup), ret);
    if (ret->version == 1)
        return 0;
    if (!agx_cgroup_find_v2(agx_buf_peek(&mountinfo), agx_buf_peek(&cgroup), &v2))
        return nothing_found(ret, err);
    v2.controllers = controllers_of(v2.point);
    if ((v2.controllers & AGX_CGROUP_NEEDED) != AGX_CGROUP_NEEDED)
        return nothing_found(ret, err);
    *ret = (struct agx_cgroup_mounts){
        .version = 2, .mounts = { v2 }, .n = 1, .found = v2.controllers
    };
    return 0;
}

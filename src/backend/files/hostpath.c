/* hostpath.c: a path walk with one directory open at a time, and the rules for symlinks. */
#include "backend/files/hostpath.h"

#include "backend/files/writables.h"
#include "base/macros.h"
#include "core/text.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/banned.h"

enum {
    LINKS_MAX = 40, /* the kernel's own limit */
    NS_PER_S = 1000000000,
    NOWHERE = -1,
};

/* What is known about an open file. */
struct node {
    int fd;
    struct agx_file_id id;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

struct walk {
    const struct agx_hostpath_rules *rules;
    const char *asked;
    struct node at;
    char path[PATH_MAX]; /* of `at`; "" is the root */
    size_t len;
    char rest[2 * PATH_MAX]; /* components still to be walked */
    unsigned links;
    int depth;       /* of `at` below the root */
    int writable_at; /* depth of the topmost sandbox-writable directory on the way, or NOWHERE */
    int marked_at;   /* likewise */
};

/* Paths are cut to a readable length. */
#define QUOTED_MAX(path) agx_text_cut(agx_str_from(path), 512), (path)

static int hostpath_look(int fd, struct node *ret)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
        return -errno;
    *ret = (struct node){
        .fd = fd,
        .id = { .dev = makedev(st.stx_dev_major, st.stx_dev_minor), .ino = st.stx_ino },
        .mode = st.stx_mode,
        .uid = st.stx_uid,
        .gid = st.stx_gid,
    };
    if (st.stx_mask & STATX_BTIME)
        ret->id.birth_ns = (uint64_t)st.stx_btime.tv_sec * NS_PER_S + st.stx_btime.tv_nsec;
    return 0;
}

int agx_hostpath_identify(int fd, struct agx_file_id *ret)
{
    struct node n;
    int r = hostpath_look(fd, &n);

    if (r == 0)
        *ret = n.id;
    return r;
}

/* ---- symlinks ---- */

static bool is_unmapped(const struct walk *w, uid_t uid)
{
    return w->rules->unmapped != 0 && uid == w->rules->unmapped;
}

static bool is_ours(const struct walk *w, uid_t uid)
{
    return uid == 0 || uid == geteuid() || uid == w->rules->caller;
}

static int hostpath_refuse(const struct walk *w, const char *name, struct agx_error **err,
                           const char *why)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "symlink '%.*s/%s' in '%.*s' is not followed: %s (give the path that it "
                         "leads to)",
                         QUOTED_MAX(w->path), name, QUOTED_MAX(w->asked), why);
}

/*
 * With mapped ids, host root and every unmapped user look the same. A user who cannot write to
 * root's directories cannot have made a link there; a sticky directory is open to everybody.
 */
static int judge_link(const struct walk *w, const struct node *link, const char *name,
                      struct agx_error **err)
{
    const struct node *dir = &w->at;
    const bool open = dir->mode & (S_IWGRP | S_IWOTH);

    if (w->writable_at != NOWHERE)
        return hostpath_refuse(w, name, err, "a sandbox may have made it in a writable mount");
    if (!is_ours(w, dir->uid) && !is_unmapped(w, dir->uid))
        return hostpath_refuse(w, name, err, "its directory belongs to another user");
    if (!is_ours(w, link->uid) && (open || !is_unmapped(w, link->uid)))
        return hostpath_refuse(w, name, err, "it belongs to another user");
    if (open && !(dir->mode & S_ISVTX))
        return hostpath_refuse(w, name, err, "others may write to its directory");
    return 0;
}

/* A magic link of /proc does not lead where its text says. */
static bool is_of_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static int read_link(const struct walk *w, const struct node *link, const char *name,
                     char text[PATH_MAX], struct agx_error **err)
{
    ssize_t n;

    if (is_of_proc(link->fd))
        return hostpath_refuse(w, name, err, "it is one of /proc");
    n = readlinkat(link->fd, "", text, PATH_MAX - 1);
    if (n < 0)
        return agx_error_errno(err, errno, "read symlink '%.*s/%s'", QUOTED_MAX(w->path), name);
    text[n] = '\0';
    return 0;
}

/* ---- the way ---- */

static void hostpath_arrive(struct walk *w, const struct node *n)
{
    const struct agx_hostpath_rules *r = w->rules;

    if (w->at.fd >= 0)
        (void)close(w->at.fd);
    w->at = *n;
    if (w->writable_at > w->depth)
        w->writable_at = NOWHERE;
    if (w->marked_at > w->depth)
        w->marked_at = NOWHERE;
    for (size_t i = 0; i < r->n_marks && w->marked_at == NOWHERE; i++) {
        if (agx_file_id_eq(&r->marks[i], &n->id))
            w->marked_at = w->depth;
    }
    if (w->writable_at == NOWHERE && r->writables &&
        agx_writables_has(r->writables, &n->id, w->len > 0 ? w->path : "/"))
        w->writable_at = w->depth;
}

static int hostpath_begin(struct walk *w, struct agx_error **err)
{
    struct node root = { .fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
    int r = root.fd < 0 ? -errno : hostpath_look(root.fd, &root);

    if (r < 0) {
        if (root.fd >= 0)
            (void)close(root.fd);
        return agx_error_errno(err, -r, "open '/'");
    }
    w->len = 0;
    w->path[0] = '\0';
    w->depth = 0;
    hostpath_arrive(w, &root);
    return 0;
}

/* A sandbox may have moved a directory in its mount, so the parent of one can be anything. */
static int go_up(struct walk *w, struct agx_error **err)
{
    struct node up = { .fd = -1 };
    int r;

    if (w->writable_at != NOWHERE)
        return hostpath_refuse(w, "..", err, "a sandbox may have moved its directory");
    if (w->depth == 0)
        return 0;
    up.fd = openat(w->at.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = up.fd < 0 ? -errno : hostpath_look(up.fd, &up);
    if (r < 0) {
        if (up.fd >= 0)
            (void)close(up.fd);
        return agx_error_errno(err, -r, "open '%.*s/..'", QUOTED_MAX(w->path));
    }
    w->depth--;
    w->len = (size_t)(strrchr(w->path, '/') - w->path);
    w->path[w->len] = '\0';
    hostpath_arrive(w, &up);
    return 0;
}

/* Tries O_DIRECTORY first: only that triggers an automount. */
static int open_part(const struct walk *w, const char *name, struct node *ret,
                     struct agx_error **err)
{
    int fd = openat(w->at.fd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        fd = openat(w->at.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? -errno : hostpath_look(fd, ret);
    if (r == 0)
        return 0;
    if (fd >= 0)
        (void)close(fd);
    return agx_error_errno(err, -r, "lstat %.*s", QUOTED_MAX(w->asked));
}

/* Puts the link's text in front of the rest. */
static int hostpath_follow(struct walk *w, const struct node *link, const char *name,
                           struct agx_error **err)
{
    char text[PATH_MAX], rest[sizeof(w->rest)];
    int r = judge_link(w, link, name, err);
    int n;

    if (r == 0)
        r = read_link(w, link, name, text, err);
    if (r < 0)
        return r;
    if (++w->links > LINKS_MAX)
        return agx_error_errno(err, ELOOP, "lstat %.*s", QUOTED_MAX(w->asked));
    n = snprintf(rest, sizeof(rest), "%s/%s", text, w->rest);
    if (n < 0 || (size_t)n >= sizeof(rest))
        return agx_error_errno(err, ENAMETOOLONG, "lstat %.*s", QUOTED_MAX(w->asked));
    memcpy(w->rest, rest, (size_t)n + 1);
    return text[0] == '/' ? hostpath_begin(w, err) : 0;
}

static int hostpath_enter(struct walk *w, const struct node *n, const char *name,
                          struct agx_error **err)
{
    int len = snprintf(w->path + w->len, sizeof(w->path) - w->len, "/%s", name);

    if (len < 0 || (size_t)len >= sizeof(w->path) - w->len) {
        w->path[w->len] = '\0';
        return agx_error_errno(err, ENAMETOOLONG, "lstat %.*s", QUOTED_MAX(w->asked));
    }
    w->len += (size_t)len;
    w->depth++;
    hostpath_arrive(w, n);
    return 0;
}

/* The next component of `rest`; false: there is none. */
static bool take_part(struct walk *w, char name[NAME_MAX + 2])
{
    struct agx_str rest = agx_str_from(w->rest), part = { 0 };
    size_t n;

    while (rest.len > 0 && rest.ptr[0] == '/')
        rest = agx_str_skip(rest, 1);
    if (rest.len == 0)
        return false;
    part = (struct agx_str){ rest.ptr, agx_str_find(rest, '/') };
    n = AGX_MIN(part.len, (size_t)NAME_MAX + 1); /* a longer name cannot exist */
    memcpy(name, part.ptr, n);
    name[n] = '\0';
    rest = agx_str_skip(rest, part.len);
    while (rest.len > 0 && rest.ptr[0] == '/')
        rest = agx_str_skip(rest, 1);
    memmove(w->rest, rest.ptr, rest.len);
    w->rest[rest.len] = '\0';
    return true;
}

static int hostpath_step(struct walk *w, const char *name, struct agx_error **err)
{
    struct node n = { .fd = -1 };
    int r;

    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0)
        return go_up(w, err);
    r = open_part(w, name, &n, err);
    if (r < 0)
        return r;
    if (S_ISLNK(n.mode) && (w->rest[0] != '\0' || w->rules->follow_last)) {
        r = hostpath_follow(w, &n, name, err);
        (void)close(n.fd);
        return r;
    }
    r = hostpath_enter(w, &n, name, err);
    if (r < 0)
        (void)close(n.fd);
    return r;
}

static int hostpath_finish(struct walk *w, struct agx_hostpath *ret, struct agx_error **err)
{
    char *path = agx_str_dup(agx_str_from(w->len > 0 ? w->path : "/"));

    if (!path)
        return agx_error_no_memory(err);
    *ret = (struct agx_hostpath){ .fd = AGX_TAKE_FD(w->at.fd),
                                  .id = w->at.id,
                                  .mode = w->at.mode,
                                  .uid = w->at.uid,
                                  .gid = w->at.gid,
                                  .marked = w->marked_at != NOWHERE,
                                  .path = path };
    return 0;
}

int agx_hostpath_open(const char *path, const struct agx_hostpath_rules *rules,
                      struct agx_hostpath *ret, struct agx_error **err)
{
    char name[NAME_MAX + 2];
    struct walk w = {
        .rules = rules, .asked = path, .at.fd = -1, .writable_at = NOWHERE, .marked_at = NOWHERE
    };
    int r;

    if (strlen(path) >= PATH_MAX)
        return agx_error_errno(err, ENAMETOOLONG, "lstat %.*s", QUOTED_MAX(path));
    (void)snprintf(w.rest, sizeof(w.rest), "%s", path);
    r = hostpath_begin(&w, err);
    while (r == 0 && take_part(&w, name))
        r = hostpath_step(&w, name, err);
    if (r == 0)
        r = hostpath_finish(&w, ret, err);
    if (w.at.fd >= 0)
        (void)close(w.at.fd);
    return r;
}

void agx_hostpath_done(struct agx_hostpath *h)
{
    if (!h)
        return;
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h->path);
    *h = (struct agx_hostpath)AGX_HOSTPATH_INIT;
}

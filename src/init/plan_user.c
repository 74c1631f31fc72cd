/*
 * plan_user.c: adds the sandbox's user to /etc/passwd and /etc/group: programs ask for the name and
 * the home of their own user, and many images have no entry for it.
 *
 * In PID 1, as root of the sandbox, in its own root, before anything of the host is mounted there.
 * The image is not trusted: only a regular file of the image itself is read and added to, or a
 * missing one is made. A link, or a path that leads elsewhere, is left alone. The overlay copies a
 * changed file. Nothing depends on the entry, so a full disk is not a failure.
 */
#include "init/plan.h"

#include "base/user.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { DIR_MODE = 0755, FILE_MODE = 0644, LINE_MAX_BYTES = 512 };

#define PASSWD "etc/passwd"
#define GROUP "etc/group"

struct file {
    const char *path;
    struct agx_str text;
    bool ours; /* it may be added to: a regular file, or none yet */
};

/* Beneath the root, without links, and in the same file system: /proc and /dev are mounted already.
 * Does not block on a FIFO. */
static int open_own(const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .mode = flags & O_CREAT ? FILE_MODE : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static struct file read_own(const char *path)
{
    struct file f = { .path = path };
    int fd = open_own(path, O_RDONLY);
    struct stat st;

    if (fd < 0) {
        f.ours = errno == ENOENT;
        return f;
    }
    f.text = agx_user_read_fd(fd);
    f.ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (off_t)f.text.len == st.st_size;
    (void)close(fd);
    return f;
}

static void plan_user_forget(struct file *f)
{
    union {
        const char *in;
        void *out;
    } at = { .in = f->text.ptr };

    if (f->text.len > 0)
        (void)munmap(at.out, f->text.len);
}

/* One write: readers see the file before or after it. */
static void plan_user_add(const struct file *f, const char *lines)
{
    const bool cut = f->text.len > 0 && f->text.ptr[f->text.len - 1] != '\n';
    char text[LINE_MAX_BYTES + 1];
    int fd, n = snprintf(text, sizeof(text), "%s%s", cut ? "\n" : "", lines);

    if (!f->ours || !lines[0] || n < 0 || (size_t)n >= sizeof(text))
        return;
    fd = open_own(f->path, O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0)
        return;
    (void)!write(fd, text, (size_t)n);
    (void)close(fd);
}

static void add_users(const struct file *f, const struct agx_user *u)
{
    char lines[LINE_MAX_BYTES] = "";
    size_t n = 0;

    if (!agx_user_listed(f->text, 0))
        n = (size_t)snprintf(lines, sizeof(lines), "root:x:0:0:root:/:/bin/sh\n");
    if (u->uid != 0 && !agx_user_listed(f->text, u->uid))
        (void)snprintf(lines + n, sizeof(lines) - n, "u%u:x:%u:%u::/:/bin/sh\n", u->uid, u->uid,
                       u->gid);
    plan_user_add(f, lines);
}

static void add_groups(const struct file *f, const struct agx_user *u)
{
    char lines[LINE_MAX_BYTES] = "";
    size_t n = 0;

    if (!agx_user_listed(f->text, 0))
        n = (size_t)snprintf(lines, sizeof(lines), "root:x:0:\n");
    if (u->gid != 0 && !agx_user_listed(f->text, u->gid))
        (void)snprintf(lines + n, sizeof(lines) - n, "g%u:x:%u:\n", u->gid, u->gid);
    plan_user_add(f, lines);
}

void agx_plan_list_user(const struct agx_planned *p)
{
    struct file passwd = read_own(PASSWD), group = read_own(GROUP);
    static struct agx_user u; /* large */

    /* A name that the image does not have is refused elsewhere. */
    if (!agx_user_find(p->plan.user, passwd.text, group.text, &u)) {
        (void)mkdir("etc", DIR_MODE);
        add_users(&passwd, &u);
        add_groups(&group, &u);
    }
    plan_user_forget(&passwd);
    plan_user_forget(&group);
}

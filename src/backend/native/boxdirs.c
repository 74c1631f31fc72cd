/* boxdirs.c: see boxdirs.h. */
#include "backend/native/boxdirs.h"

#include "base/fd.h"
#include "base/path.h"
#include "core/ident.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/banned.h"

#define RECORD "state.json"
#define RECORD_NEW "state.json.new"

enum { RECORD_MAX = 1 << 20 };

/*
 * Sandboxes are unrelated, so ext4 is told to spread them over the disk, as it does with the
 * directories of the root. If all of them came and went in one block group, ext4 would examine
 * every recently freed inode whenever it needs one, which can cost as much as the rest of a create.
 * Other file systems have no such flag and need none.
 */
static void spread(int fd)
{
    int flags = 0; /* the kernel takes an int, whatever the headers say */

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

int agx_boxdirs_open(struct agx_boxdirs *d, const char *dir, struct agx_error **err)
{
    _cleanup_close_ int root = -1;

    *d = (struct agx_boxdirs){ -1, -1 };
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make '%s'", dir);
    root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return agx_error_errno(err, errno, "open '%s'", dir);
    d->boxes_fd = agx_path_mkdirs(root, "boxes", 0700, err);
    if (d->boxes_fd < 0)
        return d->boxes_fd;
    spread(d->boxes_fd);
    d->trash_fd = agx_path_mkdirs(root, "trash", 0700, err);
    return d->trash_fd < 0 ? d->trash_fd : 0;
}

int agx_boxdirs_ground(const char *dir, struct agx_error **err)
{
    static const char *const dirs[] = { "", "/dev", "/etc", "/proc", "/sys" };
    static const char *const files[] = { "/etc/hostname", "/etc/hosts", "/etc/resolv.conf" };
    char path[PATH_MAX];

    for (size_t i = 0; i < AGX_ARRAY_LEN(dirs); i++) {
        (void)snprintf(path, sizeof(path), "%s/" AGX_BOXDIRS_GROUND "%s", dir, dirs[i]);
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
            return agx_error_errno(err, errno, "make '%s'", path);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(files); i++) {
        _cleanup_close_ int fd = -1;

        (void)snprintf(path, sizeof(path), "%s/" AGX_BOXDIRS_GROUND "%s", dir, files[i]);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0 || fchmod(fd, 0644) < 0)
            return agx_error_errno(err, errno, "make '%s'", path);
    }
    return 0;
}

void agx_boxdirs_close(struct agx_boxdirs *d)
{
    if (!d)
        return;
    agx_closep(&d->boxes_fd);
    agx_closep(&d->trash_fd);
    *d = (struct agx_boxdirs){ -1, -1 };
}

/* ---- what there is ---- */

static int add_names(DIR *dir, struct agx_words *ret, struct agx_error **err)
{
    const struct dirent *e;
    int r = 0;

    for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0) {
        if (e->d_name[0] != '.')
            r = agx_words_add(ret, agx_str_from(e->d_name), err);
    }
    if (r == 0 && errno != 0)
        r = agx_error_errno(err, errno, "read a directory");
    return r;
}

/* The names in it, except those that begin with a dot. */
static int boxdirs_list(int fd, struct agx_words *ret, struct agx_error **err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    int r;

    if (!dir) {
        r = agx_error_errno(err, errno, "read a directory");
        agx_closep(&copy);
        return r;
    }
    r = add_names(dir, ret, err);
    (void)closedir(dir);
    return r;
}

int agx_boxdirs_list(const struct agx_boxdirs *d, struct agx_words *ret, struct agx_error **err)
{
    return boxdirs_list(d->boxes_fd, ret, err);
}

bool agx_boxdirs_has(const struct agx_boxdirs *d, const char *id)
{
    return faccessat(d->boxes_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- the record ---- */

static int open_box(const struct agx_boxdirs *d, const char *id, struct agx_error **err)
{
    return agx_path_open(d->boxes_fd, id, O_RDONLY | O_DIRECTORY, 0, err);
}

int agx_boxdirs_read(const struct agx_boxdirs *d, const char *id, struct agx_native_state *ret,
                     struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(RECORD_MAX);
    _cleanup_close_ int box = open_box(d, id, err);
    int r = box < 0 ? box : agx_fd_read_file(box, RECORD, &text, err);

    if (r == 0)
        r = agx_native_state_parse(ret, id, agx_buf_peek(&text), err);
    return r < 0 ? agx_error_wrap(err, r, "read the record of sandbox '%s'", id) : 0;
}

static int write_fast(int box, struct agx_str text, struct agx_error **err)
{
    _cleanup_close_ int fd =
        agx_path_open(box, RECORD_NEW, O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
    int r = fd < 0 ? fd : agx_fd_write_all(fd, text, err);

    if (r == 0 && renameat(box, RECORD_NEW, box, RECORD) < 0)
        r = agx_error_errno(err, errno, "rename '%s'", RECORD_NEW);
    return r;
}

int agx_boxdirs_write(const struct agx_boxdirs *d, const struct agx_native_state *s, bool durable,
                      struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(RECORD_MAX);
    _cleanup_close_ int box = -1;
    int r = agx_native_state_print(s, &text, err);

    if (r == 0)
        r = box = open_box(d, s->sandbox_id, err);
    if (r >= 0)
        r = durable ? agx_path_write_file(box, RECORD, agx_buf_peek(&text), 0600, err)
                    : write_fast(box, agx_buf_peek(&text), err);
    return r < 0 ? agx_error_wrap(err, r, "write the record of sandbox '%s'", s->sandbox_id) : 0;
}

/* ---- making ---- */

int agx_boxdirs_make(const struct agx_boxdirs *d, const char *id, struct agx_error **err)
{
    if (mkdirat(d->boxes_fd, id, 0700) < 0)
        return agx_error_errno(err, errno, "make the directory of sandbox '%s'", id);
    return 0;
}

/* A directory on its own file system cannot be moved there: it is removed in place. */
static int trash(const struct agx_boxdirs *d, int from, const char *name, struct agx_error **err)
{
    char as[AGX_UUID_TEXT_SIZE];
    int r = agx_uuid_new(as, err);

    if (r < 0 || renameat(from, name, d->trash_fd, as) == 0 || errno == ENOENT)
        return r;
    if (errno == EXDEV)
        return agx_path_remove_tree(from, name, err);
    return agx_error_errno(err, errno, "move '%s' to the trash", name);
}

static int boxdirs_give(int dir, const char *name, uint32_t owner, struct agx_error **err)
{
    if (fchownat(dir, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return agx_error_errno(err, errno, "give '%s' to %u", name, owner);
    return 0;
}

static int make_owned(int dir, const char *name, mode_t mode, uint32_t owner,
                      struct agx_error **err)
{
    if (mkdirat(dir, name, mode) < 0 || fchmodat(dir, name, mode, 0) < 0)
        return agx_error_errno(err, errno, "make '%s'", name);
    return boxdirs_give(dir, name, owner, err);
}

static bool has(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The sandbox's root directory has mode and owner of `upper`; an existing one keeps what the
 * sandbox's root user set. */
int agx_boxdirs_fs(const struct agx_boxdirs *d, int part_fd, uint32_t id_base,
                   struct agx_error **err)
{
    _cleanup_close_ int fs = agx_path_mkdirs(part_fd, "fs", 0700, err);
    int r = fs < 0 ? fs : boxdirs_give(part_fd, "fs", id_base, err);

    if (r == 0 && !has(fs, "upper"))
        r = make_owned(fs, "upper", 0755, id_base, err);
    if (r == 0 && !has(fs, "etc"))
        r = make_owned(fs, "etc", 0755, id_base, err);
    if (r == 0)
        r = trash(d, fs, "work", err);
    return r < 0 ? r : make_owned(fs, "work", 0700, id_base, err);
}

int agx_boxdirs_part(const struct agx_boxdirs *d, const char *id, size_t part,
                     struct agx_error **err)
{
    char path[AGX_IDENT_MAX + 24];

    (void)snprintf(path, sizeof(path), "%s/%zu", id, part);
    return agx_path_mkdirs(d->boxes_fd, path, 0700, err);
}

int agx_boxdirs_put(int part_fd, const char *name, struct agx_str text, uint32_t id_base,
                    struct agx_error **err)
{
    _cleanup_close_ int fd = agx_path_open(part_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644, err);
    int r = fd < 0 ? fd : agx_fd_write_all(fd, text, err);

    if (r == 0 && (fchown(fd, id_base, id_base) < 0 || fchmod(fd, 0644) < 0))
        r = agx_error_errno(err, errno, "give '%s' to %u", name, id_base);
    return r;
}

/* ---- removing ---- */

int agx_boxdirs_trash(const struct agx_boxdirs *d, const char *id, struct agx_error **err)
{
    return trash(d, d->boxes_fd, id, err);
}

int agx_boxdirs_empty_trash(const struct agx_boxdirs *d, struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words names = { 0 };
    int r = boxdirs_list(d->trash_fd, &names, err);

    for (size_t i = 0; r == 0 && i < names.len; i++)
        r = agx_path_remove_tree(d->trash_fd, names.items[i], err);
    return r;
}

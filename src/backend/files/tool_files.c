/* tool_files.c: reads files beneath a home without following links, and writes them as a tar. */
#include "backend/files/tool_files.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/user.h"
#include "image/tarwriter.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { FILE_MODE = 0600, DIR_MODE = 0700, BLOCK_BYTES = 10240 };

/* ---- reading ---- */

static int tool_files_refuse(const char *home, const char *path, const char *why,
                             struct agx_error **err)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "'%s/%s' %s", home, path, why);
}

/* Looks at the file without opening it: opening a device or a FIFO may have side effects. */
static int tool_files_find(const char *home, const char *path, struct agx_error **err)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                  .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    _cleanup_close_ int top = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = top < 0 ? -1 : (int)syscall(SYS_openat2, top, path, &how, sizeof(how));

    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ENOTDIR)
        return -AGX_NOT_FOUND;
    if (errno == ELOOP)
        return tool_files_refuse(
            home, path,
            "is a symbolic link or is reached through one; copies of logins and settings "
            "do not follow links",
            err);
    return agx_error_errno(err, errno, "open '%s/%s'", home, path);
}

static int tool_files_check(const char *home, const char *path, int fd, struct stat *ret,
                            struct agx_error **err)
{
    if (fstat(fd, ret) < 0)
        return agx_error_errno(err, errno, "look at '%s/%s'", home, path);
    if (!S_ISREG(ret->st_mode))
        return tool_files_refuse(home, path, "is not a regular file", err);
    if (ret->st_size > (off_t)AGX_TOOL_FILE_MAX)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "'%s/%s' has %lld bytes; a copy has at most %zu", home, path,
                             (long long)ret->st_size, AGX_TOOL_FILE_MAX);
    return 0;
}

/* In one piece: a growing buffer leaves memory behind that is not wiped. */
static int read_whole(int fd, off_t size, struct agx_buf *out, struct agx_error **err)
{
    ssize_t n = 1;

    *out = (struct agx_buf)AGX_BUF_INIT((size_t)size + 1);
    if (agx_buf_reserve(out, (size_t)size + 1) < 0)
        return agx_error_no_memory(err);
    while (n > 0 && out->len <= (size_t)size) {
        n = read(fd, out->data + out->len, (size_t)size + 1 - out->len);
        if (n < 0 && errno != EINTR)
            return agx_error_errno(err, errno, "read");
        out->len += n > 0 ? (size_t)n : 0;
        n = n < 0 ? 1 : n;
    }
    return out->len == (size_t)size
               ? 0
               : agx_error_set(err, AGX_ABORTED, "it is being written right now");
}

static int read_found(const char *home, const char *path, int found, struct agx_tool_file *ret,
                      struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    char link[32];
    struct stat st;
    int r = tool_files_check(home, path, found, &st, err);

    if (r < 0)
        return r;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
    fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s/%s'", home, path);
    ret->mtime = st.st_mtim;
    r = read_whole(fd, st.st_size, &ret->bytes, err);
    return r < 0 ? agx_error_wrap(err, r, "'%s/%s'", home, path) : 0;
}

static void file_done(struct agx_tool_file *f)
{
    free(f->path);
    agx_tool_files_wipe(&f->bytes);
}

int agx_tool_files_take(struct agx_tool_files *f, const char *home, const char *path,
                        struct agx_error **err)
{
    _cleanup_close_ int fd = tool_files_find(home, path, err);
    struct agx_tool_file one = { 0 };
    int r;

    if (fd == -AGX_NOT_FOUND)
        return 0;
    if (fd < 0)
        return fd;
    r = read_found(home, path, fd, &one, err);
    if (r == 0)
        r = agx_text_set(&one.path, path, err);
    if (r == 0)
        r = agx_text_grow((void **)&f->items, f->len, sizeof(*f->items), err);
    if (r < 0) {
        file_done(&one);
        return r;
    }
    f->items[f->len++] = one;
    return 1;
}

void agx_tool_files_done(struct agx_tool_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->len; i++)
        file_done(&f->items[i]);
    free(f->items);
    *f = (struct agx_tool_files){ 0 };
}

void agx_tool_files_wipe(struct agx_buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->len);
    agx_buf_done(b);
}

/* ---- whose ---- */

const char *agx_tool_files_home_env(const struct agx_spec *spec, const struct agx_words *image_env)
{
    static const struct agx_str name = { "HOME=", 5 };
    const char *home = agx_pairs_get(&spec->envs, "HOME");

    for (size_t i = 0; !home && i < image_env->len; i++) {
        if (agx_str_starts(agx_str_from(image_env->items[i]), name))
            home = image_env->items[i] + name.len;
    }
    return home;
}

int agx_tool_files_find_owner(const char *user, struct agx_str passwd, const char *home_env,
                              struct agx_tool_owner *ret, struct agx_error **err)
{
    const struct agx_str spec = agx_str_from(user);
    const struct agx_str who = { spec.ptr, agx_str_find(spec, ':') };
    struct agx_user found;
    const char *why = agx_user_find(spec, passwd, (struct agx_str){ 0 }, &found);

    if (why)
        why = agx_user_find(who, passwd, (struct agx_str){ 0 }, &found);
    if (why)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "files of builtin tools are given to '%.*s', the image's user: %s",
                             agx_text_cut(spec, 200), user, why);
    *ret = (struct agx_tool_owner){ found.uid, found.gid,
                                    home_env ? agx_str_from(home_env) : found.home };
    if (ret->home.len == 0 || ret->home.len >= PATH_MAX / 2 || ret->home.ptr[0] != '/')
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the home '%.*s' of the sandbox's user is not an absolute path",
                             agx_text_cut(ret->home, 200), ret->home.ptr);
    while (ret->home.len > 0 && ret->home.ptr[ret->home.len - 1] == '/')
        ret->home.len--; /* that of "/" becomes empty */
    return 0;
}

/* ---- the tar ---- */

struct out {
    const struct agx_tool_owner *owner;
    const struct agx_binds *binds;
    struct agx_tarwriter tar;
    struct agx_words dirs; /* already in the tar */
};

/* Is `path` at or beneath `top`? */
static bool is_within(const char *path, const char *top)
{
    const size_t len = strlen(top);

    return strncmp(path, top, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || (len > 0 && top[len - 1] == '/'));
}

static int check_place(const struct out *o, const char *path, struct agx_error **err)
{
    for (size_t i = 0; i < o->binds->len; i++) {
        const struct agx_bind *b = &o->binds->items[i];

        if (is_within(path, b->target))
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "conflicting mount target '%s': for '%s' and for '%s', of which a "
                                 "builtin tool gives a copy: leave out one of them",
                                 b->target, b->source, path);
    }
    return 0;
}

static int put_entry(struct out *o, const char *path, mode_t mode, const struct agx_tool_file *f,
                     struct agx_error **err)
{
    _cleanup_(agx_tar_entry_freep) struct archive_entry *e = archive_entry_new();
    const bool dir = S_ISDIR(mode);
    int r;

    if (!e)
        return agx_error_no_memory(err);
    archive_entry_copy_pathname(e, path + 1);
    archive_entry_set_mode(e, mode);
    archive_entry_set_nlink(e, 1);
    archive_entry_set_uid(e, o->owner->uid);
    archive_entry_set_gid(e, o->owner->gid);
    archive_entry_set_mtime(e, f->mtime.tv_sec, 0);
    archive_entry_set_size(e, dir ? 0 : (la_int64_t)f->bytes.len);
    r = agx_tarwriter_entry(&o->tar, &e, path, err);
    return r < 0 || dir ? r : agx_tarwriter_data(&o->tar, agx_buf_peek(&f->bytes), path, err);
}

/* The directories between the home and the file, each once. */
static int put_dirs(struct out *o, char *path, const struct agx_tool_file *f,
                    struct agx_error **err)
{
    int r = 0;

    for (char *at = strchr(path + o->owner->home.len + 1, '/'); r == 0 && at;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        if (!agx_words_has(&o->dirs, path)) {
            r = put_entry(o, path, S_IFDIR | DIR_MODE, f, err);
            if (r == 0)
                r = agx_words_add(&o->dirs, agx_str_from(path), err);
        }
        *at = '/';
    }
    return r;
}

static int put_file(struct out *o, const struct agx_tool_file *f, struct agx_error **err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%.*s/%s", AGX_STR_ARG(o->owner->home), f->path);
    int r;

    if (n < 0 || (size_t)n >= sizeof(path))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "the path of '%s' is too long", f->path);
    r = check_place(o, path, err);
    if (r == 0)
        r = put_dirs(o, path, f, err);
    return r < 0 ? r : put_entry(o, path, S_IFREG | FILE_MODE, f, err);
}

static int put_block(void *user, struct agx_str bytes, struct agx_error **err)
{
    return agx_buf_append(user, bytes) < 0 ? agx_error_no_memory(err) : 0;
}

/* Reserves room for everything, so that the buffer does not grow: see read_whole(). */
static int reserve(const struct agx_tool_files *f, struct agx_buf *out, struct agx_error **err)
{
    size_t size = 4 * BLOCK_BYTES;

    for (size_t i = 0; i < f->len; i++)
        size += f->items[i].bytes.len + 4 * BLOCK_BYTES; /* its headers and those of its
                                                          * directories */
    out->max = AGX_MAX(out->max, size);
    return agx_buf_reserve(out, size) < 0 ? agx_error_no_memory(err) : 0;
}

int agx_tool_files_tar(const struct agx_tool_files *f, const struct agx_tool_owner *owner,
                       const struct agx_binds *binds, struct agx_buf *out, struct agx_error **err)
{
    struct out o = { .owner = owner, .binds = binds };
    int r = reserve(f, out, err);

    if (r < 0)
        return r;
    r = agx_tarwriter_open(&o.tar, &(struct agx_tarwriter_params){ put_block, out, BLOCK_BYTES },
                           err);
    for (size_t i = 0; r == 0 && i < f->len; i++)
        r = put_file(&o, &f->items[i], err);
    if (r == 0)
        r = agx_tarwriter_close(&o.tar, err);
    agx_tarwriter_done(&o.tar);
    agx_words_done(&o.dirs);
    return r;
}

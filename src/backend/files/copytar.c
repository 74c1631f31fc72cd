/* copytar.c: entries of a source, written as a tar. */
#include "backend/files/copytar.h"

#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "base/banned.h"

enum { BLOCK_BYTES = 32 << 10 }; /* as they are passed on */

struct writer {
    struct agx_tarwriter tar;
    const char *name;
};

/* File capabilities: without them some programs of a copied tree would not work. */
static int add_capability(struct archive_entry *out, const struct agx_copytree_entry *e,
                          struct agx_error **err)
{
    char value[256]; /* the kernel's format needs 24 bytes at most */
    ssize_t n = fgetxattr(e->fd, "security.capability", value, sizeof(value));

    if (n < 0 && (errno == ENODATA || errno == ENOTSUP))
        return 0;
    if (n < 0)
        return agx_error_errno(err, errno, "read the capabilities of '%s'", e->path);
    archive_entry_xattr_add_entry(out, "security.capability", value, (size_t)n);
    return 0;
}

static void set_name(struct archive_entry *out, const struct writer *w,
                     const struct agx_copytree_entry *e)
{
    char name[2 * PATH_MAX + 2];

    (void)snprintf(name, sizeof(name), "%s%s%s%s", w->name, *w->name && *e->path ? "/" : "",
                   e->path, S_ISDIR(e->st->st_mode) ? "/" : "");
    archive_entry_copy_pathname(out, name);
}

static void set_stat(struct archive_entry *out, const struct stat *st)
{
    archive_entry_copy_stat(out, st);
    if (!S_ISREG(st->st_mode))
        archive_entry_set_size(out, 0);
}

/* Exactly as many bytes as the header announced. */
static int write_content(struct writer *w, const struct agx_copytree_entry *e,
                         struct agx_error **err)
{
    char block[BLOCK_BYTES];
    off_t left = e->st->st_size;
    int r = 0;

    while (r == 0 && left > 0) {
        ssize_t n = read(e->fd, block, (size_t)AGX_MIN(left, (off_t)sizeof(block)));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return agx_error_errno(err, errno, "read '%s'", e->path);
        if (n == 0)
            return agx_error_set(err, AGX_ABORTED, "'%s' became shorter while it was copied",
                                 e->path);
        r = agx_tarwriter_data(&w->tar, agx_str_bytes(block, (size_t)n), e->path, err);
        left -= n;
    }
    return r;
}

static int write_entry(void *user, const struct agx_copytree_entry *e, struct agx_error **err)
{
    _cleanup_(agx_tar_entry_freep) struct archive_entry *out = archive_entry_new();
    struct writer *w = user;
    int r = 0;

    if (!out)
        return agx_error_no_memory(err);
    set_name(out, w, e);
    set_stat(out, e->st);
    if (e->link)
        archive_entry_copy_symlink(out, e->link);
    if (e->fd >= 0)
        r = add_capability(out, e, err);
    if (r == 0)
        r = agx_tarwriter_entry(&w->tar, &out, e->path, err);
    if (r == 0 && e->fd >= 0 && !archive_entry_hardlink(out))
        r = write_content(w, e, err);
    return r;
}

int agx_copytar_write(struct agx_copytree *t, const char *name, agx_tar_fn fn, void *user,
                      struct agx_error **err)
{
    struct writer w = { .name = name };
    const struct stat *st = agx_copytree_stat(t);
    int r =
        agx_tarwriter_open(&w.tar, &(struct agx_tarwriter_params){ fn, user, BLOCK_BYTES }, err);

    if (r == 0 && S_ISDIR(st->st_mode) && *name)
        r = write_entry(&w, &(struct agx_copytree_entry){ "", st, -1, NULL }, err);
    if (r == 0)
        r = agx_copytree_each(t, write_entry, &w, err);
    if (r == 0)
        r = agx_tarwriter_close(&w.tar, err);
    agx_tarwriter_done(&w.tar);
    return r;
}

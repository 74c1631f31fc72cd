/* dirtar.c: walks a directory with libarchive and writes it as a tar, unchanged, since the tree is
 * to become an image. */
#include "cli/dirtar.h"

#include "base/macros.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { BLOCK_BYTES = 128 << 10 }; /* size of the blocks passed to the callback */

struct tar {
    struct archive *disk;
    struct agx_tarwriter out;
    const char *path;
};

/* Converts the result of a libarchive read. */
static int dirtar_check(struct tar *t, ssize_t answer, const char *what, struct agx_error **err)
{
    const char *text;

    if (answer >= ARCHIVE_WARN)
        return 0;
    if (archive_errno(t->disk) > 0)
        return agx_error_errno(err, archive_errno(t->disk), "read '%s'", what);
    text = archive_error_string(t->disk);
    return agx_error_set(err, AGX_INTERNAL, "read '%s': %s", what, text ? text : "it fails");
}

static int open_disk(struct tar *t, struct agx_error **err)
{
    t->disk = archive_read_disk_new();
    if (!t->disk)
        return agx_error_no_memory(err);
    if (archive_read_disk_set_symlink_hybrid(t->disk) != ARCHIVE_OK ||
        archive_read_disk_set_behavior(t->disk, ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS |
                                                    ARCHIVE_READDISK_NO_FFLAGS |
                                                    ARCHIVE_READDISK_NO_ACL) != ARCHIVE_OK)
        return dirtar_check(t, ARCHIVE_FATAL, t->path, err);
    return dirtar_check(t, archive_read_disk_open(t->disk, t->path), t->path, err);
}

/* The name in the tar: the path below the directory, or "." for itself. libarchive drops trailing
 * slashes. */
static void set_name(const struct tar *t, struct archive_entry *e)
{
    _cleanup_free_ char *copy = NULL;
    size_t len = strlen(t->path);
    const char *name;

    while (len > 0 && t->path[len - 1] == '/')
        len--;
    name = archive_entry_pathname(e) + len;
    while (*name == '/')
        name++;
    copy = strdup(*name ? name : ".");
    if (copy) /* without memory the next call fails, too */
        archive_entry_copy_pathname(e, copy);
}

/* Writes as many bytes as the header says; holes become zeros. */
static int write_content(struct tar *t, const char *name, int64_t left, struct agx_error **err)
{
    char block[BLOCK_BYTES];
    int r = 0;

    while (r == 0 && left > 0) {
        ssize_t n =
            archive_read_data(t->disk, block, (size_t)AGX_MIN(left, (int64_t)sizeof(block)));

        r = dirtar_check(t, n, name, err);
        if (r == 0 && n == 0)
            return agx_error_set(err, AGX_ABORTED, "'%s' shrank while it was read", name);
        if (r == 0)
            r = agx_tarwriter_data(&t->out, agx_str_bytes(block, (size_t)n), name, err);
        left -= n;
    }
    return r;
}

static int write_entry(struct tar *t, struct archive_entry **take_entry, struct agx_error **err)
{
    _cleanup_(agx_tar_entry_freep) struct archive_entry *e = AGX_TAKE_PTR(*take_entry);
    int r;

    if (archive_entry_filetype(e) == AE_IFSOCK)
        return 0;
    set_name(t, e);
    archive_entry_sparse_clear(e);
    r = agx_tarwriter_entry(&t->out, &e, archive_entry_pathname(e), err);
    if (r == 0 && archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e))
        r = write_content(t, archive_entry_pathname(e), archive_entry_size(e), err);
    return r;
}

/* 0: wrote an entry; 1: the end. */
static int write_next(struct tar *t, struct agx_error **err)
{
    _cleanup_(agx_tar_entry_freep) struct archive_entry *e = archive_entry_new();
    int answer, r;

    if (!e)
        return agx_error_no_memory(err);
    answer = archive_read_next_header2(t->disk, e);
    if (answer == ARCHIVE_EOF)
        return 1;
    r = dirtar_check(t, answer, archive_entry_pathname(e) ? archive_entry_pathname(e) : t->path,
                     err);
    if (r == 0)
        r = dirtar_check(t, archive_read_disk_descend(t->disk), t->path, err);
    return r < 0 ? r : write_entry(t, &e, err);
}

int agx_dirtar_write(const char *path, agx_tar_fn fn, void *user, struct agx_error **err)
{
    struct tar t = { .path = path };
    int r =
        agx_tarwriter_open(&t.out, &(struct agx_tarwriter_params){ fn, user, BLOCK_BYTES }, err);

    if (r == 0)
        r = open_disk(&t, err);
    while (r == 0)
        r = write_next(&t, err);
    if (r > 0)
        r = agx_tarwriter_close(&t.out, err);
    agx_tarwriter_done(&t.out);
    if (t.disk)
        (void)archive_read_free(t.disk);
    return r;
}

/* blob.c: reads files and members of tars in order. */
#include "image/blob.h"

#include "base/limits.h"
#include "base/macros.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/banned.h"

struct agx_blob {
    int fd;
    uint64_t at;         /* in the file */
    struct archive *tar; /* NULL: the whole file */
    int sys_errno;       /* of a read inside the library */
    struct agx_digest_sum *sum;
    uint8_t block[AGX_UNPACK_READ_BYTES];
};

static ssize_t read_file(struct agx_blob *b, void *buf, size_t size)
{
    ssize_t n;

    do
        n = pread(b->fd, buf, size, (off_t)b->at);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        b->at += (uint64_t)n;
    return n;
}

static ssize_t on_read(struct archive *a, void *user, const void **ret_bytes)
{
    struct agx_blob *b = user;
    ssize_t n = read_file(b, b->block, sizeof(b->block));

    if (n < 0) {
        b->sys_errno = errno;
        archive_set_error(a, errno, "it could not be read");
        return ARCHIVE_FATAL;
    }
    *ret_bytes = b->block;
    return n;
}

static int blob_fail(struct agx_blob *b, struct agx_error **err)
{
    if (b->sys_errno)
        return agx_error_errno(err, b->sys_errno, "read a blob");
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "read a blob of the archive: it is damaged");
}

static int open_member(struct agx_blob *b, struct agx_error **err)
{
    struct archive_entry *e;

    b->tar = archive_read_new();
    if (!b->tar)
        return agx_error_errno(err, ENOMEM, "read a blob");
    if (archive_read_support_format_tar(b->tar) != ARCHIVE_OK ||
        archive_read_open(b->tar, b, NULL, on_read, NULL) != ARCHIVE_OK ||
        archive_read_next_header(b->tar, &e) < ARCHIVE_WARN)
        return blob_fail(b, err);
    return 0;
}

int agx_blob_open(const struct agx_blob_place *place, struct agx_blob **ret_blob,
                  struct agx_error **err)
{
    _cleanup_(agx_blob_closep) struct agx_blob *b = calloc(1, sizeof(*b));
    int r = 0;

    if (!b)
        return agx_error_errno(err, ENOMEM, "read a blob");
    b->fd = place->fd;
    r = agx_digest_sum_new(&b->sum, err);
    if (r == 0 && place->is_member) {
        b->at = place->offset;
        r = open_member(b, err);
    }
    if (r < 0)
        return r;
    *ret_blob = AGX_TAKE_PTR(b);
    return 0;
}

ssize_t agx_blob_read(void *user, void *buf, size_t size, struct agx_error **err)
{
    struct agx_blob *b = user;
    ssize_t n = b->tar ? archive_read_data(b->tar, buf, size) : read_file(b, buf, size);
    int r;

    if (n < 0 && !b->tar)
        return agx_error_errno(err, errno, "read a blob");
    if (n < 0)
        return blob_fail(b, err);
    r = agx_digest_sum_add(b->sum, agx_str_bytes(buf, (size_t)n), err);
    return r < 0 ? r : n;
}

int agx_blob_digest(struct agx_blob *b, char ret_digest[AGX_DIGEST_SIZE], struct agx_error **err)
{
    uint8_t rest[4096];
    ssize_t n;

    do
        n = agx_blob_read(b, rest, sizeof(rest), err);
    while (n > 0);
    if (n < 0)
        return (int)n;
    return agx_digest_sum_end(b->sum, ret_digest, err);
}

struct agx_blob *agx_blob_close(struct agx_blob *b)
{
    if (!b)
        return NULL;
    if (b->tar)
        (void)archive_read_free(b->tar);
    agx_digest_sum_free(b->sum);
    free(b);
    return NULL;
}

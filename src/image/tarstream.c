/*
 * tarstream.c: two libarchive readers in a row.
 *
 *     params.read -> `plain`: filters, no format -> hash, count -> `tar`: the tar format
 *
 * Our own error inside a callback is kept in `error`, because the library only knows that it
 * failed.
 *
 * Names: an extended header has them in UTF-8, and the library converts them to the thread's
 * locale, which in a program without one is ASCII. So headers are read under C.UTF-8, where nothing
 * is converted. Where that locale is missing, names that are not ASCII are refused.
 */
#include "image/tarstream.h"

#include "base/fd.h"
#include "base/macros.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdatomic.h>

#include "base/banned.h"

struct agx_tarstream {
    const struct agx_unpack_params *p;
    struct archive *plain, *tar;
    locale_t utf8; /* (locale_t)0: none; must not be freed */
    struct agx_error *error;
    struct agx_digest_sum *sum;
    uint64_t packed, unpacked; /* bytes read, and bytes of the tar so far */
    bool no_plain;             /* `plain` has ended, or never had a byte */
    bool no_tar;               /* there was not a byte: a tar without entries */
    uint8_t block[AGX_UNPACK_READ_BYTES];
};

/* ---- the library's callbacks ---- */

static ssize_t on_packed(struct archive *a, void *user, const void **ret_bytes)
{
    struct agx_tarstream *t = user;
    ssize_t n;

    if (t->p->stop && atomic_load(t->p->stop))
        n = agx_error_set(&t->error, AGX_CANCELLED, "it was cancelled");
    else
        n = t->p->read(t->p->user, t->block, sizeof(t->block), &t->error);
    if (n < 0) {
        archive_set_error(a, EIO, "it could not be read");
        return ARCHIVE_FATAL;
    }
    t->packed += (uint64_t)n;
    *ret_bytes = t->block;
    return n;
}

/* Checks the size of the tar so far. */
static int check_size(struct agx_tarstream *t)
{
    const struct agx_unpack_limits *l = &t->p->limits;

    if (t->unpacked > l->bytes)
        return agx_error_set(&t->error, AGX_RESOURCE_EXHAUSTED,
                             "the tar is larger than %llu bytes, the limit",
                             (unsigned long long)l->bytes);
    if (t->unpacked > l->ratio_from && t->unpacked / l->ratio > t->packed)
        return agx_error_set(&t->error, AGX_RESOURCE_EXHAUSTED,
                             "the tar is more than %llu times larger than its compressed form",
                             (unsigned long long)l->ratio);
    return 0;
}

/* The error of a reader that failed: our own first, else the library's. */
static int tarstream_fail(struct agx_tarstream *t, struct archive *a, const char *what,
                          struct agx_error **err)
{
    const char *text = archive_error_string(a);
    int code;

    if (t->error) {
        code = -(int)t->error->code;
        agx_error_propagate(err, &t->error);
        return code;
    }
    if (archive_errno(a) == ENOMEM)
        return agx_error_errno(err, ENOMEM, "%s", what);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s: %s", what, text ? text : "it is damaged");
}

/* The next bytes of the uncompressed tar; 0 at the end. */
static ssize_t next_plain(struct agx_tarstream *t, const void **ret_bytes)
{
    size_t n = 0;
    la_int64_t offset;
    int r;

    if (t->no_plain)
        return 0;
    do
        r = archive_read_data_block(t->plain, ret_bytes, &n, &offset);
    while (r == ARCHIVE_OK && n == 0);
    if (r == ARCHIVE_EOF) {
        t->no_plain = true;
        return 0;
    }
    if (r != ARCHIVE_OK) {
        if (!t->error)
            (void)tarstream_fail(t, t->plain, "decompress", &t->error);
        return ARCHIVE_FATAL;
    }
    t->unpacked += n;
    if (check_size(t) < 0 ||
        agx_digest_sum_add(t->sum, agx_str_bytes(*ret_bytes, n), &t->error) < 0)
        return ARCHIVE_FATAL;
    return (ssize_t)n;
}

static ssize_t on_plain(struct archive *a, void *user, const void **ret_bytes)
{
    ssize_t n = next_plain(user, ret_bytes);

    if (n < 0)
        archive_set_error(a, EIO, "it could not be decompressed");
    return n;
}

/* ---- opening ---- */

static int open_plain(struct agx_tarstream *t, struct agx_error **err)
{
    struct archive_entry *e;
    int r;

    if (archive_read_support_filter_gzip(t->plain) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(t->plain) != ARCHIVE_OK ||
        archive_read_support_filter_xz(t->plain) != ARCHIVE_OK ||
        archive_read_support_format_raw(t->plain) != ARCHIVE_OK ||
        archive_read_support_format_empty(t->plain) != ARCHIVE_OK ||
        archive_read_open(t->plain, t, NULL, on_packed, NULL) != ARCHIVE_OK)
        return tarstream_fail(t, t->plain, "open the tar", err);
    r = archive_read_next_header(t->plain, &e);
    if (r == ARCHIVE_EOF)
        t->no_plain = true;
    else if (r != ARCHIVE_OK)
        return tarstream_fail(t, t->plain, "open the tar", err);
    return 0;
}

/* One for all threads, made when first needed and never freed: the C library shares a locale's data
 * among all of the same name, and frees it with the last of them. */
static locale_t utf8_locale(void)
{
    static _Atomic(locale_t) kept;
    locale_t l = atomic_load(&kept), none = (locale_t)0;

    if (l)
        return l;
    l = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (l && !atomic_compare_exchange_strong(&kept, &none, l)) {
        freelocale(l);
        l = none;
    }
    return l;
}

/* A stream with only its compression opened. */
static int open_stream(const struct agx_unpack_params *p, struct agx_tarstream **ret_stream,
                       struct agx_error **err)
{
    _cleanup_(agx_tarstream_closep) struct agx_tarstream *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return agx_error_errno(err, ENOMEM, "read a tar");
    t->p = p;
    r = agx_digest_sum_new(&t->sum, err);
    if (r < 0)
        return r;
    t->utf8 = utf8_locale();
    t->plain = archive_read_new();
    t->tar = archive_read_new();
    if (!t->plain || !t->tar)
        return agx_error_errno(err, ENOMEM, "read a tar");
    r = open_plain(t, err);
    if (r < 0)
        return r;
    t->no_tar = t->no_plain;
    *ret_stream = AGX_TAKE_PTR(t);
    return 0;
}

static int open_tar(struct agx_tarstream *t, struct agx_error **err)
{
    if (archive_read_support_format_tar(t->tar) != ARCHIVE_OK ||
        archive_read_open(t->tar, t, NULL, on_plain, NULL) != ARCHIVE_OK)
        return tarstream_fail(t, t->tar, "open the tar", err);
    return 0;
}

int agx_tarstream_open(const struct agx_unpack_params *p, struct agx_tarstream **ret_stream,
                       struct agx_error **err)
{
    _cleanup_(agx_tarstream_closep) struct agx_tarstream *t = NULL;
    int r = open_stream(p, &t, err);

    if (r == 0 && !t->no_tar)
        r = open_tar(t, err);
    if (r < 0)
        return r;
    *ret_stream = AGX_TAKE_PTR(t);
    return 0;
}

struct agx_tarstream *agx_tarstream_close(struct agx_tarstream *t)
{
    if (!t)
        return NULL;
    if (t->tar)
        (void)archive_read_free(t->tar);
    if (t->plain)
        (void)archive_read_free(t->plain);
    agx_digest_sum_free(t->sum);
    agx_error_free(t->error);
    free(t);
    return NULL;
}

/* ---- entries ---- */

/* Bytes behind the tar's own end belong to its digest. */
static int tarstream_drain(struct agx_tarstream *t, struct agx_error **err)
{
    const void *bytes;
    ssize_t n;

    do
        n = next_plain(t, &bytes);
    while (n > 0);
    return n < 0 ? tarstream_fail(t, t->plain, "read the tar", err) : 0;
}

int agx_tarstream_next(struct agx_tarstream *t, struct archive_entry **ret_entry,
                       struct agx_error **err)
{
    locale_t before;
    int r;

    if (t->no_tar)
        return 0;
    before = t->utf8 ? uselocale(t->utf8) : (locale_t)0;
    r = archive_read_next_header(t->tar, ret_entry);
    if (before)
        (void)uselocale(before);
    if (r == ARCHIVE_EOF)
        return tarstream_drain(t, err);
    /* A warning means a name that was changed, or an invalid header. */
    return r == ARCHIVE_OK ? 1 : tarstream_fail(t, t->tar, "read the tar", err);
}

int agx_tarstream_data(struct agx_tarstream *t, struct agx_str *ret_bytes, uint64_t *ret_offset,
                       struct agx_error **err)
{
    const void *bytes = NULL;
    size_t n = 0;
    la_int64_t offset = 0;
    int r = archive_read_data_block(t->tar, &bytes, &n, &offset);

    if (r == ARCHIVE_EOF)
        return 0;
    if (r != ARCHIVE_OK || offset < 0)
        return tarstream_fail(t, t->tar, "read the tar", err);
    *ret_bytes = agx_str_bytes(bytes, n);
    *ret_offset = (uint64_t)offset;
    return 1;
}

uint64_t agx_tarstream_offset(struct agx_tarstream *t)
{
    return (uint64_t)archive_read_header_position(t->tar);
}

bool agx_tarstream_is_packed(struct agx_tarstream *t)
{
    /* One filter is the library's own, which does nothing. */
    return archive_filter_count(t->plain) > 1;
}

int agx_tarstream_copy(const struct agx_unpack_params *p, int fd, struct agx_error **err)
{
    _cleanup_(agx_tarstream_closep) struct agx_tarstream *t = NULL;
    const void *bytes = NULL;
    ssize_t n;
    int r = open_stream(p, &t, err);

    if (r < 0)
        return r;
    while ((n = next_plain(t, &bytes)) > 0) {
        r = agx_fd_write_all(fd, agx_str_bytes(bytes, (size_t)n), err);
        if (r < 0)
            return r;
    }
    return n < 0 ? tarstream_fail(t, t->plain, "read the tar", err) : 0;
}

int agx_tarstream_digest(struct agx_tarstream *t, char ret_digest[AGX_DIGEST_SIZE],
                         struct agx_error **err)
{
    return agx_digest_sum_end(t->sum, ret_digest, err);
}

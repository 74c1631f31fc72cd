/*
 * tar.h: makes tars byte by byte for tests, including tars that only an attacker would write.
 *
 *     struct test_tar t = test_tar_new();
 *     test_tar_add(&t, (struct test_tar_entry){ .name = "a", .data = AGX_STR("text") });
 *     test_tar_end(&t);
 */
#ifndef AGX_TESTS_TAR_H
#define AGX_TESTS_TAR_H

#include "base/buf.h"
#include "tests/support/test.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>

enum { TEST_TAR_BLOCK = 512 };

struct test_tar {
    struct agx_buf bytes;
};

struct test_tar_entry {
    const char *name;
    char type;     /* 0: a regular file; '5' directory, '2' symlink, '1' hard link, ... */
    unsigned mode; /* 0: 0644 */
    unsigned uid, gid;
    unsigned mtime;
    const char *link;
    struct agx_str data;
    uint64_t size; /* the size in the header; 0: data.len */
};

static inline struct test_tar test_tar_new(void)
{
    return (struct test_tar){ AGX_BUF_INIT((size_t)256 << 20) };
}

static inline void test_tar_done(struct test_tar *t)
{
    agx_buf_done(&t->bytes);
}

static inline void test_tar_zeros(struct test_tar *t, size_t n)
{
    while (n-- > 0)
        ASSERT_OK(agx_buf_push(&t->bytes, 0));
}

/* Writes a number as octal digits that fill a field. */
static inline void test_tar_octal(char *field, size_t width, uint64_t value)
{
    for (size_t i = width; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static inline void test_tar_add(struct test_tar *t, struct test_tar_entry e)
{
    char h[TEST_TAR_BLOCK] = { 0 };
    unsigned sum = 0;

    ASSERT_TRUE(strlen(e.name) <= 100);
    memcpy(h, e.name, strlen(e.name));
    test_tar_octal(h + 100, 7, e.mode ? e.mode : 0644);
    test_tar_octal(h + 108, 7, e.uid);
    test_tar_octal(h + 116, 7, e.gid);
    test_tar_octal(h + 124, 11, e.size ? e.size : e.data.len);
    test_tar_octal(h + 136, 11, e.mtime);
    h[156] = e.type ? e.type : '0';
    if (e.link)
        memcpy(h + 157, e.link, strlen(e.link));
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    test_tar_octal(h + 148, 6, sum);
    h[154] = '\0';
    ASSERT_OK(agx_buf_append(&t->bytes, agx_str_bytes(h, sizeof(h))));
    ASSERT_OK(agx_buf_append(&t->bytes, e.data));
    test_tar_zeros(t, (TEST_TAR_BLOCK - e.data.len % TEST_TAR_BLOCK) % TEST_TAR_BLOCK);
}

/* Writes an extended header with one record for the next entry. */
static inline void test_tar_pax(struct test_tar *t, const char *key, struct agx_str value)
{
    struct agx_buf b = AGX_BUF_INIT(1 << 20);
    size_t body = 1 + strlen(key) + 1 + value.len + 1, digits = 1, n;

    for (;;) { /* the record's length counts its own digits */
        char text[24];

        n = body + digits;
        if ((size_t)snprintf(text, sizeof(text), "%zu", n) == digits)
            break;
        digits++;
    }
    ASSERT_OK(agx_buf_printf(&b, "%zu %s=", n, key));
    ASSERT_OK(agx_buf_append(&b, value));
    ASSERT_OK(agx_buf_push(&b, '\n'));
    test_tar_add(t, (struct test_tar_entry){ .name = "x", .type = 'x', .data = agx_buf_peek(&b) });
    agx_buf_done(&b);
}

/* Writes an entry whose name is too long for a header. */
static inline void test_tar_long(struct test_tar *t, const char *name, struct test_tar_entry e)
{
    test_tar_pax(t, "path", agx_str_from(name));
    e.name = "long";
    test_tar_add(t, e);
}

static inline void test_tar_end(struct test_tar *t)
{
    test_tar_zeros(t, (size_t)2 * TEST_TAR_BLOCK);
}

/* Compresses the tar with one of libarchive's archive_write_add_filter_*. */
static inline void test_tar_pack(struct test_tar *t, int (*add_filter)(struct archive *))
{
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    size_t used = 0, size = t->bytes.len + (1 << 20);
    uint8_t *packed = malloc(size);

    ASSERT_NOT_NULL(packed);
    ASSERT_INT(ARCHIVE_OK, add_filter(a));
    ASSERT_INT(ARCHIVE_OK, archive_write_set_format_raw(a));
    ASSERT_INT(ARCHIVE_OK, archive_write_open_memory(a, packed, size, &used));
    archive_entry_set_filetype(e, AE_IFREG);
    ASSERT_INT(ARCHIVE_OK, archive_write_header(a, e));
    ASSERT_INT((intmax_t)t->bytes.len, archive_write_data(a, t->bytes.data, t->bytes.len));
    ASSERT_INT(ARCHIVE_OK, archive_write_close(a));
    archive_write_free(a);
    archive_entry_free(e);
    agx_buf_clear(&t->bytes);
    ASSERT_OK(agx_buf_append(&t->bytes, agx_str_bytes(packed, used)));
    free(packed);
}

#endif

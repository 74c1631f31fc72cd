/* caplog.h: a capped log in two files without names; each byte of its stream shows its position. */
#ifndef AGX_TESTS_CAPLOG_H
#define AGX_TESTS_CAPLOG_H

#include "base/caplog.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

struct test_caplog {
    int data_fd, index_fd;
    struct agx_caplog writer;
};

static inline int test_caplog_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    return fd;
}

static inline void test_caplog_open(struct test_caplog *t, uint64_t head_max, uint64_t tail_max)
{
    t->data_fd = test_caplog_file();
    t->index_fd = test_caplog_file();
    ASSERT_OK(agx_caplog_init(&t->writer, t->data_fd, t->index_fd, head_max, tail_max));
}

static inline void test_caplog_close(struct test_caplog *t)
{
    close(t->data_fd);
    close(t->index_fd);
}

/* A period without a common factor with any size in use, so that a shift cannot go unnoticed. */
static inline uint8_t test_caplog_byte(uint64_t offset)
{
    return (uint8_t)('!' + (offset * 31 + offset / 89) % 89);
}

/* The next `n` bytes of the stream. */
static inline void test_caplog_append(struct agx_caplog *w, size_t n)
{
    char *bytes = malloc(n + 1);

    ASSERT_NOT_NULL(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)test_caplog_byte(w->index.total + i);
    agx_caplog_append(w, agx_str_bytes(bytes, n));
    free(bytes);
}

/* Reads a piece and checks that every byte is at the position that it shows. */
static inline struct agx_caplog_piece test_caplog_read(const struct test_caplog *t, uint64_t offset,
                                                       size_t size)
{
    struct agx_caplog_piece piece = { 0 };
    uint8_t *out = malloc(size + 1);

    ASSERT_NOT_NULL(out);
    ASSERT_OK(agx_caplog_read(t->data_fd, t->index_fd, offset, out, size, &piece, NULL));
    ASSERT_TRUE(piece.len <= size);
    for (size_t i = 0; i < piece.len; i++) {
        if (out[i] != test_caplog_byte(offset + piece.skipped + i))
            FAIL("byte %ju of the stream is another's", (uintmax_t)(offset + piece.skipped + i));
    }
    free(out);
    return piece;
}

/* Reads everything in pieces of `size`. Returns the number of bytes, and in the last argument (may
 * be NULL) the number of skipped bytes. */
static inline uint64_t test_caplog_read_all(const struct test_caplog *t, size_t size,
                                            uint64_t *ret_skipped)
{
    uint64_t offset = 0, got = 0, skipped = 0;
    struct agx_caplog_piece piece;

    do {
        piece = test_caplog_read(t, offset, size);
        offset += piece.skipped + piece.len;
        got += piece.len;
        skipped += piece.skipped;
        ASSERT_TRUE(offset <= piece.total);
    } while (offset < piece.total);
    if (ret_skipped)
        *ret_skipped = skipped;
    return got;
}

/* The content of the data file. */
static inline size_t test_caplog_file_bytes(const struct test_caplog *t, char *out, size_t size)
{
    ssize_t n = pread(t->data_fd, out, size, 0);

    ASSERT_TRUE(n >= 0);
    return (size_t)n;
}

/* The file has `head` bytes, the note, and the last `tail` bytes. */
static inline void test_caplog_is_text(const struct test_caplog *t, size_t head, size_t tail)
{
    const uint64_t total = t->writer.index.total;
    static char got[1 << 20], want[1 << 20];
    size_t n = 0;

    for (size_t i = 0; i < head; i++)
        want[n++] = (char)test_caplog_byte(i);
    n += (size_t)snprintf(want + n, 100, "\n[... %ju bytes left out ...]\n",
                          (uintmax_t)(total - head - tail));
    for (size_t i = 0; i < tail; i++)
        want[n++] = (char)test_caplog_byte(total - tail + i);
    ASSERT_STR(agx_str_bytes(want, n),
               agx_str_bytes(got, test_caplog_file_bytes(t, got, sizeof(got))));
}

#endif

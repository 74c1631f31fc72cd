/*
 * fuzz_caplog.c: a reader of any two files ends, writes only into its buffer, and never announces
 * bytes that it does not return. A writer can open the same log and continue it. The first byte
 * chooses the offset, the second whether the index gets a good checksum; 64 bytes of index and the
 * data follow.
 */
#include "base/caplog_internal.h"
#include "tests/support/fuzz.h"

#include <sys/mman.h>

static int file_of(const uint8_t *bytes, size_t n)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    return fd;
}

/* An index of the fuzzer's numbers that passes as ours, so that it gets behind the checksum. */
static void seal(uint8_t index[AGX_CAPLOG_INDEX_SIZE])
{
    struct agx_caplog_index x = { 0 };

    memcpy(&x.head_max, index + 8, 8);
    memcpy(&x.tail_max, index + 16, 8);
    memcpy(&x.total, index + 24, 8);
    memcpy(&x.tail_from, index + 32, 8);
    memcpy(&x.tail_at, index + 40, 8);
    x.ended = index[48] & 1;
    agx_caplog_index_encode(&x, index);
}

static void read_all(int data, int index, uint64_t offset)
{
    struct agx_caplog_piece p;
    uint8_t out[37];

    for (int i = 0; i < 1000; i++) {
        int r = agx_caplog_read(data, index, offset, out, sizeof(out), &p, NULL);

        if (r < 0) {
            FUZZ_CHECK(r == -AGX_DATA_LOSS);
            return;
        }
        FUZZ_CHECK(p.len <= sizeof(out) && p.total <= AGX_CAPLOG_TOTAL_MAX);
        if (offset >= p.total) {
            FUZZ_CHECK(p.len == 0 && p.skipped == 0);
            return;
        }
        FUZZ_CHECK(p.len + p.skipped > 0 && p.skipped <= p.total - offset &&
                   p.len <= p.total - offset - p.skipped);
        offset += p.skipped + p.len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t offsets[] = {
        0, 1, 10, 63, UINT64_MAX, UINT64_C(1) << 62, 1000, 1 << 20
    };
    uint8_t index[AGX_CAPLOG_INDEX_SIZE];
    struct agx_caplog log;
    int data_fd, index_fd;

    if (size < 2 + sizeof(index))
        return 0;
    memcpy(index, data + 2, sizeof(index));
    if (data[1] & 1)
        seal(index);
    index_fd = file_of(index, sizeof(index));
    data_fd = file_of(data + 2 + sizeof(index), size - 2 - sizeof(index));
    read_all(data_fd, index_fd, offsets[data[0] % AGX_ARRAY_LEN(offsets)]);
    /* Files of the size of a small disk: the numbers in the index may ask for a terabyte. */
    if (agx_caplog_init(&log, data_fd, index_fd, 100, 100) == 0 &&
        log.index.head_max + log.index.tail_max < 1 << 16) {
        const uint64_t total = log.index.total;
        const bool ended = log.index.ended;
        struct agx_caplog_piece p;

        agx_caplog_append(&log, AGX_STR("some more bytes for the log"));
        agx_caplog_finish(&log);
        FUZZ_CHECK(agx_caplog_read(data_fd, index_fd, 0, index, 1, &p, NULL) == 0 && p.ended);
        FUZZ_CHECK(p.total == total || (!ended && p.total == total + 27));
        read_all(data_fd, index_fd, 0);
    }
    close(data_fd);
    close(index_fd);
    return 0;
}

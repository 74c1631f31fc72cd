/*
 * caplog.h: the log of one stream, with a cap on its disk space.
 *
 * Two files: the data, and an index of 64 bytes. Up to head_max + tail_max bytes the data file is
 * the stream. Past that the head stays, and the rest of the file is a ring with the newest bytes.
 * agx_caplog_finish() unrolls the ring: the file is then the head, a line with the number of bytes
 * left out, and the tail. All offsets are offsets of the stream, so a reader keeps its place while
 * that happens.
 *
 * One writer; any number of concurrent readers in other processes. The writer allocates nothing,
 * waits only for the disk and uses only libc, because PID 1 of a sandbox is a writer. Readers trust
 * nothing in either file.
 *
 * Both descriptors must be regular files, opened without O_APPEND. A process with a file size limit
 * (RLIMIT_FSIZE) must ignore SIGXFSZ before it writes.
 */
#ifndef AGX_BASE_CAPLOG_H
#define AGX_BASE_CAPLOG_H

#include "base/error.h"
#include "base/str.h"

/* Bytes of the index file. */
#define AGX_CAPLOG_INDEX_SIZE 64

/* With these, sums cannot overflow: a cap of 2^40 (head plus tail), 2^62 bytes of stream. */
#define AGX_CAPLOG_CAP_MAX (UINT64_C(1) << 40)
#define AGX_CAPLOG_TOTAL_MAX (UINT64_C(1) << 62)

/* The index. The log has these bytes of the stream: [0, head_max) and [tail_from, total). */
struct agx_caplog_index {
    uint64_t head_max, tail_max; /* smaller than requested once the disk was full */
    uint64_t total;              /* bytes of the stream so far */
    uint64_t tail_from;          /* older bytes may be overwritten at any moment; <= total */
    uint64_t tail_at;            /* file position of the unrolled tail; 0: it is a ring */
    bool ended;
};

/* The writer. The descriptors are borrowed. */
struct agx_caplog {
    int data_fd, index_fd;
    struct agx_caplog_index index;
    uint64_t kept_from; /* the exact index.tail_from; the index runs ahead */
};

/*
 * Begins a log in two empty files, or continues a log that another writer left (its caps stay).
 * -AGX_INVALID_ARGUMENT for a cap that is too large, -AGX_DATA_LOSS when the index is damaged,
 * otherwise the error of the first write.
 */
int agx_caplog_init(struct agx_caplog *log, int data_fd, int index_fd, uint64_t head_max,
                    uint64_t tail_max) AGX_MUST_CHECK;

/*
 * Always consumes all bytes. When the disk is full the caps shrink to what was written, and the log
 * continues with those; bytes lost to any other fault count as left out. No effect after the end.
 */
void agx_caplog_append(struct agx_caplog *log, struct agx_str bytes);

/* Skips `n` bytes of the stream that will never come: they count as left out, as does the tail
 * before them; the tail begins after them. */
void agx_caplog_skip(struct agx_caplog *log, uint64_t n);

/*
 * The stream has ended. Unrolls a capped file, for which the tail is on disk twice for a moment;
 * without room for that the file stays a ring, and readers see no difference. May be repeated, also
 * by another writer after a crash.
 */
void agx_caplog_finish(struct agx_caplog *log);

/* The same without unrolling: for callers that may not wait for the tail to be copied. */
void agx_caplog_end(struct agx_caplog *log);

/* The result of a read. */
struct agx_caplog_piece {
    uint64_t skipped; /* bytes left out after the offset: the piece begins after them */
    size_t len;
    uint64_t total;
    bool ended; /* no more than `total` will come */
};

/*
 * Reads from an offset of the stream, up to `size` bytes. A piece may be short; an empty one is the
 * end only when offset + skipped has reached `total`. An index that is not written yet is an empty
 * stream; a damaged one is -AGX_DATA_LOSS. Bytes that the index promises but the data file lacks
 * count as left out.
 */
int agx_caplog_read(int data_fd, int index_fd, uint64_t offset, uint8_t *out, size_t size,
                    struct agx_caplog_piece *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif

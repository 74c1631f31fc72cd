/*
 * caplog.h: the log of one stream, which never takes more than its cap of disk.
 *
 * Two files: the data, and an index of 64 bytes. Up to head_max + tail_max bytes the data file is
 * the stream. Past that the head stays and the rest of the file is a ring that holds the newest
 * bytes. agx_caplog_finish() unrolls it: the file is then the head, a line that says how much was
 * left out, and the tail. All offsets are those of the stream, so a reader may keep its place while
 * that happens.
 *
 * One writer; any number of readers in other processes, at the same time. The writer allocates
 * nothing, never waits for anything but the disk and needs nothing but libc: PID 1 of a sandbox is
 * one. Readers trust nothing in either file.
 *
 * Both descriptors are of regular files, opened without O_APPEND. A process whose files are limited
 * (RLIMIT_FSIZE) ignores SIGXFSZ before it writes.
 */
#ifndef AGX_BASE_CAPLOG_H
#define AGX_BASE_CAPLOG_H

#include "base/error.h"
#include "base/str.h"

/* Bytes of the index file. */
#define AGX_CAPLOG_INDEX_SIZE 64

/* Sums that cannot overflow: a cap of 2^40 (head and tail together), 2^62 bytes of stream. */
#define AGX_CAPLOG_CAP_MAX (UINT64_C(1) << 40)
#define AGX_CAPLOG_TOTAL_MAX (UINT64_C(1) << 62)

/* What the index says. Of the stream these bytes are kept: [0, head_max) and [tail_from, total). */
struct agx_caplog_index {
    uint64_t head_max, tail_max; /* smaller than asked for once the disk was full */
    uint64_t total;              /* bytes of the stream so far */
    uint64_t tail_from;          /* what is older may be overwritten at any moment; <= total */
    uint64_t tail_at;            /* where the tail stands in the file, unrolled; 0: it is a ring */
    bool ended;
};

/* The writer. The descriptors are borrowed. */
struct agx_caplog {
    int data_fd, index_fd;
    struct agx_caplog_index index;
    uint64_t kept_from; /* as index.tail_from, but exactly; the index runs ahead */
};

/*
 * Begins a log in two empty files, or takes one up again that another writer left (its caps
 * stay). -AGX_INVALID_ARGUMENT for a cap that is too large, -AGX_DATA_LOSS when the index is
 * damaged, otherwise what the disk said of the first write.
 */
int agx_caplog_init(struct agx_caplog *log, int data_fd, int index_fd, uint64_t head_max,
                    uint64_t tail_max) AGX_MUST_CHECK;

/*
 * Always takes all bytes. When the disk is full the caps shrink to what was written, and the log
 * goes on with those; what any other fault keeps from the disk counts as left out. Nothing is taken
 * after the end.
 */
void agx_caplog_append(struct agx_caplog *log, struct agx_str bytes);

/* So many bytes of the stream will never come: they are left out, and the tail begins behind them
 * (what stood in front of them in it is left out too). */
void agx_caplog_skip(struct agx_caplog *log, uint64_t n);

/*
 * The stream has ended. A capped file is unrolled, for which the tail is on disk twice for a
 * moment; without room for that it stays as it is, and readers see no difference. May be repeated,
 * also by another writer after a crash.
 */
void agx_caplog_finish(struct agx_caplog *log);

/* The same without unrolling, which copies the tail: for whoever may not wait for that. */
void agx_caplog_end(struct agx_caplog *log);

/* What a read gave. */
struct agx_caplog_piece {
    uint64_t skipped; /* so many bytes after the offset are left out: the piece begins behind */
    size_t len;
    uint64_t total;
    bool ended; /* no more than `total` will come */
};

/*
 * Reads from an offset of the stream, up to `size` bytes. A piece may be short, and one of no bytes
 * is the end only when offset + skipped has reached `total`. An index that nobody wrote yet is an
 * empty stream; a damaged one is -AGX_DATA_LOSS. A data file that lacks what the index promises is
 * no error: those bytes count as left out.
 */
int agx_caplog_read(int data_fd, int index_fd, uint64_t offset, uint8_t *out, size_t size,
                    struct agx_caplog_piece *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif

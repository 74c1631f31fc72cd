/*
 * caplog.c: the index, and the writer.
 *
 * The data file, with H = head_max and L = tail_max:
 *
 *     0        H                     H + L
 *     |  head  |  ... newest | oldest ... |            ring: offset o is at H + (o - H) % L
 *     |  head  | note |  oldest ... newest |           after finish
 *
 * Up to H + L bytes, the file is the stream as it is. So when the disk is full after n bytes, any H
 * and L with H + L = n describe the file, and the ring continues within it.
 *
 * Invariants, at every moment, so after a crash too:
 *  (1) bytes [tail_from, total) of the index are in the data file. Bytes to be overwritten are
 *      removed from the index first; written bytes are added to it afterwards.
 *  (2) the unrolled tail never overlaps the tail that the index names: it is copied behind the
 *      ring, then to its final place, and the index is moved after each copy.
 */
#include "base/caplog_internal.h"

#include "base/siphash.h"

#include <endian.h>
#include <sys/stat.h>

#include "base/banned.h"

enum {
    STEP = 64 << 10, /* how far the index runs ahead of a wrapped ring, for fewer writes */
    COPY = 16 << 10, /* on the stack */
    NOTE_SIZE = 64,
    INDEX_WORDS = AGX_CAPLOG_INDEX_SIZE / 8,
    FLAG_ENDED = 1,
};

static const uint64_t magic = UINT64_C(0x31676f6c70616361); /* "acaplog1" */

/* A checksum, not a cryptographic hash. */
static uint64_t sum_of(const uint8_t bytes[AGX_CAPLOG_INDEX_SIZE])
{
    const struct agx_siphash_key key = { 0x6361706c6f67, 1 };

    return agx_siphash(key, agx_str_bytes(bytes, AGX_CAPLOG_INDEX_SIZE - 8));
}

void agx_caplog_index_encode(const struct agx_caplog_index *x, uint8_t bytes[AGX_CAPLOG_INDEX_SIZE])
{
    const uint64_t words[INDEX_WORDS - 1] = {
        magic,
        x->head_max,
        x->tail_max,
        x->total,
        x->tail_from,
        x->tail_at,
        x->ended ? FLAG_ENDED : 0,
    };
    uint64_t sum;

    for (size_t i = 0; i < AGX_ARRAY_LEN(words); i++) {
        uint64_t le = htole64(words[i]);

        memcpy(bytes + 8 * i, &le, sizeof(le));
    }
    sum = htole64(sum_of(bytes));
    memcpy(bytes + AGX_CAPLOG_INDEX_SIZE - 8, &sum, sizeof(sum));
}

/* The checksum detects accidents; these checks also detect forged values. */
static bool index_is_sound(const struct agx_caplog_index *x)
{
    if (x->head_max > AGX_CAPLOG_CAP_MAX || x->tail_max > AGX_CAPLOG_CAP_MAX - x->head_max ||
        x->total > AGX_CAPLOG_TOTAL_MAX || x->tail_from > x->total)
        return false;
    if (x->total - x->tail_from > x->tail_max)
        return false;
    if (x->tail_at == 0)
        return true;
    return x->tail_at >= x->head_max && x->tail_at <= 2 * AGX_CAPLOG_CAP_MAX && x->ended;
}

bool agx_caplog_index_decode(const uint8_t bytes[AGX_CAPLOG_INDEX_SIZE],
                             struct agx_caplog_index *ret)
{
    uint64_t words[INDEX_WORDS];

    memcpy(words, bytes, sizeof(words));
    for (size_t i = 0; i < INDEX_WORDS; i++)
        words[i] = le64toh(words[i]);
    if (words[0] != magic || words[7] != sum_of(bytes) || words[6] > FLAG_ENDED)
        return false;
    *ret = (struct agx_caplog_index){
        .head_max = words[1],
        .tail_max = words[2],
        .total = words[3],
        .tail_from = words[4],
        .tail_at = words[5],
        .ended = words[6] == FLAG_ENDED,
    };
    return index_is_sound(ret);
}

uint64_t agx_caplog_place(const struct agx_caplog_index *x, uint64_t offset, uint64_t *ret_run)
{
    uint64_t in_ring;

    if (offset < x->head_max) {
        *ret_run = AGX_MIN(x->head_max, x->total) - offset;
        return offset;
    }
    *ret_run = x->total - offset;
    if (x->tail_at > 0)
        return x->tail_at + (offset - x->tail_from);
    in_ring = (offset - x->head_max) % x->tail_max;
    *ret_run = AGX_MIN(*ret_run, x->tail_max - in_ring);
    return x->head_max + in_ring;
}

size_t agx_caplog_pread(int fd, void *out, size_t n, uint64_t at, int *ret_errno)
{
    size_t got = 0;
    int fault = 0;

    while (got < n) {
        ssize_t r = pread(fd, (uint8_t *)out + got, n - got, (off_t)(at + got));

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0) {
            fault = r < 0 ? errno : 0;
            break;
        }
        got += (size_t)r;
    }
    if (ret_errno)
        *ret_errno = fault;
    return got;
}

/* Returns how many bytes were written. */
static size_t write_at(int fd, struct agx_str bytes, uint64_t at)
{
    size_t put = 0;

    while (put < bytes.len) {
        ssize_t r = pwrite(fd, bytes.ptr + put, bytes.len - put, (off_t)(at + put));

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        put += (size_t)r;
    }
    return put;
}

static bool write_index(const struct agx_caplog *log)
{
    uint8_t bytes[AGX_CAPLOG_INDEX_SIZE];

    agx_caplog_index_encode(&log->index, bytes);
    return write_at(log->index_fd, agx_str_bytes(bytes, sizeof(bytes)), 0) == sizeof(bytes);
}

int agx_caplog_init(struct agx_caplog *log, int data_fd, int index_fd, uint64_t head_max,
                    uint64_t tail_max)
{
    uint8_t bytes[AGX_CAPLOG_INDEX_SIZE];
    int fault;
    size_t n;

    *log = (struct agx_caplog){ .data_fd = data_fd, .index_fd = index_fd };
    n = agx_caplog_pread(index_fd, bytes, sizeof(bytes), 0, &fault);
    if (fault)
        return -(int)agx_code_from_errno(fault);
    if (n > 0) {
        if (n < sizeof(bytes) || !agx_caplog_index_decode(bytes, &log->index))
            return -AGX_DATA_LOSS;
        log->kept_from = log->index.tail_from;
        return 0;
    }
    if (head_max > AGX_CAPLOG_CAP_MAX || tail_max > AGX_CAPLOG_CAP_MAX - head_max)
        return -AGX_INVALID_ARGUMENT;
    log->index.head_max = head_max;
    log->index.tail_max = tail_max;
    errno = EIO; /* for a short write */
    return write_index(log) ? 0 : -(int)agx_code_from_errno(errno);
}

static uint64_t cap_of(const struct agx_caplog_index *x)
{
    return x->head_max + x->tail_max;
}

/* The file is the stream and cannot grow: at least half of it becomes the ring. */
static void shrink(struct agx_caplog *log)
{
    struct agx_caplog_index *x = &log->index;

    if (log->kept_from > x->head_max) { /* a hole follows the head, and stays */
        x->tail_max = x->total - x->head_max;
        return;
    }
    x->head_max = AGX_MIN(x->head_max, x->total - x->total / 2);
    x->tail_max = x->total - x->head_max;
    x->tail_from = log->kept_from = x->head_max;
}

/* Counts bytes, and advances kept_from so that the tail has the newest bytes that fit. */
static void caplog_count(struct agx_caplog *log, uint64_t n)
{
    struct agx_caplog_index *x = &log->index;
    uint64_t oldest;

    x->total += n;
    oldest = x->total > cap_of(x) ? x->total - x->tail_max : AGX_MIN(x->total, x->head_max);
    log->kept_from = AGX_MAX(log->kept_from, oldest);
    x->tail_from = AGX_MAX(x->tail_from, log->kept_from);
}

/* Removes from the index the bytes that the next `n` bytes will overwrite, and some more. */
static bool announce(struct agx_caplog *log, uint64_t n)
{
    struct agx_caplog_index *x = &log->index;
    uint64_t oldest = x->total + n - x->tail_max;

    if (x->tail_from >= oldest)
        return true;
    x->tail_from = AGX_MIN(x->total, oldest + AGX_MIN(x->tail_max / 4, STEP));
    return write_index(log);
}

/* Appends to a file at its maximum length. Returns how many bytes were written. */
static size_t append_to_ring(struct agx_caplog *log, struct agx_str bytes)
{
    struct agx_caplog_index *x = &log->index;
    uint64_t run, at;
    size_t n;

    if (bytes.len > x->tail_max) {
        caplog_count(log, bytes.len - x->tail_max);
        return bytes.len - (size_t)x->tail_max;
    }
    at = (x->total - x->head_max) % x->tail_max;
    run = x->tail_max - at;
    n = (size_t)AGX_MIN(bytes.len, run);
    if (!announce(log, n) ||
        write_at(log->data_fd, (struct agx_str){ bytes.ptr, n }, x->head_max + at) < n)
        log->kept_from = x->total + n;
    caplog_count(log, n);
    return n;
}

void agx_caplog_append(struct agx_caplog *log, struct agx_str bytes)
{
    struct agx_caplog_index *x = &log->index;

    if (x->ended || bytes.len == 0 || bytes.len > AGX_CAPLOG_TOTAL_MAX - x->total)
        return;
    while (bytes.len > 0) {
        size_t n;

        if (x->total < cap_of(x)) {
            size_t want = (size_t)AGX_MIN(bytes.len, cap_of(x) - x->total);

            n = write_at(log->data_fd, (struct agx_str){ bytes.ptr, want }, x->total);
            caplog_count(log, n);
            if (n < want)
                shrink(log);
        } else {
            n = append_to_ring(log, bytes);
        }
        bytes = agx_str_skip(bytes, n);
    }
    (void)write_index(log);
}

void agx_caplog_skip(struct agx_caplog *log, uint64_t n)
{
    struct agx_caplog_index *x = &log->index;

    if (x->ended || n == 0 || n > AGX_CAPLOG_TOTAL_MAX - x->total)
        return;
    if (x->total < x->head_max) { /* the head ends here */
        x->tail_max = cap_of(x) - x->total;
        x->head_max = x->total;
    }
    x->total += n;
    x->tail_from = log->kept_from = x->total;
    (void)write_index(log);
}

/* Copies the tail to `to`, behind all bytes in use. False: no room, or an I/O error. */
static bool copy_tail(const struct agx_caplog *log, uint64_t to)
{
    const struct agx_caplog_index *x = &log->index;
    char piece[COPY];

    for (uint64_t o = x->tail_from; o < x->total;) {
        uint64_t run, at = agx_caplog_place(x, o, &run);
        size_t n = (size_t)AGX_MIN(run, sizeof(piece));

        if (agx_caplog_pread(log->data_fd, piece, n, at, NULL) < n ||
            write_at(log->data_fd, agx_str_bytes(piece, n), to + (o - x->tail_from)) < n)
            return false;
        o += n;
    }
    return true;
}

/* Copies the tail to `to` and moves the index there. */
static bool move_tail(struct agx_caplog *log, uint64_t to)
{
    const uint64_t from = log->index.tail_at;

    if (!copy_tail(log, to))
        return false;
    log->index.tail_at = to;
    if (write_index(log))
        return true;
    log->index.tail_at = from;
    return false;
}

static void unroll(struct agx_caplog *log)
{
    struct agx_caplog_index *x = &log->index;
    uint64_t left_out = x->tail_from - x->head_max, kept = x->total - x->tail_from, place, spare;
    char text[NOTE_SIZE];
    struct agx_str note;
    struct stat st;

    (void)snprintf(text, sizeof(text), "\n[... %llu bytes left out ...]\n",
                   (unsigned long long)left_out);
    note = agx_str_from(text);
    place = x->head_max + note.len;
    spare = place + x->tail_max;
    if (x->tail_at == 0 && !move_tail(log, spare)) {
        /* Removes a partial copy, so that the cap holds. */
        (void)!ftruncate(log->data_fd, (off_t)cap_of(x));
        return;
    }
    if (x->tail_at == spare &&
        (write_at(log->data_fd, note, x->head_max) < note.len || !move_tail(log, place)))
        return;
    if (fstat(log->data_fd, &st) == 0 && (uint64_t)st.st_size > place + kept)
        (void)!ftruncate(log->data_fd, (off_t)(place + kept));
}

void agx_caplog_end(struct agx_caplog *log)
{
    struct agx_caplog_index *x = &log->index;

    if (x->ended)
        return;
    /* No more writes: the bytes that the index skipped ahead of are still intact. */
    x->tail_from = log->kept_from;
    x->ended = true;
    (void)write_index(log);
}

void agx_caplog_finish(struct agx_caplog *log)
{
    agx_caplog_end(log);
    if (log->index.tail_from > log->index.head_max)
        unroll(log);
}

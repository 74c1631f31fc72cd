/* wlog.c: a ring of records, and their copy in a file. Loop thread only. */
#include "runtime/wlog.h"

#include "base/banned.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>

struct record {
    uint64_t time_ms;
    enum agx_wlog_stream stream;
    char *text; /* owned */
    size_t len;
};

struct agx_wlog {
    struct agx_wlog_config config;
    struct record *ring;  /* record number n is at ring[n % max_records] */
    uint64_t first, next; /* numbers of the oldest record and of the next one */
    size_t bytes;
    int dir_fd, file_fd; /* -1: none */
    size_t file_bytes;
};

static const char file_name[] = "worker.log", old_name[] = "worker.log.1";

static int open_file(struct agx_wlog *log, struct agx_error **err)
{
    struct stat st;

    log->file_fd = openat(log->dir_fd, file_name,
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log->file_fd < 0 || fstat(log->file_fd, &st) < 0)
        return agx_error_errno(err, errno, "open '%s/%s'", log->config.dir, file_name);
    log->file_bytes = (size_t)st.st_size;
    return 0;
}

int agx_wlog_open(const struct agx_wlog_config *config, struct agx_wlog **ret_log,
                  struct agx_error **err)
{
    struct agx_wlog *log = agx_new(struct agx_wlog);
    int r = 0;

    log->config = *config;
    log->ring = agx_alloc(config->max_records * sizeof(*log->ring));
    log->first = log->next = 1;
    log->dir_fd = log->file_fd = -1;
    if (config->dir) {
        log->dir_fd = open(config->dir, O_DIRECTORY | O_CLOEXEC);
        r = log->dir_fd < 0 ? agx_error_errno(err, errno, "open log directory '%s'", config->dir)
                            : open_file(log, err);
    }
    if (r < 0) {
        agx_wlog_close(log);
        return r;
    }
    *ret_log = log;
    return 0;
}

struct agx_wlog *agx_wlog_close(struct agx_wlog *log)
{
    if (!log)
        return NULL;
    for (size_t i = 0; i < log->config.max_records; i++)
        free(log->ring[i].text);
    free(log->ring);
    agx_closep(&log->file_fd);
    agx_closep(&log->dir_fd);
    free(log);
    return NULL;
}

static struct record *at(const struct agx_wlog *log, uint64_t seq)
{
    return &log->ring[seq % log->config.max_records];
}

static void drop_oldest(struct agx_wlog *log)
{
    struct record *r = at(log, log->first++);

    log->bytes -= r->len;
    free(r->text);
    *r = (struct record){ 0 };
}

/* The line as text; each invalid byte becomes one U+FFFD. */
static char *to_text(struct agx_str line, size_t *ret_len)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *out = agx_alloc(3 * line.len + 1);
    size_t n = 0;

    if (agx_utf8_valid(line)) {
        memcpy(out, line.len > 0 ? line.ptr : "", line.len);
        *ret_len = line.len;
        return out;
    }
    for (size_t i = 0; i < line.len;) {
        size_t len = 1;

        while (len <= 4 && i + len <= line.len &&
               !agx_utf8_valid((struct agx_str){ line.ptr + i, len }))
            len++;
        if (len > 4 || i + len > line.len) {
            memcpy(out + n, replacement, 3);
            n += 3;
            i++;
            continue;
        }
        memcpy(out + n, line.ptr + i, len);
        n += len;
        i += len;
    }
    *ret_len = n;
    return out;
}

static int wlog_rotate(struct agx_wlog *log, struct agx_error **err)
{
    agx_closep(&log->file_fd);
    log->file_fd = -1;
    if (renameat(log->dir_fd, file_name, log->dir_fd, old_name) < 0)
        return agx_error_errno(err, errno, "rename '%s/%s'", log->config.dir, file_name);
    return open_file(log, err);
}

static void write_file(struct agx_wlog *log, enum agx_wlog_stream stream, struct agx_str text)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(4 * AGX_LOG_TEXT_MAX);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int r = agx_buf_printf(&line, "%s ", stream == AGX_WLOG_STDOUT ? "out" : "err");

    if (r == 0)
        r = agx_buf_append(&line, text);
    if (r == 0)
        r = agx_buf_push(&line, '\n');
    if (r == 0 && log->file_bytes + line.len > log->config.file_max)
        r = wlog_rotate(log, &err);
    if (r == 0)
        r = agx_fd_write_all(log->file_fd, agx_buf_peek(&line), &err);
    if (r == 0) {
        log->file_bytes += line.len;
        return;
    }
    AGX_LOG(AGX_LOG_ERROR, "worker.log_lost", AGX_F_STR("dir", log->config.dir), AGX_F_ERR(err),
            AGX_F_BOOL("ignored", true));
    agx_closep(&log->file_fd);
    log->file_fd = -1;
}

void agx_wlog_append(struct agx_wlog *log, enum agx_wlog_stream stream, struct agx_str line,
                     uint64_t time_ms)
{
    struct record *r;

    if (log->next - log->first == log->config.max_records)
        drop_oldest(log);
    r = at(log, log->next++);
    *r = (struct record){ .time_ms = time_ms, .stream = stream };
    r->text = to_text(line, &r->len);
    log->bytes += r->len;
    while (log->bytes > log->config.max_bytes && log->first + 1 < log->next)
        drop_oldest(log);
    if (log->file_fd >= 0)
        write_file(log, stream, agx_str_bytes(r->text, r->len));
}

bool agx_wlog_read(const struct agx_wlog *log, uint64_t *next, struct agx_wlog_record *ret)
{
    uint64_t seq = AGX_MAX(*next, log->first);
    const struct record *r;

    if (seq >= log->next)
        return false;
    r = at(log, seq);
    *ret = (struct agx_wlog_record){ .seq = seq,
                                     .time_ms = r->time_ms,
                                     .stream = r->stream,
                                     .text = agx_str_bytes(r->text, r->len),
                                     .lost = *next > 0 && seq > *next ? seq - *next : 0 };
    *next = seq + 1;
    return true;
}

uint64_t agx_wlog_next(const struct agx_wlog *log)
{
    return log->next;
}

struct agx_str agx_wlog_peek_last(const struct agx_wlog *log, uint64_t since)
{
    for (uint64_t seq = log->next; seq > AGX_MAX(log->first, since); seq--) {
        const struct record *r = at(log, seq - 1);

        if (r->stream == AGX_WLOG_STDERR && r->len > 0)
            return agx_str_bytes(r->text, r->len);
    }
    return AGX_STR("");
}

/*
 * wlog.h: the worker's output as numbered records: the newest ones in memory, for clients that
 * follow, and, with a configured directory, all of them in a file.
 *
 * Limited in records and bytes: the oldest are dropped first. A reader stores the number of the
 * next record that it wants; records dropped before it read them are reported as a number of lost
 * records. A file that exceeds its size is renamed to `.1` and begun anew.
 */
#ifndef AGX_RUNTIME_WLOG_H
#define AGX_RUNTIME_WLOG_H

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

struct agx_wlog;

struct agx_wlog_config {
    size_t max_records, max_bytes; /* in memory */
    const char *dir;               /* NULL: no file */
    size_t file_max;               /* size at which the file is renamed */
};
#define AGX_WLOG_CONFIG_INIT                                                                       \
    {                                                                                              \
        .max_records = AGX_WLOG_RECORDS, .max_bytes = AGX_WLOG_BYTES, .file_max = AGX_WLOG_FILE    \
    }

enum agx_wlog_stream { AGX_WLOG_STDOUT = 1, AGX_WLOG_STDERR = 2 };

struct agx_wlog_record {
    uint64_t seq;     /* 1, 2, 3, ... */
    uint64_t time_ms; /* since 1970 */
    enum agx_wlog_stream stream;
    struct agx_str text; /* valid UTF-8; borrowed until the next append */
    uint64_t lost;       /* records dropped before this one */
};

int agx_wlog_open(const struct agx_wlog_config *config, struct agx_wlog **ret_log,
                  struct agx_error **err) AGX_MUST_CHECK;
struct agx_wlog *agx_wlog_close(struct agx_wlog *log);

/* Adds a line; invalid UTF-8 becomes U+FFFD. After a failed write the file is no longer written,
 * with one log entry. */
void agx_wlog_append(struct agx_wlog *log, enum agx_wlog_stream stream, struct agx_str line,
                     uint64_t time_ms);

/* The first record from number *next on; advances *next past it. False: none yet. */
bool agx_wlog_read(const struct agx_wlog *log, uint64_t *next, struct agx_wlog_record *ret);

/* The number that the next record will have. */
uint64_t agx_wlog_next(const struct agx_wlog *log);
/* The last line on stderr from number `since` on, or empty: for messages about the worker's death.
 * Borrowed until the next append. */
struct agx_str agx_wlog_peek_last(const struct agx_wlog *log, uint64_t since);

#endif

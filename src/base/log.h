/*
 * log.h: structured logging: one line per event, with typed fields.
 *
 *     AGX_LOG(AGX_LOG_INFO, "sandbox.started",
 *             AGX_F_STR("sandbox", sb->id),
 *             AGX_F_INT("pid", sb->pid));
 *
 * Event names and keys are constants; all variable data are field values. Callers never escape:
 * whatever bytes a value has, the line stays one line and parses. Only the programs log above
 * debug; libraries return errors. Never log secrets, environment values or whole messages.
 *
 * Any thread may log. A line is one write(2) of at most AGX_LOG_LINE_MAX bytes, so lines of several
 * threads or processes do not mix; a longer line is cut and marked (cut=true). A line that cannot
 * be written is dropped. Logging allocates nothing, cannot fail and keeps errno.
 */
#ifndef AGX_BASE_LOG_H
#define AGX_BASE_LOG_H

#include "base/error.h"
#include "base/str.h"

#include <stdatomic.h>

enum agx_log_level { AGX_LOG_DEBUG, AGX_LOG_INFO, AGX_LOG_WARN, AGX_LOG_ERROR };
enum agx_log_format {
    AGX_LOG_LOGFMT, /* key=value, for people */
    AGX_LOG_JSON,   /* an object a line, for machines */
};

struct agx_log_config {
    enum agx_log_level level; /* the lowest that is written */
    enum agx_log_format format;
    int fd; /* the caller owns it */
    /* If not NULL, every line has it and AGX_VERSION: daemon="agboxd" version="1.0". Must outlive
     * the log. */
    const char *daemon;
};
#define AGX_LOG_CONFIG_INIT                                                                        \
    {                                                                                              \
        .level = AGX_LOG_INFO, .format = AGX_LOG_LOGFMT, .fd = STDERR_FILENO                       \
    }

/* Sets the configuration; until then AGX_LOG_CONFIG_INIT applies. */
void agx_log_setup(const struct agx_log_config *c);

/* "debug", "info", "warn", "error"; "logfmt", "json". False for other words. */
bool agx_log_level_parse(struct agx_str word, enum agx_log_level *ret);
bool agx_log_format_parse(struct agx_str word, enum agx_log_format *ret);

enum agx_log_kind {
    AGX_LOG_KIND_STR,
    AGX_LOG_KIND_INT,
    AGX_LOG_KIND_UINT,
    AGX_LOG_KIND_BOOL,
    AGX_LOG_KIND_ERR,
};

/* Made by the AGX_F_ macros only. */
struct agx_log_field {
    const char *key;
    enum agx_log_kind kind;
    union {
        struct agx_str str; /* ptr NULL: null */
        int64_t i;
        uint64_t u;
        bool b;
        const struct agx_error *err;
    } as;
};

#define AGX_F_TEXT(k, s)                                                                           \
    {                                                                                              \
        .key = (k), .kind = AGX_LOG_KIND_STR, .as.str = (s)                                        \
    }
#define AGX_F_STR(k, z) AGX_F_TEXT(k, agx_str_from(z))
#define AGX_F_INT(k, v)                                                                            \
    {                                                                                              \
        .key = (k), .kind = AGX_LOG_KIND_INT, .as.i = (int64_t)(v)                                 \
    }
#define AGX_F_UINT(k, v)                                                                           \
    {                                                                                              \
        .key = (k), .kind = AGX_LOG_KIND_UINT, .as.u = (uint64_t)(v)                               \
    }
#define AGX_F_BOOL(k, v)                                                                           \
    {                                                                                              \
        .key = (k), .kind = AGX_LOG_KIND_BOOL, .as.b = (v)                                         \
    }
/* Two fields: code=NOT_FOUND error="outer: inner: root". */
#define AGX_F_ERR(e)                                                                               \
    {                                                                                              \
        .key = "error", .kind = AGX_LOG_KIND_ERR, .as.err = (e)                                    \
    }

extern _Atomic int agx_log_threshold;

/* The function behind AGX_LOG. fields[0] is the event. */
void agx_log_emit(enum agx_log_level level, const struct agx_log_field *fields, size_t n);

/* Below the level it costs one comparison and does not evaluate the fields. */
#define AGX_LOG(level, event, ...)                                                                 \
    do {                                                                                           \
        if ((int)(level) >= atomic_load_explicit(&agx_log_threshold, memory_order_relaxed)) {      \
            const struct agx_log_field agx_fields_[] = { AGX_F_STR("event", "" event),             \
                                                         ##__VA_ARGS__ };                          \
            agx_log_emit((level), agx_fields_, AGX_ARRAY_LEN(agx_fields_));                        \
        }                                                                                          \
    } while (0)

#endif

/*
 * log.c: builds a line on the stack and writes it at once.
 *
 * The level and the destination are the project's only global state: an event can come from
 * anywhere, and a logger passed through every call would carry no more information.
 *
 * Invariants of a line under construction:
 *  (1) len <= ROOM: finish() always has room to close the line.
 *  (2) once `cut` is set only the closing is added, so that the line parses.
 */
#include "base/log.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>

#define CUT_JSON ",\"cut\":true"
#define CUT_LOGFMT " cut=true"

/* A closing quote, the longer mark, a brace and the newline. */
enum { TAIL = 1 + sizeof(CUT_JSON) - 1 + 2, ROOM = AGX_LOG_LINE_MAX - TAIL };

_Atomic int agx_log_threshold = AGX_LOG_INFO;
static _Atomic int sink_fd = STDERR_FILENO;
static _Atomic int sink_format = AGX_LOG_LOGFMT;
static const char *_Atomic sink_daemon;

static const char *const level_names[] = {
    [AGX_LOG_DEBUG] = "debug",
    [AGX_LOG_INFO] = "info",
    [AGX_LOG_WARN] = "warn",
    [AGX_LOG_ERROR] = "error",
};
static const char *const format_names[] = {
    [AGX_LOG_LOGFMT] = "logfmt",
    [AGX_LOG_JSON] = "json",
};

struct line {
    bool json, cut;
    size_t len;
    char text[AGX_LOG_LINE_MAX];
};

void agx_log_setup(const struct agx_log_config *c)
{
    atomic_store(&sink_fd, c->fd);
    atomic_store(&sink_daemon, c->daemon);
    atomic_store(&sink_format, (int)c->format);
    atomic_store(&agx_log_threshold, (int)c->level);
}

/* Index of the word in the table, or -1. */
static int look_up(struct agx_str word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (agx_str_eq(word, agx_str_from(names[i])))
            return (int)i;
    }
    return -1;
}

bool agx_log_level_parse(struct agx_str word, enum agx_log_level *ret)
{
    int i = look_up(word, level_names, AGX_ARRAY_LEN(level_names));

    if (i >= 0)
        *ret = (enum agx_log_level)i;
    return i >= 0;
}

bool agx_log_format_parse(struct agx_str word, enum agx_log_format *ret)
{
    int i = look_up(word, format_names, AGX_ARRAY_LEN(format_names));

    if (i >= 0)
        *ret = (enum agx_log_format)i;
    return i >= 0;
}

/* Adds all of `s`, or cuts the line here. */
static void log_add(struct line *l, struct agx_str s)
{
    if (l->cut || s.len > ROOM - l->len) {
        l->cut = true;
        return;
    }
    memcpy(l->text + l->len, s.ptr, s.len);
    l->len += s.len;
}

/* Adds closing bytes, for which a cut line has room too. */
static void add_tail(struct line *l, struct agx_str s)
{
    memcpy(l->text + l->len, s.ptr, s.len);
    l->len += s.len;
}

/* The two-character escape of an ASCII character, or NULL. */
static const char *short_escape(char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

/*
 * The code point of a character that a terminal or a line reader may interpret: C0 and C1 controls
 * and the two Unicode line separators. 0 for all others, and for NUL, which the caller handles.
 */
static unsigned control_of(struct agx_str c)
{
    const unsigned char *p = (const unsigned char *)c.ptr;

    if (c.len == 1 && (p[0] < 0x20 || p[0] == 0x7f))
        return p[0];
    if (c.len == 2 && p[0] == 0xc2 && p[1] < 0xa0)
        return p[1];
    if (c.len == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
        return 0x2000 + (p[2] - 0x80u);
    return 0;
}

/* Adds the first character of `s`, escaped if needed; returns its length in `s`. */
static size_t add_char(struct line *l, struct agx_str s)
{
    size_t n = agx_utf8_sequence(s);
    struct agx_str c = { s.ptr, n };
    const char *escape = short_escape(s.ptr[0]);
    char hex[8];

    if (escape) {
        log_add(l, agx_str_from(escape));
        return 1;
    }
    if (n == 0) { /* not UTF-8; JSON cannot carry the byte */
        (void)snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)s.ptr[0]);
        log_add(l, l->json ? AGX_STR("\\ufffd") : agx_str_from(hex));
        return 1;
    }
    if (s.ptr[0] == '\0' || control_of(c) > 0) {
        (void)snprintf(hex, sizeof(hex), "\\u%04x", control_of(c));
        c = agx_str_from(hex);
    }
    log_add(l, c);
    return n;
}

static void add_escaped(struct line *l, struct agx_str s)
{
    while (s.len > 0 && !l->cut)
        s = agx_str_skip(s, add_char(l, s));
}

/* A comma or blank if it is not the first, the key and its '=' or ':'. */
static void add_key(struct line *l, const char *key)
{
    if (l->json)
        log_add(l, l->len == 0 ? AGX_STR("{\"") : AGX_STR(",\""));
    else if (l->len > 0)
        log_add(l, AGX_STR(" "));
    for (; *key; key++) {
        bool plain = (*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z') ||
                     (*key >= '0' && *key <= '9') || *key == '_' || *key == '.';

        log_add(l, plain ? agx_str_bytes(key, 1) : AGX_STR("_"));
    }
    log_add(l, l->json ? AGX_STR("\":") : AGX_STR("="));
}

/* Key and value, both or neither. */
static void add_word(struct line *l, const char *key, struct agx_str word)
{
    size_t mark = l->len;

    add_key(l, key);
    log_add(l, word);
    if (l->cut)
        l->len = mark;
}

/* In logfmt a plain value needs no quotes. */
static bool is_bare(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || s.ptr[i] == '"' || s.ptr[i] == '=' ||
            s.ptr[i] == '\\')
            return false;
    }
    return s.len > 0;
}

/* Key and opening quote, both or neither; true when the value may follow. */
static bool open_text(struct line *l, const char *key)
{
    size_t mark = l->len;

    add_key(l, key);
    log_add(l, AGX_STR("\""));
    if (l->cut)
        l->len = mark;
    return !l->cut;
}

static void add_text(struct line *l, const char *key, struct agx_str s)
{
    if (!s.ptr) {
        add_word(l, key, AGX_STR("null"));
    } else if (!l->json && is_bare(s) && s.len < 100) { /* short: a long one is cut inside */
        add_word(l, key, s);
    } else if (open_text(l, key)) {
        add_escaped(l, s);
        add_tail(l, AGX_STR("\""));
    }
}

static void add_error(struct line *l, const char *key, const struct agx_error *e)
{
    if (!e) {
        add_word(l, key, AGX_STR("null"));
        return;
    }
    add_text(l, "code", agx_str_from(agx_code_name(e->code)));
    if (!open_text(l, key))
        return;
    for (; e && !l->cut; e = e->cause) {
        add_escaped(l, agx_str_from(e->message));
        add_escaped(l, e->cause ? AGX_STR(": ") : AGX_STR(""));
    }
    add_tail(l, AGX_STR("\""));
}

static void add_field(struct line *l, const struct agx_log_field *f)
{
    char number[24];

    switch (f->kind) {
    case AGX_LOG_KIND_STR:
        add_text(l, f->key, f->as.str);
        break;
    case AGX_LOG_KIND_INT:
        (void)snprintf(number, sizeof(number), "%" PRId64, f->as.i);
        add_word(l, f->key, agx_str_from(number));
        break;
    case AGX_LOG_KIND_UINT:
        (void)snprintf(number, sizeof(number), "%" PRIu64, f->as.u);
        add_word(l, f->key, agx_str_from(number));
        break;
    case AGX_LOG_KIND_BOOL:
        add_word(l, f->key, f->as.b ? AGX_STR("true") : AGX_STR("false"));
        break;
    case AGX_LOG_KIND_ERR:
        add_error(l, f->key, f->as.err);
        break;
    }
}

static void log_finish(struct line *l)
{
    if (l->cut)
        add_tail(l, l->json ? AGX_STR(CUT_JSON) : AGX_STR(CUT_LOGFMT));
    add_tail(l, l->json ? AGX_STR("}\n") : AGX_STR("\n"));
}

void agx_log_emit(enum agx_log_level level, const struct agx_log_field *fields, size_t n)
{
    struct line l = { .json = atomic_load(&sink_format) == AGX_LOG_JSON };
    const char *daemon = atomic_load(&sink_daemon);
    char time_text[AGX_CLOCK_TEXT_SIZE];
    int saved = errno;
    ssize_t w;

    add_text(&l, "time", agx_str_from(agx_clock_format(agx_clock_wall_ns(), time_text)));
    add_text(&l, "level", agx_str_from(level_names[level]));
    if (daemon) {
        add_text(&l, "daemon", agx_str_from(daemon));
        add_text(&l, "version", AGX_STR(AGX_VERSION));
    }
    for (size_t i = 0; i < n && !l.cut; i++)
        add_field(&l, &fields[i]);
    log_finish(&l);
    do
        w = write(atomic_load(&sink_fd), l.text, l.len);
    while (w < 0 && errno == EINTR);
    errno = saved;
}

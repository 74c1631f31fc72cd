/* show.c: formats values for people. */
#include "cli/show.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/banned.h"

#define NS_PER_S INT64_C(1000000000)

struct range {
    uint32_t first, last;
};

/* Characters beyond ASCII that a terminal interprets or does not show: C1, soft hyphen, direction
 * marks and other zero-width characters that can deceive, separators, tags. */
static const struct range unseen[] = {
    { 0x80, 0x9f },     { 0xad, 0xad },       { 0x61c, 0x61c },   { 0x180e, 0x180e },
    { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
    { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

/* The blocks of nearly all combining and wide characters: enough for a table. */
static const struct range combining[] = {
    { 0x300, 0x36f },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
    { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },
};
static const struct range wide[] = {
    { 0x1100, 0x115f },   { 0x2e80, 0xa4cf },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
    { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
    { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
};

static bool among(const struct range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    }
    return false;
}

/* The code point of a character that agx_utf8_sequence() accepted. */
static uint32_t code_point(const char *p, size_t n)
{
    uint32_t c = (uint8_t)p[0];

    if (n > 1)
        c &= 0x7fU >> n;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((uint8_t)p[i] & 0x3f);
    return c;
}

static bool is_visible(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !among(unseen, AGX_ARRAY_LEN(unseen), c);
}

int agx_show_text(struct agx_buf *out, struct agx_str text)
{
    int r = 0;

    while (r == 0 && text.len > 0) {
        size_t n = agx_utf8_sequence(text);
        uint32_t c = n > 0 ? code_point(text.ptr, n) : 0;

        if (n == 0)
            r = agx_buf_printf(out, "\\x%02x", (uint8_t)text.ptr[0]);
        else if (is_visible(c))
            r = agx_buf_append(out, (struct agx_str){ text.ptr, n });
        else
            r = agx_buf_printf(out, "\\u{%x}", c);
        text = agx_str_skip(text, n > 0 ? n : 1);
    }
    return r;
}

int agx_show_line(struct agx_buf *out, const char *name, struct agx_str text)
{
    if (text.len == 0)
        return 0;
    if (agx_buf_printf(out, "%s=", name) < 0 || agx_show_text(out, text) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return agx_buf_push(out, '\n');
}

size_t agx_show_width(struct agx_str text)
{
    size_t width = 0;

    while (text.len > 0) {
        size_t n = agx_utf8_sequence(text);
        uint32_t c = n > 0 ? code_point(text.ptr, n) : 0;

        if (among(wide, AGX_ARRAY_LEN(wide), c))
            width += 2;
        else if (!among(combining, AGX_ARRAY_LEN(combining), c))
            width++;
        text = agx_str_skip(text, n > 0 ? n : 1);
    }
    return width;
}

char *agx_show_span(int64_t ns, char out[AGX_SHOW_SIZE])
{
    int64_t s = ns > 0 ? ns / NS_PER_S : 0;

    if (s < 60)
        (void)snprintf(out, AGX_SHOW_SIZE, "%ds", (int)s);
    else if (s < 60 * 60)
        (void)snprintf(out, AGX_SHOW_SIZE, "%dm", (int)(s / 60));
    else if (s < 48 * 60 * 60)
        (void)snprintf(out, AGX_SHOW_SIZE, "%dh", (int)(s / (60 * 60)));
    else
        (void)snprintf(out, AGX_SHOW_SIZE, "%dd", (int)(s / (24 * 60 * 60)));
    return out;
}

char *agx_show_time(int64_t wall_ns, char out[AGX_SHOW_SIZE])
{
    char text[AGX_CLOCK_TEXT_SIZE];
    const char *dot = strrchr(agx_clock_format(wall_ns, text), '.');

    (void)snprintf(out, AGX_SHOW_SIZE, "%.*sZ", dot ? (int)(dot - text) : 0, text);
    return out;
}

/* Columns for a name in a line that must not wrap; its end is the most specific. */
#define NAME_COLUMNS 32
#define BYTES_PER_MB 1e6

int agx_show_pull(struct agx_buf *out, const struct agx_pull *pull)
{
    struct agx_str image = agx_str_from(pull->image);
    bool cut = image.len > NAME_COLUMNS;
    int r = agx_buf_printf(out, "Pulling %s", cut ? "..." : "");

    if (cut)
        image = agx_str_skip(image, image.len - NAME_COLUMNS);
    if (r == 0)
        r = agx_show_text(out, image);
    if (r == 0 && pull->layers_total > 0)
        r = agx_buf_printf(out, ": %" PRIu32 "/%" PRIu32 " layers", pull->layers_done,
                           pull->layers_total);
    if (r == 0 && pull->bytes_total > 0)
        r = agx_buf_printf(out, ", %.1f/%.1f MB", (double)pull->bytes_done / BYTES_PER_MB,
                           (double)pull->bytes_total / BYTES_PER_MB);
    return r;
}

char *agx_show_bytes(uint64_t bytes, char out[AGX_SHOW_SIZE])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 999.95 && unit + 1 < AGX_ARRAY_LEN(units)) { /* which rounds up to 1000.0 */
        value /= 1000;
        unit++;
    }
    (void)snprintf(out, AGX_SHOW_SIZE, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

/* "sha256:" and the number of digits that identify an image to people. */
#define ID_ALGORITHM "sha256:"
enum { ID_DIGITS = 12 };

struct agx_str agx_show_image_id(const char *id)
{
    struct agx_str digits = agx_str_from(id);

    if (strncmp(id, ID_ALGORITHM, sizeof(ID_ALGORITHM) - 1) != 0)
        return digits;
    digits = agx_str_skip(digits, sizeof(ID_ALGORITHM) - 1);
    digits.len = AGX_MIN(digits.len, (size_t)ID_DIGITS);
    return digits;
}

enum { BAR_COLUMNS = 10 };

int agx_show_bar(struct agx_buf *out, uint64_t done, uint64_t total)
{
    static const char full[] = "==========", none[] = "          ";
    int n;

    if (total == 0)
        return 0;
    n = (int)((double)AGX_MIN(done, total) / (double)total * BAR_COLUMNS);
    return agx_buf_printf(out, "[%.*s%s%.*s]", n, full, n < BAR_COLUMNS ? ">" : "",
                          n < BAR_COLUMNS ? BAR_COLUMNS - 1 - n : 0, none);
}

char *agx_show_seconds(uint64_t ns, char out[AGX_SHOW_SIZE])
{
    uint64_t tenths = ns / 100000000;

    (void)snprintf(out, AGX_SHOW_SIZE, "%llu.%llus", (unsigned long long)(tenths / 10),
                   (unsigned long long)(tenths % 10));
    return out;
}

static const char *const state_names[AGX_STATE_COUNT] = {
    [AGX_STATE_NONE] = "Unknown",    [AGX_STATE_PENDING] = "Pending",
    [AGX_STATE_READY] = "Ready",     [AGX_STATE_FAILED] = "Failed",
    [AGX_STATE_STOPPED] = "Stopped", [AGX_STATE_DELETING] = "Deleting",
    [AGX_STATE_DELETED] = "Deleted",
};

const char *agx_show_state(enum agx_state state)
{
    return state_names[state < AGX_STATE_COUNT ? state : AGX_STATE_NONE];
}

enum agx_state agx_show_find_state(const char *name)
{
    for (int i = AGX_STATE_NONE + 1; i < AGX_STATE_COUNT; i++) {
        if (strcasecmp(state_names[i], name) == 0)
            return (enum agx_state)i;
    }
    return AGX_STATE_NONE;
}

const char *agx_show_exec_state(enum agx_exec_state state)
{
    switch (state) {
    case AGX_EXEC_RUNNING:
        return "Running";
    case AGX_EXEC_FINISHED:
        return "Finished";
    case AGX_EXEC_FAILED:
        return "Failed";
    case AGX_EXEC_CANCELLED:
        return "Cancelled";
    default:
        return "Unknown";
    }
}

int agx_show_pairs(struct agx_buf *out, const struct agx_pairs *pairs)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < pairs->len; i++)
        r = agx_buf_printf(out, "%s%s=%s", i > 0 ? "," : "", pairs->items[i].key,
                           pairs->items[i].value);
    return r;
}

int agx_show_words(struct agx_buf *out, const struct agx_words *words)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < words->len; i++)
        r = agx_buf_printf(out, "%s%s", i > 0 ? " " : "", words->items[i]);
    return r;
}

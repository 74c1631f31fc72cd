/* show_usage.c: prints figures with units; missing ones are left out. */
#include "cli/show_usage.h"

#include "cli/show.h"

#include <inttypes.h>

#include "base/banned.h"

enum { LINE_MAX_BYTES = 256, NS_PER_MS = 1000000, MS_PER_S = 1000 };

/* The format of one figure: a word before it, its unit, a word after it. */
struct figure {
    enum agx_resource_usage_figure which;
    const char *before;
    enum { UNIT_BYTES, UNIT_COUNT, UNIT_NS } unit;
    const char *after;
};

struct line {
    const char *name;
    struct figure figures[4]; /* without the first there is no line */
    size_t n;
};

static const struct line lines[] = {
    { "cpu", { { AGX_USAGE_CPU_NS, "", UNIT_NS, "" } }, 1 },
    { "memory",
      { { AGX_USAGE_MEMORY, "", UNIT_BYTES, "" },
        { AGX_USAGE_MEMORY_LIMIT, " of ", UNIT_BYTES, "" },
        { AGX_USAGE_MEMORY_PEAK, ", peak ", UNIT_BYTES, "" } },
      3 },
    { "pids",
      { { AGX_USAGE_PIDS, "", UNIT_COUNT, "" }, { AGX_USAGE_PIDS_LIMIT, " of ", UNIT_COUNT, "" } },
      2 },
    { "io",
      { { AGX_USAGE_IO_READ, "", UNIT_BYTES, " read" },
        { AGX_USAGE_IO_WRITTEN, ", ", UNIT_BYTES, " written" } },
      2 },
    { "disk",
      { { AGX_USAGE_DISK, "", UNIT_BYTES, "" }, { AGX_USAGE_DISK_LIMIT, " of ", UNIT_BYTES, "" } },
      2 },
    { "network",
      { { AGX_USAGE_RX, "", UNIT_BYTES, " received" },
        { AGX_USAGE_RX_PACKETS, " (", UNIT_COUNT, " packets)" },
        { AGX_USAGE_TX, ", ", UNIT_BYTES, " sent" },
        { AGX_USAGE_TX_PACKETS, " (", UNIT_COUNT, " packets)" } },
      4 },
};

static int put_figure(struct agx_buf *out, const struct figure *f, uint64_t value)
{
    char text[AGX_SHOW_SIZE];
    uint64_t ms = value / NS_PER_MS;

    if (f->unit == UNIT_BYTES)
        return agx_buf_printf(out, "%s%s%s", f->before, agx_show_bytes(value, text), f->after);
    if (f->unit == UNIT_COUNT)
        return agx_buf_printf(out, "%s%" PRIu64 "%s", f->before, value, f->after);
    return agx_buf_printf(out, "%s%" PRIu64 ".%03" PRIu64 "s%s", f->before, ms / MS_PER_S,
                          ms % MS_PER_S, f->after);
}

static int put_line(struct agx_buf *out, const char *companion, const struct line *l,
                    const struct agx_resource_usage *use)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(LINE_MAX_BYTES);
    int r = agx_resource_usage_has(use, l->figures[0].which) ? 0 : 1;

    for (size_t i = 0; r == 0 && i < l->n; i++) {
        const struct figure *f = &l->figures[i];

        if (agx_resource_usage_has(use, f->which))
            r = put_figure(&text, f, use->figures[f->which]);
    }
    if (r != 0)
        return r < 0 ? r : 0;
    if (companion)
        r = agx_show_text(out, agx_str_from(companion));
    if (r == 0 && companion)
        r = agx_buf_push(out, '.');
    return r < 0 ? r : agx_show_line(out, l->name, agx_buf_peek(&text));
}

int agx_show_usage(struct agx_buf *out, const char *companion, const struct agx_resource_usage *use)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(lines); i++)
        r = put_line(out, companion, &lines[i], use);
    return r;
}

/* progress.c: the progress line. */
#include "cli/progress.h"

#include "base/clock.h"
#include "cli/show.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

enum { TICK_MS = 100 };

/* Moves to the first column and clears the line. */
#define ERASE "\r\033[K"

void agx_progress_begin(struct agx_progress *p, const char *fmt, ...)
{
    va_list ap;

    *p = (struct agx_progress){ .began_ns = agx_clock_ns(), .live = isatty(STDERR_FILENO) };
    va_start(ap, fmt);
    (void)vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
    if (p->live)
        agx_progress_tick(p);
    else
        fprintf(stderr, "%s\n", p->text);
}

int agx_progress_wait_ms(const struct agx_progress *p)
{
    return p->live ? TICK_MS : -1;
}

void agx_progress_tick(struct agx_progress *p)
{
    static const char spinner[] = "|/-\\";
    const char *text = p->note[0] ? p->note : p->text;
    char seconds[AGX_SHOW_SIZE];

    if (p->live)
        fprintf(stderr, ERASE "%c %s %s", spinner[p->turn++ % 4], text,
                agx_show_seconds(agx_progress_ns(p), seconds));
}

void agx_progress_note(struct agx_progress *p, struct agx_str note)
{
    (void)snprintf(p->note, sizeof(p->note), "%.*s", AGX_STR_ARG(note));
}

void agx_progress_end(struct agx_progress *p)
{
    if (p->live)
        fputs(ERASE, stderr);
}

uint64_t agx_progress_ns(const struct agx_progress *p)
{
    return agx_clock_ns() - p->began_ns;
}

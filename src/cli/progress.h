/*
 * progress.h: "Waiting for ..." on stderr. On a terminal it is a line that shows that time passes
 * and that goes away at the end; elsewhere it is written once.
 */
#ifndef AGX_CLI_PROGRESS_H
#define AGX_CLI_PROGRESS_H

#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct agx_progress {
    char text[320];
    char note[160]; /* shown instead of the text; empty: there is none */
    uint64_t began_ns;
    unsigned turn;
    bool live; /* stderr is a terminal */
};

void agx_progress_begin(struct agx_progress *p, const char *fmt, ...) AGX_PRINTF(2, 3);
/* How long the caller may wait before the next tick, for agx_rpc_reply_next(); -1: for ever. */
int agx_progress_wait_ms(const struct agx_progress *p);
void agx_progress_tick(struct agx_progress *p);
/* What goes on, from the next tick on; empty: only that time passes. Its end may be cut. */
void agx_progress_note(struct agx_progress *p, struct agx_str note);
/* Takes the line away, so that others can write. */
void agx_progress_end(struct agx_progress *p);
/* Since it began. */
uint64_t agx_progress_ns(const struct agx_progress *p);

#endif

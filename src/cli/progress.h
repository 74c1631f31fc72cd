/*
 * progress.h: "Waiting for ..." on stderr. On a terminal it is a line with the elapsed time that is
 * erased at the end; elsewhere it is written once.
 */
#ifndef AGX_CLI_PROGRESS_H
#define AGX_CLI_PROGRESS_H

#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct agx_progress {
    char text[320];
    char note[160]; /* shown instead of the text; empty: none */
    uint64_t began_ns;
    unsigned turn;
    bool live; /* stderr is a terminal */
};

void agx_progress_begin(struct agx_progress *p, const char *fmt, ...) AGX_PRINTF(2, 3);
/* How long the caller may wait before the next tick, for agx_grpc_reply_next(); -1: for ever. */
int agx_progress_wait_ms(const struct agx_progress *p);
void agx_progress_tick(struct agx_progress *p);
/* Sets the note shown from the next tick on; empty: the text again. It may be cut. */
void agx_progress_note(struct agx_progress *p, struct agx_str note);
/* Erases the line, so that other output can follow. */
void agx_progress_end(struct agx_progress *p);
/* Time since it began. */
uint64_t agx_progress_ns(const struct agx_progress *p);

#endif

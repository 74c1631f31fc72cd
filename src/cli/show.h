/*
 * show.h: formats values for people. Text from a server is never printed verbatim: a label or a
 * message may contain terminal escapes.
 */
#ifndef AGX_CLI_SHOW_H
#define AGX_CLI_SHOW_H

#include "base/buf.h"
#include "core/event.h"
#include "core/pairs.h"
#include "core/pull.h"

/*
 * Appends the text with every invisible character escaped: control characters (C0, DEL, C1), line
 * and paragraph separators and direction marks as "\u{85}", bytes that are not UTF-8 as "\xff".
 * Blanks stay.
 */
int agx_show_text(struct agx_buf *out, struct agx_str text) AGX_MUST_CHECK;

/* Appends a line "name=text", escaped as above; nothing if the text is empty. */
int agx_show_line(struct agx_buf *out, const char *name, struct agx_str text) AGX_MUST_CHECK;

/* Width in columns: combining characters have 0, wide ones 2, others 1. */
size_t agx_show_width(struct agx_str text);

/* Room for the longest result below and its NUL. */
#define AGX_SHOW_SIZE 32

/* "12s", "5m", "3h", "12d": whole units, rounded down, at least 0. Returns `out`. */
char *agx_show_span(int64_t ns, char out[AGX_SHOW_SIZE]);
/* "2026-01-31T23:59:59Z". Returns `out`. */
char *agx_show_time(int64_t wall_ns, char out[AGX_SHOW_SIZE]);
/* "12.3s", for the lines at the end of a wait. Returns `out`. */
char *agx_show_seconds(uint64_t ns, char out[AGX_SHOW_SIZE]);

/* "512 B", "1.5 kB", "12.3 MB": in steps of a thousand, as registries count. Returns `out`. */
char *agx_show_bytes(uint64_t bytes, char out[AGX_SHOW_SIZE]);
/* The first twelve digits of an image's id, borrowed from it; other text is unchanged. */
struct agx_str agx_show_image_id(const char *id);

/* Appends "[====>     ]"; nothing if `total` is 0. */
int agx_show_bar(struct agx_buf *out, uint64_t done, uint64_t total) AGX_MUST_CHECK;

/* Appends "Pulling redis:7: 3/5 layers, 12.3/40.0 MB"; a long name is cut at its start. */
int agx_show_pull(struct agx_buf *out, const struct agx_pull *pull) AGX_MUST_CHECK;

/* "Ready"; "Unknown" for NONE. */
const char *agx_show_state(enum agx_state state);
const char *agx_show_exec_state(enum agx_exec_state state);
/* The state of that name, case-insensitive; NONE: unknown. */
enum agx_state agx_show_find_state(const char *name);

/* Appends "k=v,k=v", as it is. */
int agx_show_pairs(struct agx_buf *out, const struct agx_pairs *pairs) AGX_MUST_CHECK;
/* Appends the words with blanks between them, as they are. */
int agx_show_words(struct agx_buf *out, const struct agx_words *words) AGX_MUST_CHECK;

#endif

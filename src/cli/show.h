/*
 * show.h: values as people read them. What comes from a server is never printed as it is: a
 * label or a message may hold what a terminal would obey.
 */
#ifndef AGX_CLI_SHOW_H
#define AGX_CLI_SHOW_H

#include "base/buf.h"
#include "core/event.h"
#include "core/pairs.h"
#include "core/pull.h"

/*
 * Appends the text with everything that is no visible character as an escape: control characters
 * (C0, DEL, C1), line and paragraph separators and marks of direction as "\u{85}", bytes that are
 * no UTF-8 as "\xff". A blank stays one.
 */
int agx_show_text(struct agx_buf *out, struct agx_str text) AGX_MUST_CHECK;

/* Appends a line "name=text", with the text as above; nothing where that is empty. */
int agx_show_line(struct agx_buf *out, const char *name, struct agx_str text) AGX_MUST_CHECK;

/* Columns that the text takes: its characters; marks that combine take none, wide ones two. */
size_t agx_show_width(struct agx_str text);

/* Room for the longest of those below, and its NUL. */
#define AGX_SHOW_SIZE 32

/* "12s", "5m", "3h", "12d": whole units, cut; nothing is negative. Returns `out`. */
char *agx_show_span(int64_t ns, char out[AGX_SHOW_SIZE]);
/* "2026-01-31T23:59:59Z". Returns `out`. */
char *agx_show_time(int64_t wall_ns, char out[AGX_SHOW_SIZE]);
/* "12.3s", as the lines that end a wait have it. Returns `out`. */
char *agx_show_seconds(uint64_t ns, char out[AGX_SHOW_SIZE]);

/* "512 B", "1.5 kB", "12.3 MB": in steps of a thousand, as registries count. Returns `out`. */
char *agx_show_bytes(uint64_t bytes, char out[AGX_SHOW_SIZE]);
/* The first twelve digits of an image's id, borrowed of it; all of what is none. */
struct agx_str agx_show_image_id(const char *id);

/* Appends "[====>     ]"; nothing where `total` is 0. */
int agx_show_bar(struct agx_buf *out, uint64_t done, uint64_t total) AGX_MUST_CHECK;

/* Appends "Pulling redis:7: 3/5 layers, 12.3/40.0 MB"; a long name is cut at its front. */
int agx_show_pull(struct agx_buf *out, const struct agx_pull *pull) AGX_MUST_CHECK;

/* "Ready"; "Unknown" for NONE. */
const char *agx_show_state(enum agx_state state);
const char *agx_show_exec_state(enum agx_exec_state state);
/* The state of that name, in either case; NONE: there is none. */
enum agx_state agx_show_find_state(const char *name);

/* Appends "k=v,k=v", as it is. */
int agx_show_pairs(struct agx_buf *out, const struct agx_pairs *pairs) AGX_MUST_CHECK;
/* Appends the words with blanks between them, as they are. */
int agx_show_words(struct agx_buf *out, const struct agx_words *words) AGX_MUST_CHECK;

#endif

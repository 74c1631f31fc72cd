/*
 * capture.h: reads standard output of other processes from a pipe, line by line.
 *
 * One capture serves every process that the server starts, one after another, and their children:
 * it ends with the server, not with a process. A line longer than the limit is delivered in pieces;
 * bytes that are not text are delivered too.
 */
#ifndef AGX_RUNTIME_CAPTURE_H
#define AGX_RUNTIME_CAPTURE_H

#include "base/error.h"
#include "base/str.h"

struct agx_loop;
struct agx_capture;

/* One line without its newline; borrowed for the call. */
typedef void (*agx_line_fn)(void *user, struct agx_str line);

/* Makes the pipe and starts reading. */
int agx_capture_open(struct agx_loop *l, agx_line_fn on_line, void *user,
                     struct agx_capture **ret_capture, struct agx_error **err) AGX_MUST_CHECK;
/* The write end; borrowed. It blocks: a writer that is faster than we read has to wait. */
int agx_capture_fd(const struct agx_capture *c);
/* Delivers the available lines, without waiting for the loop. */
void agx_capture_read(struct agx_capture *c);
/* Delivers the rest, also a last line without a newline, and ends. Returns NULL and accepts it.
 */
struct agx_capture *agx_capture_close(struct agx_capture *c);

#endif

/*
 * spool.h: writes bytes from the loop to a file: a blob of a registry, the stream of an import. A
 * thread writes them to an unnamed file, which disappears with its last descriptor.
 */
#ifndef AGX_IMAGE_SPOOL_H
#define AGX_IMAGE_SPOOL_H

#include "base/str.h"
#include "loop/loop.h"

struct agx_images;
struct agx_spool;

/* Loop thread, never inside a call here: agx_spool_write(), which returned 1, accepts more, or will
 * report an error. */
typedef void (*agx_spool_ready_fn)(void *user);

/* `max_bytes`: a longer stream is -AGX_RESOURCE_EXHAUSTED. `ready` may be NULL if the writer
 * ignores the 1. */
int agx_spool_open(struct agx_images *s, uint64_t max_bytes, agx_spool_ready_fn ready, void *user,
                   struct agx_spool **ret_spool, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Takes all the bytes (it copies them). 0: continue; 1: taken, but pause until `ready`; negative:
 * the file could not be written, and no more can be.
 */
int agx_spool_write(struct agx_spool *sp, struct agx_str bytes,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Bytes taken so far: where a broken transfer continues. */
uint64_t agx_spool_size(const struct agx_spool *sp);

/* Discards everything: the transfer starts again. */
void agx_spool_rewind(struct agx_spool *sp);

/* At any time; `ready` is not called any more. Accepts NULL; returns NULL. */
struct agx_spool *agx_spool_close(struct agx_spool *sp);

#endif

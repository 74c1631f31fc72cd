/*
 * spool.h: bytes that come by the loop and are needed as a file: a blob of a registry, the stream
 * of an import. They are written by a thread, to a file without a name that is gone with its last
 * descriptor.
 */
#ifndef AGX_IMAGE_SPOOL_H
#define AGX_IMAGE_SPOOL_H

#include "base/str.h"
#include "loop/loop.h"

struct agx_images;
struct agx_spool;

/* Loop thread, never inside a call here: agx_spool_write(), which had said 1, takes more; or has an
 * error to tell. */
typedef void (*agx_spool_ready_fn)(void *user);

/* `max_bytes`: a longer stream is -AGX_RESOURCE_EXHAUSTED. `ready` may be NULL when the writer does
 * not look at the 1. */
int agx_spool_open(struct agx_images *s, uint64_t max_bytes, agx_spool_ready_fn ready, void *user,
                   struct agx_spool **ret_spool, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Takes all the bytes (it copies them). 0: go on; 1: taken, but pause until `ready`; negative: the
 * file could not be written, and nothing more can be.
 */
int agx_spool_write(struct agx_spool *sp, struct agx_str bytes,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Bytes taken so far: where a broken transfer goes on. */
uint64_t agx_spool_size(const struct agx_spool *sp);

/* Throws away all that was taken: the transfer begins anew. */
void agx_spool_rewind(struct agx_spool *sp);

/* At any moment; `ready` comes no more. Accepts NULL; returns NULL. */
struct agx_spool *agx_spool_close(struct agx_spool *sp);

#endif

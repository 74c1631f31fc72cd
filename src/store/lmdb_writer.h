/*
 * lmdb_writer.h: the commit thread.
 *
 * It takes all waiting batches, up to AGX_STORE_GROUP_MAX bytes, and stores them in one
 * transaction; batches that arrive meanwhile form the next group. When a group cannot be stored,
 * each of its batches is tried alone, so that a batch too large for the disk does not fail the
 * others.
 */
#ifndef AGX_STORE_LMDB_WRITER_H
#define AGX_STORE_LMDB_WRITER_H

#include "store/lmdb_env.h"

struct agx_lmdb_writer;

/* `notify` runs on the writer's thread when batches are finished. */
int agx_lmdb_writer_start(struct agx_lmdb_env *e, bool grouping, void (*notify)(void *user),
                          void *user, struct agx_lmdb_writer **ret_writer,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Any thread: moves all of `from` to the end of the waiting batches. */
void agx_lmdb_writer_push(struct agx_lmdb_writer *w, struct agx_store_queue *from);

/* Any thread: moves finished batches (stored, refused or failed) into `to`, in the order of
 * pushing. A batch that was not stored has its error. */
void agx_lmdb_writer_take(struct agx_lmdb_writer *w, struct agx_store_queue *to);

void agx_lmdb_writer_stats(struct agx_lmdb_writer *w, struct agx_store_stats *ret);

/* Requires that all pushed batches were taken. Ends the thread, frees the writer. Accepts NULL. */
struct agx_lmdb_writer *agx_lmdb_writer_stop(struct agx_lmdb_writer *w);

#endif

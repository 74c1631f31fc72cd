/* lmdb_verify.h: checks every page and record of a store's file, in its own process. */
#ifndef AGX_STORE_LMDB_VERIFY_H
#define AGX_STORE_LMDB_VERIFY_H

#include "base/error.h"

/*
 * Blocks until a child has read all of <dir>/data.mdb and checked that every table can be walked in
 * order, that each key is found, that each checksum is right and that the list of free pages is
 * valid. A page that would crash our process crashes the child instead: -AGX_DATA_LOSS.
 * -AGX_DEADLINE_EXCEEDED when it takes longer than `timeout_s`. Nothing may write meanwhile.
 *
 * The child is a fork without exec, so the process should have no other threads yet.
 */
int agx_lmdb_verify(const char *dir, unsigned timeout_s, struct agx_error **err) AGX_MUST_CHECK;

#endif

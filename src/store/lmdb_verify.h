/* lmdb_verify.h: looks at every page and record of a store's file, in a process of its own. */
#ifndef AGX_STORE_LMDB_VERIFY_H
#define AGX_STORE_LMDB_VERIFY_H

#include "base/error.h"

/*
 * Blocks until all of <dir>/data.mdb has been read by a child: that every table can be walked in
 * order, each key be found, each checksum holds, and the list of free pages is sound. A page that
 * would end our process ends the child instead: -AGX_DATA_LOSS. -AGX_DEADLINE_EXCEEDED when it
 * takes longer than `timeout_s`. Nobody may write meanwhile.
 *
 * The child is a fork without exec, so the process should have no other thread yet.
 */
int agx_lmdb_verify(const char *dir, unsigned timeout_s, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * purge.h: what is left of purged sandboxes: their events and execs, taken out of the store page by
 * page.
 *
 * The sandbox itself goes in one step, together with a note in the table `purges`. What hangs on it
 * may be a million records, too many for one batch and for one turn of the loop. The note is
 * removed with the last page, so a start goes on where the last process was.
 */
#ifndef AGX_DAEMON_PURGE_H
#define AGX_DAEMON_PURGE_H

#include "daemon/engine.h"

/* There may be something to remove. Nothing while a page is on its way: it is followed by the next.
 */
void agx_purge_go(struct agx_engine *e);

#endif

/*
 * purge.h: removes what purged sandboxes left in the store, events and execs, page by page.
 *
 * The sandbox's own record is removed in one step, together with adding a note to the table
 * `purges`. Its events and execs may be a million records, too many for one batch and for one turn
 * of the loop. The note is removed with the last page, so a start continues where the last process
 * stopped.
 */
#ifndef AGX_DAEMON_MANAGER_PURGE_H
#define AGX_DAEMON_MANAGER_PURGE_H

#include "daemon/manager/manager.h"

/* Starts to purge if there is anything to remove. No effect while a page is being written: the next
 * page follows it anyway. */
void agx_purge_go(struct agx_manager *e);

#endif

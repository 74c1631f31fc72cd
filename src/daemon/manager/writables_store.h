/*
 * writables_store.h: stores the directories that sandboxes have, or had, as writable mounts, in a
 * table that only grows.
 */
#ifndef AGX_DAEMON_MANAGER_WRITABLES_STORE_H
#define AGX_DAEMON_MANAGER_WRITABLES_STORE_H

#include "backend/files/writables.h"
#include "store/store.h"

/* Loads what the store has, and keeps in it what comes. Both outlive all keeps. A record that is
 * damaged is logged, and no symlink is followed then (agx_writables_lose()). */
int agx_writables_store_open(struct agx_writables *w, struct agx_store *st,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * store_lmdb.h: the store on disk, in one LMDB file.
 *
 * Opened once, before the process has other threads; not usable in a child after fork().
 */
#ifndef AGX_STORE_STORE_LMDB_H
#define AGX_STORE_STORE_LMDB_H

#include "base/limits.h"
#include "store/store.h"

struct agx_store_lmdb_config {
    const char *dir;   /* made if it is missing; those above it exist */
    size_t map_bytes;  /* address space to begin with; doubles as needed */
    size_t map_max;    /* and the size that the file may reach */
    size_t queue_max;  /* bytes that may wait for the disk */
    bool grouping;     /* several batches in one commit; off only to measure what it gains */
    unsigned verify_s; /* how long the check after an unclean stop may take */
};
#define AGX_STORE_LMDB_CONFIG_INIT                                                                 \
    {                                                                                              \
        .map_bytes = AGX_STORE_MAP_BYTES, .map_max = AGX_STORE_MAP_MAX,                            \
        .queue_max = AGX_STORE_QUEUE_MAX, .grouping = true, .verify_s = AGX_STORE_VERIFY_S         \
    }

/*
 * Opens the store, or makes it, and brings older data to the layout's version. Blocks: after an
 * unclean stop every record is read first.
 *
 * -AGX_FAILED_PRECONDITION: in use by another process, data of a newer version, or no step for an
 * older one. -AGX_DATA_LOSS: the file is damaged. -AGX_PERMISSION_DENIED: read-only, or not ours.
 * Each message names the file and what to do. On a full disk a store that exists opens all the
 * same, for reading.
 */
int agx_store_lmdb_open(struct agx_loop *l, const struct agx_store_lmdb_config *c,
                        const struct agx_store_layout *layout, struct agx_store **ret_store,
                        struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * store_lmdb.h: the store on disk, in one LMDB file.
 *
 * Open it before the process has other threads; it is not usable in a child after fork().
 */
#ifndef AGX_STORE_STORE_LMDB_H
#define AGX_STORE_STORE_LMDB_H

#include "base/limits.h"
#include "store/store.h"

struct agx_store_lmdb_config {
    const char *dir;   /* created if missing; its parent must exist */
    size_t map_bytes;  /* initial address space; doubles as needed */
    size_t map_max;    /* the largest size of the file */
    size_t queue_max;  /* bytes that may wait for the disk */
    bool grouping;     /* several batches in one commit; off only to measure the gain */
    unsigned verify_s; /* how long the check after an unclean stop may take */
};
#define AGX_STORE_LMDB_CONFIG_INIT                                                                 \
    {                                                                                              \
        .map_bytes = AGX_STORE_MAP_BYTES, .map_max = AGX_STORE_MAP_MAX,                            \
        .queue_max = AGX_STORE_QUEUE_MAX, .grouping = true, .verify_s = AGX_STORE_VERIFY_S         \
    }

/*
 * Opens or creates the store, and upgrades older data to the layout's version. Blocks: after an
 * unclean stop every record is read first.
 *
 * -AGX_FAILED_PRECONDITION: in use by another process, data of a newer version, or no upgrade for
 * an older one. -AGX_DATA_LOSS: the file is damaged. -AGX_PERMISSION_DENIED: read-only, or not
 * ours. Each message names the file and what to do. On a full disk an existing store still opens,
 * for reading.
 */
int agx_store_lmdb_open(struct agx_loop *l, const struct agx_store_lmdb_config *c,
                        const struct agx_store_layout *layout, struct agx_store **ret_store,
                        struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * writables_store.c: the key is the directory's three numbers and the SHA-256 of its path, since a
 * path may be longer than a key. The value is the path.
 */
#include "daemon/manager/writables_store.h"

#include "base/log.h"
#include "core/text.h"
#include "daemon/manager/schema_internal.h"
#include "image/digest.h"

#include "base/banned.h"

enum { NUMBERS = 3, KEY_SIZE = NUMBERS * sizeof(uint64_t) + AGX_DIGEST_BYTES };

static uint64_t get_number(struct agx_str key, size_t i)
{
    return agx_schema_number_of(
        (struct agx_str){ key.ptr + i * sizeof(uint64_t), sizeof(uint64_t) });
}

static int load_row(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    _cleanup_free_ char *path = agx_str_dup(value);
    struct agx_writable dir = { .path = path };

    if (!path)
        return agx_error_no_memory(err);
    if (key.len != KEY_SIZE || path[0] != '/')
        return agx_error_set(err, AGX_DATA_LOSS, "a writable directory in the store is damaged");
    dir.id = (struct agx_file_id){ get_number(key, 0), get_number(key, 1), get_number(key, 2) };
    return agx_writables_load(user, &dir, err);
}

static int put_row(struct agx_store_batch *b, const struct agx_writable *dir,
                   struct agx_error **err)
{
    const struct agx_str path = agx_str_from(dir->path);
    char key[KEY_SIZE];
    int r = agx_digest_raw(path, (uint8_t *)key + NUMBERS * sizeof(uint64_t), err);

    if (r < 0)
        return r;
    agx_key_put_u64(key, dir->id.dev);
    agx_key_put_u64(key + sizeof(uint64_t), dir->id.ino);
    agx_key_put_u64(key + 2 * sizeof(uint64_t), dir->id.birth_ns);
    agx_store_batch_put(b, AGX_TABLE_WRITABLES, agx_str_bytes(key, sizeof(key)), path);
    return 0;
}

static int store_rows(void *user, const struct agx_writable *dirs, size_t n, agx_done_fn done,
                      void *done_user, struct agx_error **err)
{
    _cleanup_(agx_store_batch_freep) struct agx_store_batch *b = agx_store_batch_new();

    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = put_row(b, &dirs[i], err);
    return r < 0 ? r : agx_store_commit(user, &b, done, done_user, err);
}

int agx_writables_store_open(struct agx_writables *w, struct agx_store *st, struct agx_error **err)
{
    struct agx_error *error = NULL;
    int r = agx_store_scan(st, &(struct agx_store_range){ .table = AGX_TABLE_WRITABLES }, load_row,
                           w, &error);

    if (r == -AGX_DATA_LOSS) {
        AGX_LOG(AGX_LOG_ERROR, "writables.unreadable", AGX_F_ERR(error));
        agx_error_free(error);
        agx_writables_lose(w);
    } else if (r < 0) {
        agx_error_propagate(err, &error);
        return agx_error_wrap(err, r, "load the writable mounts");
    }
    agx_writables_set_store(w, store_rows, st);
    return 0;
}

/* writables.c: three maps, and rows that wait to be stored. */
#include "backend/files/writables.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "core/text.h"

#include <limits.h>

#include "base/banned.h"

struct agx_writables_row {
    bool stored;
};

/* Rows that are being stored. */
struct agx_writables_keep {
    struct agx_writables *writables;
    agx_done_fn done; /* NULL: abandoned */
    void *user;
    struct agx_writables_row **rows;
    struct agx_writable *dirs;
    size_t n;
};

static char known; /* value in the maps of ids and paths */

int agx_writables_init(struct agx_writables *w, struct agx_error **err)
{
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    *w = (struct agx_writables){ 0 };
    pthread_mutex_init(&w->lock, NULL);
    agx_map_init(&w->ids, seed);
    agx_map_init(&w->paths, seed);
    agx_map_init(&w->rows, seed);
    return 0;
}

void agx_writables_done(struct agx_writables *w)
{
    void *row;

    for (size_t at = 0; agx_map_next(&w->rows, &at, NULL, &row);)
        free(row);
    agx_map_done(&w->rows);
    agx_map_done(&w->ids);
    agx_map_done(&w->paths);
    pthread_mutex_destroy(&w->lock);
}

void agx_writables_set_store(struct agx_writables *w, agx_writables_store_fn store, void *user)
{
    w->store = store;
    w->user = user;
}

static struct agx_str id_key(const struct agx_file_id *id)
{
    return agx_str_bytes(id, sizeof(*id));
}

static bool is_zero(const struct agx_file_id *id)
{
    return id->dev == 0 && id->ino == 0;
}

static int put_row(struct agx_writables *w, struct agx_str key, struct agx_writables_row **ret)
{
    struct agx_writables_row *row = calloc(1, sizeof(*row));
    int r = row ? agx_map_put(&w->rows, key, row, NULL) : -AGX_RESOURCE_EXHAUSTED;

    if (r < 0)
        free(row);
    else
        *ret = row;
    return r;
}

/* Call with the lock. Finds or makes the row of a directory. */
static int find_row(struct agx_writables *w, const struct agx_writable *dir,
                    struct agx_writables_row **ret)
{
    const struct agx_str path = agx_str_from(dir->path);
    char bytes[sizeof(dir->id) + PATH_MAX];
    size_t len = sizeof(dir->id) + AGX_MIN(path.len, (size_t)PATH_MAX);
    int r = 0;

    memcpy(bytes, &dir->id, sizeof(dir->id));
    memcpy(bytes + sizeof(dir->id), path.ptr, len - sizeof(dir->id));
    *ret = agx_map_get(&w->rows, agx_str_bytes(bytes, len));
    if (*ret)
        return 0;
    if (!is_zero(&dir->id))
        r = agx_map_put(&w->ids, id_key(&dir->id), &known, NULL);
    if (r >= 0)
        r = agx_map_put(&w->paths, path, &known, NULL);
    return r < 0 ? r : put_row(w, agx_str_bytes(bytes, len), ret);
}

static int row_of(struct agx_writables *w, const struct agx_writable *dir,
                  struct agx_writables_row **ret, struct agx_error **err)
{
    int r;

    pthread_mutex_lock(&w->lock);
    r = find_row(w, dir, ret);
    pthread_mutex_unlock(&w->lock);
    return r < 0 ? agx_error_no_memory(err) : 0;
}

int agx_writables_load(struct agx_writables *w, const struct agx_writable *dir,
                       struct agx_error **err)
{
    struct agx_writables_row *row = NULL;
    int r = row_of(w, dir, &row, err);

    if (r == 0)
        row->stored = true;
    return r;
}

void agx_writables_lose(struct agx_writables *w)
{
    pthread_mutex_lock(&w->lock);
    w->unknown = true;
    pthread_mutex_unlock(&w->lock);
}

bool agx_writables_has(struct agx_writables *w, const struct agx_file_id *id, const char *path)
{
    bool has;

    pthread_mutex_lock(&w->lock);
    has = w->unknown || agx_map_get(&w->ids, id_key(id)) ||
          agx_map_get(&w->paths, agx_str_from(path));
    pthread_mutex_unlock(&w->lock);
    return has;
}

/* ---- keep ---- */

static void keep_free(struct agx_writables_keep *k)
{
    free(k->rows);
    free(k->dirs);
    free(k);
}

static void on_stored(void *user, struct agx_error *error)
{
    struct agx_writables_keep *k = user;

    for (size_t i = 0; !error && i < k->n; i++)
        k->rows[i]->stored = true;
    if (k->done)
        k->done(k->user, error);
    else
        agx_error_free(error);
    keep_free(k);
}

/* Collects those that are not stored yet. */
static int gather(struct agx_writables_keep *k, const struct agx_writable *dirs, size_t n,
                  struct agx_error **err)
{
    for (size_t i = 0; i < n; i++) {
        struct agx_writables_row *row = NULL;
        int r = row_of(k->writables, &dirs[i], &row, err);

        if (r < 0)
            return r;
        if (row->stored)
            continue;
        k->rows[k->n] = row;
        k->dirs[k->n++] = dirs[i];
    }
    return 0;
}

int agx_writables_keep(struct agx_writables *w, const struct agx_writable *dirs, size_t n,
                       agx_done_fn done, void *user, struct agx_writables_keep **ret_keep,
                       struct agx_error **err)
{
    struct agx_writables_keep *k = agx_new(struct agx_writables_keep);
    int r;

    k->writables = w;
    k->done = done;
    k->user = user;
    k->rows = agx_alloc((n + 1) * sizeof(struct agx_writables_row *));
    k->dirs = agx_alloc((n + 1) * sizeof(*k->dirs));
    r = gather(k, dirs, n, err);
    if (r == 0 && (k->n == 0 || !w->store))
        r = 1;
    if (r == 0)
        r = w->store(w->user, k->dirs, k->n, on_stored, k, err);
    if (r != 0)
        keep_free(k);
    else
        *ret_keep = k;
    return r;
}

void agx_writables_abandon(struct agx_writables_keep *k)
{
    if (k)
        k->done = NULL;
}

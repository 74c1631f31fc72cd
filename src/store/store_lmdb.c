/*
 * store_lmdb.c: the store on disk, its side on the loop.
 *
 *     commit --> turn --end of the turn--> writer's thread --notify--> on_wake --> done
 *
 * A commit waits in `turn` until the loop is about to poll (prepare) or has polled (check),
 * whichever comes first. So all batches of one turn reach the writer together, and none waits while
 * the loop sleeps.
 *
 * Closing: STORING (until every batch is done) -> the writer's thread ends -> the backup's pool
 * ends -> LMDB is closed and the directory marked clean -> the handles are closed -> `closed`.
 *
 * Invariants:
 *  (1) everything here runs on the loop thread, except on_notify().
 *  (2) `wake` is open as long as the writer's thread lives.
 *  (3) `state` on disk is "open" from before the first write until LMDB has closed its file.
 */
#include "store/store_lmdb.h"

#include "base/mem.h"
#include "loop/job.h"
#include "loop/uverr.h"
#include "store/lmdb_dir.h"
#include "store/lmdb_env.h"
#include "store/lmdb_verify.h"
#include "store/lmdb_writer.h"
#include "store/store_internal.h"

#include <stdatomic.h>

#include "base/banned.h"

/* A backup that hangs may outlive the store: then its thread closes LMDB when it returns. */
struct backup_job {
    struct agx_job job;
    struct store_lmdb *store; /* used only on the loop */
    struct agx_lmdb_env *env;
    int fd;
    agx_done_fn done;
    void *user;
    atomic_bool alone; /* set by the first of the two sides to leave: the copy ended, or the loop
                          gave up; the second one cleans up */
};

struct store_lmdb {
    struct agx_store base;
    struct agx_lmdb_dir *dir;
    struct agx_lmdb_env *env;
    struct agx_lmdb_writer *writer;
    struct agx_pool *backups;
    struct backup_job *backup; /* NULL while none runs */
    uv_async_t wake;
    uv_prepare_t prepare;
    uv_check_t check;
    unsigned n_handles; /* handles not closed yet */
    struct agx_store_queue turn;
    size_t in_flight; /* batches without `done` yet */
    bool ending;      /* all batches are done; threads are being stopped */
    agx_done_fn closed;
    void *closed_user;
    struct agx_error *close_error;
};

static struct store_lmdb *lmdb_of(struct agx_store *st)
{
    return container_of(st, struct store_lmdb, base);
}

/* A busy store keeps the loop running; an idle one does not. */
static void update_ref(struct store_lmdb *s)
{
    if (s->in_flight > 0 || s->base.closing)
        uv_ref((uv_handle_t *)&s->wake);
    else
        uv_unref((uv_handle_t *)&s->wake);
}

static void end_turn(struct store_lmdb *s)
{
    (void)uv_prepare_stop(&s->prepare);
    (void)uv_check_stop(&s->check);
    agx_lmdb_writer_push(s->writer, &s->turn);
}

static void on_prepare(uv_prepare_t *h)
{
    end_turn(container_of(h, struct store_lmdb, prepare));
}

static void on_check(uv_check_t *h)
{
    end_turn(container_of(h, struct store_lmdb, check));
}

static void lmdb_commit(struct agx_store *st, struct agx_store_batch *b)
{
    struct store_lmdb *s = lmdb_of(st);

    if (s->turn.len == 0) {
        (void)uv_prepare_start(&s->prepare, on_prepare);
        (void)uv_check_start(&s->check, on_check);
    }
    agx_store_queue_push(&s->turn, b);
    s->in_flight++;
    update_ref(s);
}

/* Runs on the writer's thread. */
static void on_notify(void *user)
{
    (void)uv_async_send(user);
}

/* Also frees a half-opened store. Requires that no handle is open. */
static void free_store(struct store_lmdb *s)
{
    agx_lmdb_writer_stop(s->writer);
    agx_lmdb_env_close(s->env);
    agx_lmdb_dir_close(s->dir);
    agx_error_free(s->close_error);
    free(s);
}

static void handle_closed(struct store_lmdb *s)
{
    if (--s->n_handles > 0)
        return;
    if (s->closed)
        s->closed(s->closed_user, AGX_TAKE_PTR(s->close_error));
    free_store(s);
}

static void on_wake_closed(uv_handle_t *h)
{
    handle_closed(container_of((uv_async_t *)h, struct store_lmdb, wake));
}

static void on_prepare_closed(uv_handle_t *h)
{
    handle_closed(container_of((uv_prepare_t *)h, struct store_lmdb, prepare));
}

static void on_check_closed(uv_handle_t *h)
{
    handle_closed(container_of((uv_check_t *)h, struct store_lmdb, check));
}

static void close_handles(struct store_lmdb *s)
{
    uv_close((uv_handle_t *)&s->wake, on_wake_closed);
    uv_close((uv_handle_t *)&s->prepare, on_prepare_closed);
    uv_close((uv_handle_t *)&s->check, on_check_closed);
}

/* The pool gave the backup up. Returns true when its thread is still running: it must then close
 * LMDB, because it still reads the map. */
static bool abandon_backup(struct store_lmdb *s, const struct agx_error *error)
{
    struct backup_job *b = AGX_TAKE_PTR(s->backup);
    agx_done_fn done = b->done;
    void *user = b->user;
    bool at_work = !atomic_exchange(&b->alone, true);

    if (!at_work)
        free(b);
    done(user, agx_error_dup(error));
    return at_work;
}

/* The last thread that used LMDB has ended, or a backup hangs and was given up. In the second case
 * the store is not marked clean, and the next start checks everything. */
static void on_backups_stopped(void *user, struct agx_error *error)
{
    struct store_lmdb *s = user;

    s->backups = NULL;
    if (error && abandon_backup(s, error))
        s->env = NULL;
    s->env = agx_lmdb_env_close(s->env);
    s->close_error = error;
    if (!error)
        (void)!agx_lmdb_dir_mark_clean(s->dir, &s->close_error);
    close_handles(s);
}

/* Called once, when it is closing and every batch is done. */
static void end_store(struct store_lmdb *s)
{
    s->ending = true;
    s->writer = agx_lmdb_writer_stop(s->writer);
    agx_pool_stop(s->backups, AGX_STORE_BACKUP_STOP_MS, on_backups_stopped, s);
}

static void on_wake(uv_async_t *h)
{
    struct store_lmdb *s = container_of(h, struct store_lmdb, wake);
    struct agx_store_queue finished = { 0 };
    struct agx_store_batch *b;

    if (s->ending)
        return;
    agx_lmdb_writer_take(s->writer, &finished);
    while ((b = agx_store_queue_pop(&finished))) {
        s->in_flight--;
        agx_store_finish(&s->base, b);
    }
    update_ref(s);
    if (s->base.closing && s->in_flight == 0)
        end_store(s);
}

static int lmdb_get(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
                    struct agx_error **err)
{
    return agx_lmdb_env_get(lmdb_of(st)->env, table, key, out, err);
}

static int lmdb_scan(struct agx_store *st, const struct agx_store_range *range,
                     agx_store_visit_fn visit, void *user, struct agx_error **err)
{
    return agx_lmdb_env_scan(lmdb_of(st)->env, range, visit, user, err);
}

static int backup_run(struct agx_job *j, struct agx_error **err)
{
    struct backup_job *b = container_of(j, struct backup_job, job);
    int r = agx_lmdb_env_copy(b->env, b->fd, err);

    if (atomic_exchange(&b->alone, true)) {
        agx_lmdb_env_close(b->env);
        free(b);
    }
    return r;
}

static void backup_done(struct agx_job *j, struct agx_error *error)
{
    struct backup_job *b = container_of(j, struct backup_job, job);
    agx_done_fn done = b->done;
    void *user = b->user;

    b->store->backup = NULL;
    free(b);
    done(user, error);
}

static const struct agx_job_kind backup_kind = { .name = "backup",
                                                 .run = backup_run,
                                                 .done = backup_done };

static int lmdb_backup(struct agx_store *st, int fd, agx_done_fn done, void *user,
                       struct agx_error **err)
{
    struct store_lmdb *s = lmdb_of(st);
    struct backup_job *b;
    int r;

    if (s->backup)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "store: another backup is running");
    b = agx_new(struct backup_job);
    *b = (struct backup_job){
        .job.kind = &backup_kind, .store = s, .env = s->env, .fd = fd, .done = done, .user = user
    };
    r = agx_job_start(&b->job, s->backups, err);
    if (r < 0)
        free(b);
    else
        s->backup = b;
    return r;
}

static void lmdb_stats(struct agx_store *st, struct agx_store_stats *ret)
{
    struct store_lmdb *s = lmdb_of(st);

    if (s->writer)
        agx_lmdb_writer_stats(s->writer, ret);
    if (s->env)
        agx_lmdb_env_stats(s->env, ret);
}

static void lmdb_close(struct agx_store *st, agx_done_fn closed, void *user)
{
    struct store_lmdb *s = lmdb_of(st);

    s->closed = closed;
    s->closed_user = user;
    update_ref(s);
    (void)uv_async_send(&s->wake); /* nothing else would wake it when nothing is in flight */
}

static const struct agx_store_ops lmdb_ops = {
    .name = "lmdb",
    .commit = lmdb_commit,
    .get = lmdb_get,
    .scan = lmdb_scan,
    .backup = lmdb_backup,
    .stats = lmdb_stats,
    .close = lmdb_close,
};

/* Locks and examines the directory, and verifies the file if needed. */
static int open_dir(struct store_lmdb *s, const struct agx_store_lmdb_config *c,
                    struct agx_error **err)
{
    enum agx_lmdb_trust trust;
    int r = agx_lmdb_dir_open(c->dir, &s->dir, err);

    if (r == 0)
        r = agx_lmdb_dir_examine(s->dir, &trust, err);
    if (r == 0 && trust == AGX_LMDB_SUSPECT)
        r = agx_lmdb_verify(c->dir, c->verify_s, err);
    if (r == 0 && trust != AGX_LMDB_NEW)
        r = agx_lmdb_dir_mark_open(s->dir, err);
    return r;
}

/* Data of another version would be misread: they are left as they are. */
static int refuse_version(const struct store_lmdb *s, uint32_t found, struct agx_error **err)
{
    const uint32_t wanted = s->base.layout->version;

    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "'%s' has data of version %u; this program wants version %u: use %s",
                         s->dir->path, found, wanted,
                         found > wanted ? "the newer program, or a backup from before it"
                                        : "the older program, or another directory");
}

static int settle_version(struct store_lmdb *s, struct agx_error **err)
{
    const uint32_t ours = s->base.layout->version;
    uint32_t version;
    int r = agx_lmdb_env_version(s->env, &version, err);

    if (r < 0)
        return r;
    if (version == 0) /* a new store */
        return agx_lmdb_env_commit(s->env, NULL, ours, err);
    return version == ours ? 0 : refuse_version(s, version, err);
}

/* Opens everything on disk, before there are threads or handles. */
static int open_files(struct store_lmdb *s, const struct agx_store_lmdb_config *c,
                      struct agx_error **err)
{
    const struct agx_lmdb_env_config config = { c->dir, c->map_bytes, c->map_max };
    int r = open_dir(s, c, err);

    if (r == 0)
        r = agx_lmdb_env_open(&config, s->base.layout, &s->env, err);
    if (r == 0)
        r = settle_version(s, err);
    if (r == 0)
        r = agx_lmdb_dir_mark_open(s->dir, err); /* for a new store, which exists now */
    return r;
}

static int open_handles(struct store_lmdb *s, struct agx_error **err)
{
    uv_loop_t *uv = agx_loop_uv(s->base.loop);
    int r = uv_async_init(uv, &s->wake, on_wake);

    if (r < 0)
        return agx_uverr_set(err, r, "open store");
    (void)uv_prepare_init(uv, &s->prepare); /* these two cannot fail */
    (void)uv_check_init(uv, &s->check);
    uv_unref((uv_handle_t *)&s->wake);
    s->n_handles = 3;
    return 0;
}

static int open_threads(struct store_lmdb *s, bool grouping, struct agx_error **err)
{
    const struct agx_pool_config pool = { "store-backup", 1, 1 };
    int r = agx_lmdb_writer_start(s->env, grouping, on_notify, &s->wake, &s->writer, err);

    return r == 0 ? agx_pool_open(s->base.loop, &pool, &s->backups, err) : r;
}

int agx_store_lmdb_open(struct agx_loop *l, const struct agx_store_lmdb_config *c,
                        const struct agx_store_layout *layout, struct agx_store **ret_store,
                        struct agx_error **err)
{
    struct store_lmdb *s = agx_new(struct store_lmdb);
    int r;

    s->base = (struct agx_store){
        .ops = &lmdb_ops, .layout = layout, .loop = l, .queue_max = c->queue_max
    };
    r = open_files(s, c, err);
    if (r == 0)
        r = open_handles(s, err);
    if (r == 0)
        r = open_threads(s, c->grouping, err);
    if (r == 0) {
        *ret_store = &s->base;
        return 0;
    }
    s->writer = agx_lmdb_writer_stop(s->writer);
    if (s->n_handles > 0)
        close_handles(s); /* this frees the store, in a later turn */
    else
        free_store(s);
    return r;
}

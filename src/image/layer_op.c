/*
 * layer_op.c: turns a blob into a layer of the store.
 *
 *   SETTLE --> CLAIM --absent--> UNPACK --> PUBLISH --> DONE
 *                |  ^                                    ^
 *                |  +--- WAIT: it is MAKING or GOING     |
 *                +------ it exists ---------------------+
 *
 * SETTLE: spooled bytes reach their file. CLAIM: from here on this operation makes the layer, and
 * others wait for it. UNPACK: a thread unpacks it into a directory of tmp/, and checks both
 * digests. PUBLISH: it is renamed into layers/. Where the diff id is not known beforehand, UNPACK
 * comes before CLAIM, which then finds out whether the layer is needed.
 *
 * An error, also a cancellation, leads to DONE from every state; what is in tmp/ is removed then.
 */
#include "image/images_internal.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum op_state { OP_SETTLE, OP_CLAIM, OP_WAIT, OP_UNPACK, OP_PUBLISH, OP_DONE };

struct layer_op {
    struct agx_job job;
    struct agx_ingest *in;
    struct agx_list_node node;    /* in in->ops */
    struct agx_list_node waiting; /* in the layer's `waiters` */
    enum op_state state;
    struct agx_spool *spool;
    struct layer *claimed; /* MAKING, by us */
    layer_done_fn done;
    void *user;
    struct agx_error *error;
    atomic_bool stop;
    /* Also used by the jobs. */
    int tmpfd, dirfd;
    struct agx_unpack_limits limits;
    struct agx_idmap idmap;
    struct agx_blob_place place;
    char digest[AGX_DIGEST_SIZE], diff_id[AGX_DIGEST_SIZE]; /* or empty */
    char temp[AGX_UUID_TEXT_SIZE];                          /* in tmp/; empty: none */
    struct agx_unpack_result result;
};

static void op_go(struct layer_op *op, enum op_state next);

static void op_fail(struct layer_op *op, struct agx_error *error)
{
    agx_error_propagate(&op->error, &error);
}

/* ---- the thread that unpacks ---- */

static int check_digests(struct layer_op *op, struct agx_blob *blob, struct agx_error **err)
{
    char got[AGX_DIGEST_SIZE];
    int r = agx_blob_digest(blob, got, err);

    if (r < 0)
        return r;
    if (op->digest[0] && strcmp(got, op->digest) != 0)
        return agx_error_set(err, AGX_DATA_LOSS, "the blob has the digest '%s', not '%s'", got,
                             op->digest);
    if (op->diff_id[0] && strcmp(op->result.diff_id, op->diff_id) != 0)
        return agx_error_set(err, AGX_DATA_LOSS, "the layer has the diff id '%s', not '%s'",
                             op->result.diff_id, op->diff_id);
    return 0;
}

static int write_note(struct layer_op *op, int dir, struct agx_error **err)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "{\"size\":%" PRIu64 ",\"entries\":%" PRIu64 "}\n",
                     op->result.bytes, op->result.entries);

    return agx_path_write_file(dir, "layer.json", agx_str_bytes(text, (size_t)n), 0600, err);
}

static int unpack_into(struct layer_op *op, int dir, struct agx_blob *blob, struct agx_error **err)
{
    const struct agx_unpack_params p = { .read = agx_blob_read,
                                         .user = blob,
                                         .limits = op->limits,
                                         .whiteouts = true,
                                         .owners = geteuid() == 0,
                                         .idmap = op->idmap,
                                         .stop = &op->stop };
    _cleanup_close_ int tree = -1;
    int r;

    if (mkdirat(dir, "tree", 0755) < 0)
        return agx_error_errno(err, errno, "make a directory for a layer");
    tree = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree < 0 || fchmod(tree, 0755) < 0)
        return agx_error_errno(err, errno, "open the directory for a layer");
    r = agx_unpack(tree, &p, &op->result, err);
    if (r == 0)
        r = check_digests(op, blob, err);
    if (r == 0)
        r = write_note(op, dir, err);
    /* Syncs all its files together: one by one, each would take as long. */
    if (r == 0 && syncfs(tree) < 0)
        r = agx_error_errno(err, errno, "bring a layer to disk");
    return r;
}

static int unpack_run(struct agx_job *j, struct agx_error **err)
{
    struct layer_op *op = container_of(j, struct layer_op, job);
    _cleanup_(agx_blob_closep) struct agx_blob *blob = NULL;
    _cleanup_close_ int dir = -1;
    int r = agx_blob_open(&op->place, &blob, err);

    if (r < 0)
        return r;
    dir = agx_path_mkdirs(op->tmpfd, op->temp, 0700, err);
    r = dir < 0 ? dir : unpack_into(op, dir, blob, err);
    if (r < 0)
        (void)!agx_path_remove_tree(op->tmpfd, op->temp, NULL);
    return r;
}

static void unpack_done(struct agx_job *j, struct agx_error *error)
{
    struct layer_op *op = container_of(j, struct layer_op, job);

    if (error) {
        op->temp[0] = '\0';        /* the thread has removed it, or never made it */
        if (error->sys_errno != 0) /* for example a full disk: name its file system */
            (void)agx_error_wrap(&error, -(int)error->code, "in '%s/tmp'", op->in->s->dir);
        op_fail(op, error);
        op_go(op, OP_DONE);
        return;
    }
    (void)snprintf(op->diff_id, sizeof(op->diff_id), "%s", op->result.diff_id);
    op_go(op, op->error ? OP_DONE : op->claimed ? OP_PUBLISH : OP_CLAIM);
}

static void unpack_cancel(struct agx_job *j)
{
    atomic_store(&container_of(j, struct layer_op, job)->stop, true);
}

static const struct agx_job_kind unpack_kind = { "unpack", unpack_run, unpack_done, unpack_cancel };

/* ---- the thread that publishes ---- */

/* The rest of a failed removal is in the way of the new one. */
static int move_aside(struct layer_op *op, int layers, const char *file)
{
    char name[AGX_UUID_TEXT_SIZE];

    if (agx_uuid_new(name, NULL) < 0)
        return -1;
    return renameat(layers, file, op->tmpfd, name);
}

static int publish_run(struct agx_job *j, struct agx_error **err)
{
    struct layer_op *op = container_of(j, struct layer_op, job);
    _cleanup_close_ int layers =
        openat(op->dirfd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char file[AGX_DIGEST_SIZE];
    int r = renameat(op->tmpfd, op->temp, layers, agx_digest_file(op->diff_id, file));

    if (r < 0 && (errno == EEXIST || errno == ENOTEMPTY)) {
        r = move_aside(op, layers, file);
        if (r == 0)
            r = renameat(op->tmpfd, op->temp, layers, file);
    }
    if (r < 0 || fsync(layers) < 0)
        return agx_error_errno(err, errno, "put layer '%s' into the store", op->diff_id);
    return 0;
}

static void publish_done(struct agx_job *j, struct agx_error *error)
{
    struct layer_op *op = container_of(j, struct layer_op, job);

    if (!error)
        op->temp[0] = '\0';
    op_fail(op, error);
    op_go(op, OP_DONE);
}

static const struct agx_job_kind publish_kind = { "publish", publish_run, publish_done, NULL };

/* ---- states ---- */

static int start_job(struct layer_op *op, const struct agx_job_kind *kind, struct agx_pool *pool)
{
    op->job = (struct agx_job){ .kind = kind };
    return images_job(&op->job, pool, &op->error);
}

static void on_settled(void *user, struct agx_error *error)
{
    struct layer_op *op = user;

    op_fail(op, error);
    op->place = (struct agx_blob_place){ .fd = spool_fd(op->spool) };
    op_go(op, op->error ? OP_DONE : op->diff_id[0] ? OP_CLAIM : OP_UNPACK);
}

static void wait_for(struct layer_op *op, struct layer *l)
{
    agx_list_push_front(&l->waiters, &op->waiting);
    op_go(op, OP_WAIT);
}

static void enter_claim(struct layer_op *op)
{
    struct agx_images *s = op->in->s;
    struct layer *l = layer_find(s, op->diff_id);

    if (l && l->state != LAYER_THERE) {
        wait_for(op, l);
        return;
    }
    if (!l && layer_add(s, op->diff_id, LAYER_MAKING, &op->claimed, &op->error) == 0)
        l = op->claimed;
    if (!l || ingest_hold(op->in, l, &op->error) < 0 || !op->claimed)
        op_go(op, OP_DONE); /* it failed, or the layer exists */
    else
        op_go(op, op->temp[0] ? OP_PUBLISH : OP_UNPACK);
}

static void enter_unpack(struct layer_op *op)
{
    if (agx_uuid_new(op->temp, &op->error) < 0 ||
        start_job(op, &unpack_kind, op->in->s->unpack_pool) < 0) {
        op->temp[0] = '\0';
        op_go(op, OP_DONE);
    }
}

static void enter_publish(struct layer_op *op)
{
    if (start_job(op, &publish_kind, op->in->s->index_pool) < 0)
        op_go(op, OP_DONE);
}

/* Publishes or drops the layer that we claimed. */
static void settle_claim(struct layer_op *op)
{
    struct agx_ingest *in = op->in;
    struct layer *l = AGX_TAKE_PTR(op->claimed);

    if (!l)
        return;
    if (!op->error) {
        l->state = LAYER_THERE;
        l->size = op->result.bytes;
        layer_wake(l);
        return;
    }
    for (size_t i = 0; i < in->n_held; i++)
        if (in->held[i] == l)
            in->held[i] = in->held[--in->n_held];
    layer_drop(in->s, l);
}

static void op_finish(void *user)
{
    struct layer_op *op = user;
    struct agx_ingest *in = op->in;

    agx_list_remove(&op->node);
    op->done(op->user, op->diff_id, AGX_TAKE_PTR(op->error));
    free(op);
    ingest_end(in);
}

static void enter_done(struct layer_op *op)
{
    if (op->temp[0]) {
        struct agx_words names = { 0 };

        if (agx_words_add(&names, agx_str_from(op->temp), NULL) == 0)
            images_trash(op->in->s, &names);
        agx_words_done(&names);
    }
    settle_claim(op);
    op->spool = agx_spool_close(op->spool);
    images_later(op->in->s, op_finish, op);
}

static void op_go(struct layer_op *op, enum op_state next)
{
    op->state = next;
    switch (next) {
    case OP_SETTLE:
        spool_settle(op->spool, on_settled, op);
        break;
    case OP_CLAIM:
        enter_claim(op);
        break;
    case OP_WAIT:
        break; /* until layer_ops_wake() */
    case OP_UNPACK:
        enter_unpack(op);
        break;
    case OP_PUBLISH:
        enter_publish(op);
        break;
    case OP_DONE:
        enter_done(op);
        break;
    }
}

/* ---- from outside ---- */

int layer_op_start(struct agx_ingest *in, const struct layer_source *source, layer_done_fn done,
                   void *user, struct agx_error **err)
{
    struct layer_op *op;

    if (in->s->stopping)
        return agx_error_set(err, AGX_UNAVAILABLE, "the store of images is closing");
    op = agx_new(struct layer_op);
    op->in = in;
    op->done = done;
    op->user = user;
    op->tmpfd = in->s->tmpfd;
    op->dirfd = in->s->dirfd;
    op->limits = in->s->config.limits;
    op->idmap = in->s->config.idmap;
    op->spool = source->spool;
    op->place = source->place;
    (void)snprintf(op->digest, sizeof(op->digest), "%s", agx_text(source->digest));
    (void)snprintf(op->diff_id, sizeof(op->diff_id), "%s", agx_text(source->diff_id));
    agx_list_push_front(&in->ops, &op->node);
    ingest_begin(in);
    op_go(op, op->spool ? OP_SETTLE : op->diff_id[0] ? OP_CLAIM : OP_UNPACK);
    return 0;
}

void layer_ops_wake(struct agx_list *waiters)
{
    struct agx_list woken = { 0 };
    struct layer_op *op;

    agx_list_move(&woken, waiters);
    while ((op = AGX_LIST_TAKE(&woken, struct layer_op, waiting)))
        op_go(op, OP_CLAIM);
}

static void op_cancel(struct layer_op *op)
{
    if (op->state == OP_DONE || op->state == OP_PUBLISH)
        return; /* too late: it is about to exist */
    if (!op->error)
        (void)agx_error_set(&op->error, AGX_CANCELLED, "the layer was cancelled");
    atomic_store(&op->stop, true);
    if (op->state == OP_UNPACK)
        agx_job_cancel(&op->job);
    if (op->state != OP_WAIT)
        return; /* what is under way ends, and then the operation */
    agx_list_remove(&op->waiting);
    op_go(op, OP_DONE);
}

void layer_ops_cancel(struct agx_list *ops)
{
    AGX_LIST_FOR_EACH (struct layer_op, op, ops, node)
        op_cancel(op); /* it leaves the list on a later turn */
}

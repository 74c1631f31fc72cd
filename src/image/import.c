/*
 * import.c: one import.
 *
 *   RECEIVE --end--> SETTLE --> READ --> LAYERS --> RECORD --> DONE
 *      |               |          |         |          |        ^
 *      +------- error or cancel --+---------+----------+--------+
 *
 * RECEIVE: the stream goes to a file. READ: a thread parses it. LAYERS: missing layers are added to
 * the store, one after the other. RECORD: the images are recorded, under each of their names.
 */
#include "image/import.h"

#include "base/mem.h"
#include "image/imagefile.h"
#include "image/images_internal.h"

#include "base/banned.h"

enum import_state {
    IMPORT_RECEIVE,
    IMPORT_SETTLE,
    IMPORT_READ,
    IMPORT_LAYERS,
    IMPORT_RECORD,
    IMPORT_DONE
};

struct agx_import {
    struct agx_job job;
    struct agx_images *s;
    struct agx_ingest *in;
    struct agx_spool *spool;
    char *name; /* canonical, or NULL */
    struct agx_import_params params;
    void *user;
    enum import_state state;
    struct agx_error *error;
    size_t image_at, layer_at, name_at; /* position of LAYERS and RECORD */
    struct agx_image **images;          /* recorded; a reference each */
    size_t n_images;
    struct agx_pull progress;
    /* Also used by the thread. */
    atomic_bool stop;
    struct agx_imagefile_params read;
    struct agx_imagefile archive;
};

static void import_go(struct agx_import *im, enum import_state next);

static void import_fail(struct agx_import *im, struct agx_error *error)
{
    agx_error_propagate(&im->error, &error);
    import_go(im, IMPORT_DONE);
}

/* ---- SETTLE, READ ---- */

static void on_settled(void *user, struct agx_error *error)
{
    struct agx_import *im = user;

    if (error || im->error)
        import_fail(im, error);
    else
        import_go(im, IMPORT_READ);
}

static int read_run(struct agx_job *j, struct agx_error **err)
{
    struct agx_import *im = container_of(j, struct agx_import, job);

    return agx_imagefile_read(&im->archive, &im->read, err);
}

static void read_cancel(struct agx_job *j)
{
    atomic_store(&container_of(j, struct agx_import, job)->stop, true);
}

static void import_tell(struct agx_import *im)
{
    if (im->params.progress)
        im->params.progress(im->user, &im->progress);
}

static void read_done(struct agx_job *j, struct agx_error *error)
{
    struct agx_import *im = container_of(j, struct agx_import, job);

    if (!error && im->name && im->archive.n_images > 1)
        (void)agx_error_set(&error, AGX_INVALID_ARGUMENT,
                            "the archive has %zu images, which cannot all be called '%s'",
                            im->archive.n_images, im->name);
    if (error || im->error) {
        import_fail(im, error);
        return;
    }
    im->progress.image = im->name;
    for (size_t i = 0; i < im->archive.n_images; i++) {
        const struct agx_imagefile_image *image = &im->archive.images[i];

        if (!im->progress.image && image->names.len > 0)
            im->progress.image = image->names.items[0];
        im->progress.layers_total += (uint32_t)image->diff_ids.len;
        for (size_t k = 0; k < image->diff_ids.len; k++)
            im->progress.bytes_total += image->layers[k].size;
    }
    im->progress.image = agx_text(im->progress.image);
    import_tell(im);
    import_go(im, IMPORT_LAYERS);
}

static const struct agx_job_kind read_kind = { "import", read_run, read_done, read_cancel };

static void enter_read(struct agx_import *im)
{
    im->read = (struct agx_imagefile_params){ .fd = spool_fd(im->spool),
                                              .tmp_fd = im->s->tmpfd,
                                              .limits = im->s->config.limits,
                                              .max_bytes = im->s->config.import_max_bytes,
                                              .stop = &im->stop };
    im->job = (struct agx_job){ .kind = &read_kind };
    if (images_job(&im->job, im->s->unpack_pool, &im->error) < 0)
        import_go(im, IMPORT_DONE);
}

/* ---- LAYERS ---- */

static void next_layer(struct agx_import *im);

static void layer_over(struct agx_import *im)
{
    im->progress.layers_done++;
    im->progress.bytes_done += im->archive.images[im->image_at].layers[im->layer_at].size;
    im->layer_at++;
    import_tell(im);
}

static void on_layer(void *user, const char *diff_id, struct agx_error *error)
{
    struct agx_import *im = user;

    (void)diff_id;
    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "layer %zu", im->layer_at + 1);
    if (error || im->error) {
        import_fail(im, error);
        return;
    }
    layer_over(im);
    next_layer(im);
}

static void next_layer(struct agx_import *im)
{
    while (im->image_at < im->archive.n_images) {
        const struct agx_imagefile_image *image = &im->archive.images[im->image_at];
        const struct agx_imagefile_layer *l;

        if (im->layer_at == image->diff_ids.len) {
            im->image_at++;
            im->layer_at = 0;
            continue;
        }
        l = &image->layers[im->layer_at];
        if (!agx_ingest_has(im->in, agx_str_from(image->diff_ids.items[im->layer_at]))) {
            const struct layer_source source = { .place = l->place,
                                                 .digest = l->digest,
                                                 .diff_id = image->diff_ids.items[im->layer_at] };

            if (layer_op_start(im->in, &source, on_layer, im, &im->error) < 0)
                import_go(im, IMPORT_DONE);
            return;
        }
        layer_over(im);
    }
    im->image_at = 0;
    import_go(im, IMPORT_RECORD);
}

/* ---- RECORD ---- */

static void next_image(struct agx_import *im);

static int import_keep(struct agx_import *im, struct agx_image *image, struct agx_error **err)
{
    int r = im->name_at > 0 ? 0
                            : agx_text_grow((void **)&im->images, im->n_images,
                                            sizeof(struct agx_image *), err);

    if (r < 0 || im->name_at > 0) {
        agx_image_unref(image);
        return r;
    }
    im->images[im->n_images++] = image;
    return 0;
}

static void on_image(void *user, struct agx_image *image, struct agx_error *error)
{
    struct agx_import *im = user;

    if (!error)
        (void)!import_keep(im, image, &error);
    if (error) {
        import_fail(im, error);
        return;
    }
    im->name_at++;
    if (im->name || im->name_at >= im->archive.images[im->image_at].names.len) {
        im->image_at++;
        im->name_at = 0;
    }
    next_image(im);
}

static void next_image(struct agx_import *im)
{
    const struct agx_imagefile_image *image;
    struct agx_ingest_image parts;

    if (im->image_at == im->archive.n_images) {
        import_go(im, IMPORT_DONE);
        return;
    }
    image = &im->archive.images[im->image_at];
    parts = (struct agx_ingest_image){
        .config = agx_str_from(image->config),
        .manifest = agx_str_from(image->manifest),
        .name = agx_str_from(im->name                ? im->name
                             : image->names.len == 0 ? NULL
                                                     : image->names.items[im->name_at]),
    };
    if (agx_ingest_image(im->in, &parts, on_image, im, &im->error) < 0)
        import_go(im, IMPORT_DONE);
}

/* ---- the end ---- */

static void import_end(void *user)
{
    struct agx_import *im = user;
    struct agx_images *s = im->s;

    im->params.done(im->user, im->images, im->error ? 0 : im->n_images, im->error);
    for (size_t i = 0; i < im->n_images; i++)
        agx_image_unref(im->images[i]);
    free(im->images);
    free(im->name);
    agx_imagefile_done(&im->archive);
    agx_spool_close(im->spool);
    agx_ingest_free(im->in);
    free(im);
    images_release(s);
}

static void import_go(struct agx_import *im, enum import_state next)
{
    im->state = next;
    switch (next) {
    case IMPORT_RECEIVE:
        break; /* until agx_import_end() */
    case IMPORT_SETTLE:
        spool_settle(im->spool, on_settled, im);
        break;
    case IMPORT_READ:
        enter_read(im);
        break;
    case IMPORT_LAYERS:
        next_layer(im);
        break;
    case IMPORT_RECORD:
        next_image(im);
        break;
    case IMPORT_DONE:
        images_later(im->s, import_end, im);
        break;
    }
}

/* ---- from outside ---- */

int agx_import_start(struct agx_images *s, const struct agx_import_params *p, void *user,
                     struct agx_import **ret_import, struct agx_error **err)
{
    _cleanup_free_ char *name = NULL;
    struct agx_spool *spool = NULL;
    struct agx_import *im;
    int r = p->name.len > 0 ? images_whole_name(p->name, &name, err) : 0;

    if (r == 0)
        r = agx_spool_open(s, s->config.import_max_bytes, p->ready, user, &spool, err);
    if (r < 0)
        return r;
    im = agx_new(struct agx_import);
    im->s = s;
    im->in = agx_ingest_new(s);
    im->spool = spool;
    im->name = AGX_TAKE_PTR(name);
    im->params = *p;
    im->params.name = (struct agx_str){ 0 };
    im->user = user;
    im->archive.plain_fd = -1;
    s->users++;
    import_go(im, IMPORT_RECEIVE);
    *ret_import = im;
    return 0;
}

int agx_import_write(struct agx_import *im, struct agx_str bytes, struct agx_error **err)
{
    return agx_spool_write(im->spool, bytes, err);
}

void agx_import_end(struct agx_import *im)
{
    if (im->state == IMPORT_RECEIVE)
        import_go(im, IMPORT_SETTLE);
}

void agx_import_cancel(struct agx_import *im)
{
    if (im->state >= IMPORT_RECORD)
        return; /* too late: the layers exist */
    if (!im->error)
        (void)agx_error_set(&im->error, AGX_CANCELLED, "the import was cancelled");
    if (im->state == IMPORT_RECEIVE)
        import_go(im, IMPORT_DONE);
    else if (im->state == IMPORT_READ)
        agx_job_cancel(&im->job);
    else if (im->state == IMPORT_LAYERS)
        ingest_cancel(im->in);
}

/* ingest.c: ingest: adds an image to the store. */
#include "image/images_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/imageref.h"

#include <stdio.h>

#include "base/banned.h"

struct agx_ingest *agx_ingest_new(struct agx_images *s)
{
    struct agx_ingest *in = agx_new(struct agx_ingest);

    in->s = s;
    s->users++;
    return in;
}

/* Releases its layers; unused ones are removed. */
static void ingest_gone(struct agx_ingest *in)
{
    struct agx_images *s = in->s;
    bool unused = false;

    for (size_t i = 0; i < in->n_held; i++)
        unused |= --in->held[i]->refs == 0;
    if (unused && !s->stopping)
        images_sweep(s);
    free(in->held);
    free(in);
    images_release(s);
}

void ingest_begin(struct agx_ingest *in)
{
    in->n_busy++;
}

void ingest_end(struct agx_ingest *in)
{
    if (--in->n_busy == 0 && in->freed)
        ingest_gone(in);
}

void ingest_cancel(struct agx_ingest *in)
{
    layer_ops_cancel(&in->ops);
}

struct agx_ingest *agx_ingest_free(struct agx_ingest *in)
{
    if (!in)
        return NULL;
    in->freed = true;
    ingest_begin(in);
    ingest_cancel(in);
    ingest_end(in);
    return NULL;
}

int ingest_hold(struct agx_ingest *in, struct layer *l, struct agx_error **err)
{
    for (size_t i = 0; i < in->n_held; i++)
        if (in->held[i] == l)
            return 0;
    if (agx_text_grow((void **)&in->held, in->n_held, sizeof(struct layer *), err) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    in->held[in->n_held++] = l;
    l->refs++;
    return 0;
}

bool agx_ingest_has(struct agx_ingest *in, struct agx_str diff_id)
{
    struct layer *l = agx_map_get(&in->s->layers, diff_id);

    return l && l->state == LAYER_THERE && ingest_hold(in, l, NULL) == 0;
}

/* ---- layers ---- */

struct wanted {
    agx_done_fn done;
    void *user;
};

static void on_layer(void *user, const char *diff_id, struct agx_error *error)
{
    struct wanted w = *(struct wanted *)user;

    (void)diff_id;
    free(user);
    w.done(w.user, error);
}

int agx_ingest_layer(struct agx_ingest *in, struct agx_spool **take_spool,
                     const struct agx_ingest_layer *layer, agx_done_fn done, void *user,
                     struct agx_error **err)
{
    char digest[AGX_DIGEST_SIZE] = "", diff_id[AGX_DIGEST_SIZE] = "";
    const struct layer_source source = { .spool = *take_spool,
                                         .digest = digest,
                                         .diff_id = diff_id };
    struct wanted *w;
    int r;

    if ((layer->digest.len > 0 && !agx_digest_is(layer->digest)) || !agx_digest_is(layer->diff_id))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a layer's digest is not a SHA-256 digest");
    memcpy(digest, layer->digest.ptr ? layer->digest.ptr : "", layer->digest.len);
    memcpy(diff_id, layer->diff_id.ptr, layer->diff_id.len);
    w = agx_new(struct wanted);
    *w = (struct wanted){ done, user };
    r = layer_op_start(in, &source, on_layer, w, err);
    if (r < 0)
        free(w);
    else
        *take_spool = NULL;
    return r;
}

/* ---- the image ---- */

struct add_op {
    struct change change;
    struct agx_ingest *in;
    struct agx_str config; /* owned */
    char *name;            /* canonical, or NULL */
    char digest[AGX_DIGEST_SIZE];
    struct agx_image *image; /* new, or an existing one */
    bool is_new;
    agx_image_fn done;
    void *user;
};

static int add_new(struct add_op *op, struct agx_error **err)
{
    struct change *c = &op->change;
    char file[AGX_DIGEST_SIZE];
    int r = images_make(c->s, op->config, op->digest[0] ? op->digest : NULL, &op->image, err);

    if (r < 0)
        return r;
    op->is_new = true;
    op->image->added_ms = agx_clock_wall_ns() / 1000000;
    c->config_text = agx_str_dup(op->config);
    if (!c->config_text ||
        asprintf(&c->config_path, "configs/%s", agx_digest_file(op->image->id, file)) < 0)
        return agx_error_no_memory(err);
    return 0;
}

static int add_begin(struct change *c, struct agx_error **err)
{
    struct add_op *op = container_of(c, struct add_op, change);
    char id[AGX_DIGEST_SIZE], file[AGX_DIGEST_SIZE];
    struct agx_image *there;
    int r = agx_digest_of(op->config, id, err);

    if (r < 0)
        return r;
    there = agx_map_get(&c->s->images, agx_str_from(id));
    if (there)
        op->image = agx_image_ref(there);
    else
        r = add_new(op, err);
    if (r < 0)
        return r;
    if (op->digest[0] && op->is_new &&
        asprintf(&c->manifest_path, "manifests/%s", agx_digest_file(op->digest, file)) < 0)
        return agx_error_no_memory(err);
    return images_write_refs(c->s, op->image, op->name, &c->refs, err);
}

static int add_to_memory(struct add_op *op, struct agx_error **err)
{
    struct agx_images *s = op->change.s;
    int r = op->is_new ? images_put(s, agx_image_ref(op->image), err) : 0;

    if (r < 0 || !op->name)
        return r;
    images_unname(s, op->name);
    return images_name(s, op->image, op->name, err);
}

static void add_end(struct change *c, struct agx_error *error)
{
    struct add_op *op = container_of(c, struct add_op, change);
    struct agx_ingest *in = op->in;

    if (!error)
        (void)!add_to_memory(op, &error);
    if (error)
        op->image = agx_image_unref(op->image);
    op->done(op->user, op->image, error);
    change_done(c);
    free((char *)op->config.ptr);
    free(op->name);
    free(op);
    ingest_end(in);
}

int images_whole_name(struct agx_str text, char **ret_name, struct agx_error **err)
{
    struct agx_imageref ref = { 0 };
    int r = agx_imageref_parse(&ref, text, err);

    if (r < 0)
        return r;
    if (ref.id || agx_str_eq(text, AGX_STR("scratch")))
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "'%.*s' cannot be the name of an image",
                          AGX_STR_ARG(text));
    else if (!(*ret_name = agx_imageref_text(&ref)))
        r = agx_error_no_memory(err);
    agx_imageref_done(&ref);
    return r;
}

int agx_ingest_image(struct agx_ingest *in, const struct agx_ingest_image *parts, agx_image_fn done,
                     void *user, struct agx_error **err)
{
    _cleanup_free_ char *name = NULL, *config = agx_str_dup(parts->config), *manifest = NULL;
    char digest[AGX_DIGEST_SIZE] = "";
    struct add_op *op;
    int r = parts->name.len > 0 ? images_whole_name(parts->name, &name, err) : 0;

    if (r < 0)
        return r;
    if (memchr(parts->config.ptr, 0, parts->config.len) ||
        (parts->manifest.len > 0 && memchr(parts->manifest.ptr, 0, parts->manifest.len)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "an image's configuration is not JSON");
    if (parts->manifest.len > 0)
        manifest = agx_str_dup(parts->manifest);
    if (!config || (parts->manifest.len > 0 && !manifest))
        return agx_error_no_memory(err);
    if (manifest && (r = agx_digest_of(parts->manifest, digest, err)) < 0)
        return r;
    op = agx_new(struct add_op);
    op->change.begin = add_begin;
    op->change.end = add_end;
    op->in = in;
    op->config = (struct agx_str){ AGX_TAKE_PTR(config), parts->config.len };
    op->name = AGX_TAKE_PTR(name);
    memcpy(op->digest, digest, sizeof(digest));
    op->change.manifest_text = AGX_TAKE_PTR(manifest);
    op->done = done;
    op->user = user;
    ingest_begin(in);
    change_start(&op->change, in->s);
    return 0;
}

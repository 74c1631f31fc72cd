/*
 * images_remove.c: removes images from the store.
 *
 * They are removed from memory when the change begins, so that they cannot be found any more, and
 * restored if the disk operation fails.
 */
#include "image/images_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

#include "base/banned.h"

struct remove_op {
    struct change change;
    char *ref; /* NULL: prune */
    struct agx_images_removed removed;
    struct agx_image **images; /* removed from memory, a reference each */
    size_t n_images;
    struct agx_image *unnamed; /* that only loses a name, or NULL */
    agx_images_removed_fn done;
    void *user;
};

/* ---- what goes ---- */

static int take_image(struct remove_op *op, struct agx_image *i, struct agx_error **err)
{
    struct change *c = &op->change;
    char path[AGX_DIGEST_SIZE + 16], file[AGX_DIGEST_SIZE];
    int r = agx_text_grow((void **)&op->images, op->n_images, sizeof(struct agx_image *), err);

    if (r < 0)
        return r;
    images_take(c->s, i);
    op->images[op->n_images++] = i;
    for (size_t k = 0; r == 0 && k < i->names.len; k++)
        r = agx_words_add(&op->removed.names, agx_str_from(i->names.items[k]), err);
    if (r == 0)
        r = agx_words_add(&op->removed.ids, agx_str_from(i->id), err);
    (void)snprintf(path, sizeof(path), "configs/%s", agx_digest_file(i->id, file));
    if (r == 0)
        r = agx_words_add(&c->removed, agx_str_from(path), err);
    if (r < 0 || !i->digest)
        return r;
    (void)snprintf(path, sizeof(path), "manifests/%s", agx_digest_file(i->digest, file));
    return agx_words_add(&c->removed, agx_str_from(path), err);
}

static int take_named(struct remove_op *op, struct agx_error **err)
{
    struct agx_images *s = op->change.s;
    _cleanup_(agx_image_unrefp) struct agx_image *i = NULL;
    _cleanup_free_ char *name = NULL;
    int r = images_resolve(s, agx_str_from(op->ref), &i, &name, err);

    if (r < 0)
        return r;
    if (i == s->scratch)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'scratch' cannot be removed");
    if (name && i->names.len > 1) {
        r = agx_words_add(&op->removed.names, agx_str_from(name), err);
        if (r < 0)
            return r;
        images_unname(s, name);
        op->unnamed = agx_image_ref(i);
        return 0;
    }
    if (i->pins > 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "image '%s' is in use by %u sandbox%s",
                             op->ref, i->pins, i->pins == 1 ? "" : "es");
    return take_image(op, i, err);
}

static int take_unused(struct remove_op *op, struct agx_error **err)
{
    struct agx_images *s = op->change.s;
    struct agx_image *i;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (i = agx_images_next(s, &at)))
        if (i->names.len == 0 && i->pins == 0) {
            r = take_image(op, i, err);
            at = 0; /* the map has changed */
        }
    return r;
}

/* ---- the change ---- */

static int remove_begin(struct change *c, struct agx_error **err)
{
    struct remove_op *op = container_of(c, struct remove_op, change);
    int r = op->ref ? take_named(op, err) : take_unused(op, err);

    if (r == 0)
        r = change_sweep(c, &op->removed.bytes, err);
    if (r == 0)
        r = images_write_refs(c->s, NULL, NULL, &c->refs, err);
    return r;
}

/* Restores the memory. */
static void undo(struct remove_op *op)
{
    struct agx_images *s = op->change.s;

    if (op->unnamed)
        (void)!images_name(s, op->unnamed, op->removed.names.items[0], NULL);
    for (size_t i = 0; i < op->n_images; i++)
        (void)!images_put(s, agx_image_ref(op->images[i]), NULL);
    agx_words_done(&op->removed.names);
    agx_words_done(&op->removed.ids);
    op->removed.bytes = 0;
}

static void remove_end(struct change *c, struct agx_error *error)
{
    struct remove_op *op = container_of(c, struct remove_op, change);

    if (error)
        undo(op);
    change_swept(c->s, !error);
    op->done(op->user, &op->removed, error);
    for (size_t i = 0; i < op->n_images; i++)
        agx_image_unref(op->images[i]);
    agx_image_unref(op->unnamed);
    free(op->images);
    agx_words_done(&op->removed.names);
    agx_words_done(&op->removed.ids);
    change_done(c);
    images_release(c->s);
    free(op->ref);
    free(op);
}

static void images_remove_start(struct agx_images *s, char *ref, agx_images_removed_fn done,
                                void *user)
{
    struct remove_op *op = agx_new(struct remove_op);

    op->change.begin = remove_begin;
    op->change.end = remove_end;
    op->ref = ref;
    op->done = done;
    op->user = user;
    s->users++;
    if (s->holds == 0 || s->stopping)
        change_start(&op->change, s);
    else
        agx_list_push_back(&s->held, &op->change.node);
}

void images_start_held(struct agx_images *s)
{
    struct agx_list held = { 0 };
    struct change *c;

    agx_list_move(&held, &s->held);
    while ((c = AGX_LIST_TAKE(&held, struct change, node)))
        change_start(c, s);
}

void agx_images_hold(struct agx_images *s)
{
    s->holds++;
}

void agx_images_unhold(struct agx_images *s)
{
    assert(s->holds > 0);
    if (--s->holds == 0)
        images_start_held(s);
}

void agx_images_remove(struct agx_images *s, struct agx_str ref, agx_images_removed_fn done,
                       void *user)
{
    char *text = agx_str_dup(ref);

    if (!text)
        abort();
    images_remove_start(s, text, done, user);
}

void agx_images_prune(struct agx_images *s, agx_images_removed_fn done, void *user)
{
    images_remove_start(s, NULL, done, user);
}

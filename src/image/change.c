/*
 * change.c: changes of the store, one after the other; and the removal of unused layers.
 *
 * Removing a layer is moving it to tmp/, which is part of the change. Deleting its files there may
 * take long and is not.
 */
#include "image/images_internal.h"

#include "base/mem.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

/* ---- the thread ---- */

static int write_text(struct change *c, const char *path, const char *text, struct agx_error **err)
{
    return path ? agx_path_write_file(c->s->dirfd, path, agx_str_from(text), 0600, err) : 0;
}

/* A file that could not be removed is unused: the next start tries again. */
static void remove_files(struct change *c)
{
    for (size_t i = 0; i < c->removed.len; i++)
        (void)!unlinkat(c->s->dirfd, c->removed.items[i], 0);
}

/* Each gets its own name in tmp/: an earlier layer of the same digest may still be there. One that
 * cannot be moved is unused. */
static void move_layers(struct change *c)
{
    for (size_t i = 0; i < c->moved.len; i++) {
        char from[AGX_DIGEST_SIZE + 8], temp[AGX_UUID_TEXT_SIZE];

        (void)snprintf(from, sizeof(from), "layers/%s", c->moved.items[i]);
        if (agx_uuid_new(temp, NULL) < 0)
            continue;
        (void)!renameat(c->s->dirfd, from, c->s->tmpfd, temp);
        memcpy(c->moved.items[i], temp, sizeof(temp)); /* which is shorter */
    }
}

static int change_run(struct agx_job *j, struct agx_error **err)
{
    struct change *c = container_of(j, struct change, job);
    int r;

    if (c->error)
        return 0;
    if ((r = write_text(c, c->config_path, c->config_text, err)) < 0 ||
        (r = write_text(c, c->manifest_path, c->manifest_text, err)) < 0)
        return r;
    if (c->refs.len > 0)
        r = agx_path_write_file(c->s->dirfd, "refs.json", agx_buf_peek(&c->refs), 0600, err);
    if (r < 0)
        return r;
    remove_files(c);
    move_layers(c);
    return 0;
}

/* ---- one after the other ---- */

static void change_next(struct agx_images *s);

static void change_ended(struct agx_job *j, struct agx_error *error)
{
    struct change *c = container_of(j, struct change, job);
    struct agx_images *s = c->s;

    agx_error_propagate(&c->error, &error);
    agx_list_remove(&c->node);
    if (c->moved.len > 0 && !c->error)
        images_trash(s, &c->moved);
    s->users++; /* the end of a change may be that of the store */
    c->end(c, AGX_TAKE_PTR(c->error));
    s->changing = false;
    change_next(s);
    images_release(s);
}

static const struct agx_job_kind change_kind = { "change", change_run, change_ended, NULL };

static void change_refused(void *user)
{
    change_ended(user, NULL);
}

/* Begins the first change. */
static void change_next(struct agx_images *s)
{
    struct change *c = AGX_LIST_FIRST(&s->changes, struct change, node);

    if (!c)
        return;
    s->changing = true; /* until its end returns, which may request another */
    c->job = (struct agx_job){ .kind = &change_kind };
    if (s->stopping)
        (void)agx_error_set(&c->error, AGX_CANCELLED, "the store of images is closing");
    else
        (void)!c->begin(c, &c->error);
    /* A change that cannot begin also ends in a later turn. */
    if (images_job(&c->job, s->index_pool, NULL) == 0)
        return;
    if (!c->error)
        (void)agx_error_set(&c->error, AGX_UNAVAILABLE, "the store of images is closing");
    images_later(s, change_refused, &c->job);
}

void change_start(struct change *c, struct agx_images *s)
{
    c->s = s;
    c->refs.max = AGX_IMAGES_REFS_MAX;
    agx_list_push_back(&s->changes, &c->node);
    if (!s->changing)
        change_next(s);
}

void change_done(struct change *c)
{
    free(c->config_path);
    free(c->config_text);
    free(c->manifest_path);
    free(c->manifest_text);
    agx_buf_done(&c->refs);
    agx_words_done(&c->removed);
    agx_words_done(&c->moved);
}

/* ---- layers that nobody has ---- */

int change_sweep(struct change *c, uint64_t *bytes, struct agx_error **err)
{
    char file[AGX_DIGEST_SIZE];
    void *value;
    int r = 0;

    for (size_t at = 0; r == 0 && agx_map_next(&c->s->layers, &at, NULL, &value);) {
        struct layer *l = value;

        if (l->state != LAYER_THERE || l->refs > 0)
            continue;
        r = agx_words_add(&c->moved, agx_str_from(agx_digest_file(l->diff_id, file)), err);
        l->state = LAYER_GOING;
        *bytes += l->size;
    }
    return r;
}

void change_swept(struct agx_images *s, bool gone)
{
    void *value;
    size_t at = 0;

    while (agx_map_next(&s->layers, &at, NULL, &value)) {
        struct layer *l = value;

        if (l->state != LAYER_GOING)
            continue;
        if (gone) {
            layer_drop(s, l);
            at = 0; /* the map has changed */
        } else {
            l->state = LAYER_THERE;
            layer_wake(l);
        }
    }
}

static int sweep_begin(struct change *c, struct agx_error **err)
{
    uint64_t bytes = 0;

    return change_sweep(c, &bytes, err);
}

static void sweep_end(struct change *c, struct agx_error *error)
{
    change_swept(c->s, !error);
    agx_error_free(error);
    change_done(c);
    free(c);
}

void images_sweep(struct agx_images *s)
{
    struct change *c = agx_new(struct change);

    c->begin = sweep_begin;
    c->end = sweep_end;
    change_start(c, s);
}

/* ---- trash ---- */

struct trash {
    struct agx_job job;
    int tmpfd;
    struct agx_words names;
};

static void trash_free(struct trash *t)
{
    agx_words_done(&t->names);
    agx_closep(&t->tmpfd);
    free(t);
}

/* What stays is removed at the next start. */
static int trash_run(struct agx_job *j, struct agx_error **err)
{
    struct trash *t = container_of(j, struct trash, job);

    (void)err;
    for (size_t i = 0; i < t->names.len; i++)
        (void)!agx_path_remove_tree(t->tmpfd, t->names.items[i], NULL);
    return 0;
}

static void trash_done(struct agx_job *j, struct agx_error *error)
{
    agx_error_free(error);
    trash_free(container_of(j, struct trash, job));
}

void images_trash(struct agx_images *s, struct agx_words *take_names)
{
    static const struct agx_job_kind kind = { "trash", trash_run, trash_done, NULL };
    struct trash *t = agx_new(struct trash);

    t->job.kind = &kind;
    t->names = *take_names;
    *take_names = (struct agx_words){ 0 };
    t->tmpfd = fcntl(s->tmpfd, F_DUPFD_CLOEXEC, 3);
    if (t->tmpfd < 0 || images_job(&t->job, s->unpack_pool, NULL) < 0)
        trash_free(t);
}

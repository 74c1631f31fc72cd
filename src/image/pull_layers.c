/*
 * pull_layers.c: the layers of a pull: each one exists already, or is fetched into a file and
 * passed to the store, which checks and unpacks it.
 *
 *     WAITS --> FETCHED --> UNPACKED --> THERE
 *       +--------- it is in the store -----^
 *
 * If another pull (or another layer of this image) is fetching the same layer, this one waits: when
 * the other succeeds, the layer exists; when it fails, this one fetches it. So whenever a layer
 * ends, all pulls check again, each in a later turn.
 */
#include "image/pull_internal.h"

#include "base/mem.h"

#include "base/banned.h"

static void look_again(uv_timer_t *timer)
{
    pull_start_layers(container_of(timer, struct pull, timer));
}

/* Pulls that have reached their layers may be able to continue. */
static void wake_all(struct agx_puller *puller)
{
    for (struct pull *p = pull_next(puller, NULL); p; p = pull_next(puller, p))
        if (p->layers && !p->errand)
            pull_later(p, look_again);
}

static bool is_busy(const struct pull_layer *l)
{
    return l->state == PULL_LAYER_FETCHED || l->state == PULL_LAYER_UNPACKED;
}

/* It is being fetched already. */
static bool is_coming(const struct agx_puller *puller, const char *diff_id)
{
    for (const struct pull *p = pull_next(puller, NULL); p; p = pull_next(puller, p))
        for (size_t i = 0; i < p->n_layers; i++)
            if (is_busy(&p->layers[i]) && strcmp(p->layers[i].diff_id, diff_id) == 0)
                return true;
    return false;
}

static void layer_fail(struct pull_layer *l, struct agx_error *error)
{
    (void)agx_error_wrap(&error, -(int)error->code, "layer '%s'", l->blob->digest);
    pull_finish(l->pull, NULL, error);
}

/* ---- in the store's hands ---- */

static void on_unpacked(void *user, struct agx_error *error)
{
    struct pull_errand *errand = user;
    struct pull *p = errand->pull;
    size_t at = errand->layer;

    free(errand);
    if (!p) {
        agx_error_free(error);
        return;
    }
    p->layers[at].errand = NULL;
    if (error) {
        layer_fail(&p->layers[at], error);
        return;
    }
    p->layers[at].state = PULL_LAYER_THERE;
    p->progress.layers_done++;
    wake_all(p->puller);
}

static void unpack(struct pull_layer *l)
{
    const struct agx_ingest_layer layer = { .digest = agx_str_from(l->blob->digest),
                                            .diff_id = agx_str_from(l->diff_id) };
    struct agx_error *error = NULL;

    l->errand = agx_new(struct pull_errand);
    *l->errand = (struct pull_errand){ l->pull, (size_t)(l - l->pull->layers) };
    l->state = PULL_LAYER_UNPACKED;
    if (agx_ingest_layer(l->pull->ingest, &l->spool, &layer, on_unpacked, l->errand, &error) == 0) {
        wake_all(l->pull->puller); /* a place is free */
        return;
    }
    free(l->errand);
    l->errand = NULL;
    layer_fail(l, error);
}

/* ---- from the registry ---- */

static int on_piece(void *user, struct agx_str bytes, struct agx_error **err)
{
    struct pull_layer *l = user;
    int r = agx_spool_write(l->spool, bytes, err);

    if (r >= 0) {
        l->pull->progress.bytes_done += bytes.len;
        pull_news_soon(l->pull);
    }
    return r;
}

static void on_restart(void *user)
{
    struct pull_layer *l = user;

    l->pull->progress.bytes_done -= agx_spool_size(l->spool);
    agx_spool_rewind(l->spool);
}

/* The file has room again. */
static void on_ready(void *user)
{
    struct pull_layer *l = user;

    if (l->call)
        agx_registry_resume(l->call);
}

static void on_blob(void *user, struct agx_str body, struct agx_error *error)
{
    struct pull_layer *l = user;

    (void)body; /* it came in pieces */
    l->call = NULL;
    if (error)
        layer_fail(l, error);
    else
        unpack(l);
}

/* False: the pull has failed and is gone. */
static bool fetch(struct pull_layer *l)
{
    struct pull *p = l->pull;
    _cleanup_free_ char *path = NULL;
    struct agx_error *error = NULL;

    if (l->blob->size > AGX_PULL_BLOB_MAX)
        (void)agx_error_set(&error, AGX_RESOURCE_EXHAUSTED, "it has more than %llu bytes",
                            (unsigned long long)AGX_PULL_BLOB_MAX);
    else
        (void)!agx_spool_open(p->puller->images, l->blob->size, on_ready, l, &l->spool, &error);
    if (error) {
        layer_fail(l, error);
        return false;
    }
    if (asprintf(&path, "blobs/%s", l->blob->digest) < 0)
        abort(); /* small, as with agx_new() */
    l->state = PULL_LAYER_FETCHED;
    agx_registry_get(p->registry,
                     &(struct agx_registry_request){ .path = path,
                                                     .max_bytes = l->blob->size,
                                                     .is_exact = true,
                                                     .piece = on_piece,
                                                     .restart = on_restart,
                                                     .done = on_blob },
                     l, &l->call);
    return true;
}

/* ---- all of them ---- */

static size_t pull_layers_count(const struct pull *p, enum pull_layer_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_layers; i++)
        n += p->layers[i].state == state;
    return n;
}

void pull_start_layers(struct pull *p)
{
    size_t n = pull_layers_count(p, PULL_LAYER_FETCHED);

    for (size_t i = 0; i < p->n_layers; i++) {
        struct pull_layer *l = &p->layers[i];

        if (l->state != PULL_LAYER_WAITS)
            continue;
        if (agx_ingest_has(p->ingest, agx_str_from(l->diff_id))) {
            l->state = PULL_LAYER_THERE;
            p->progress.layers_done++;
            p->progress.bytes_done += l->blob->size;
        } else if (n < p->puller->layers_at_once && !is_coming(p->puller, l->diff_id)) {
            n++;
            if (!fetch(l))
                return;
        }
    }
    if (pull_layers_count(p, PULL_LAYER_THERE) == p->n_layers)
        pull_record(p);
    else
        pull_news(p);
}

void pull_drop_layers(struct pull *p)
{
    bool any = false;

    for (size_t i = 0; i < p->n_layers; i++) {
        struct pull_layer *l = &p->layers[i];

        any |= is_busy(l);
        if (l->errand)
            l->errand->pull = NULL;
        agx_registry_cancel(l->call);
        agx_spool_close(l->spool);
    }
    p->n_layers = 0;
    if (any)
        wake_all(p->puller);
}

/*
 * pull.c: requested images and their requests.
 *
 *     found in the store --------------------------------------------> told
 *     a registry (pull_registry.c, pull_layers.c) -------------------> told
 *     "docker-daemon:" (pull_engine.c) ------------------------------> told
 *
 * Every failure is reported at once. All requests for one name share one `pull` (singleflight.h).
 *
 * Work of the store for a pull is an errand, which outlives the pull.
 */
#include "base/mem.h"
#include "image/pull_internal.h"
#include "image/weburl.h"

#include "base/banned.h"

struct agx_puller_want {
    struct agx_singleflight_waiter want;
    const struct agx_puller_ops *ops;
};

/* ---- a pull ---- */

static void on_timer_closed(uv_handle_t *h)
{
    free(container_of((uv_timer_t *)h, struct pull, timer));
}

/* Frees what is only in memory. */
static void pull_done(struct pull *p)
{
    agx_buf_done(&p->manifest_text);
    agx_buf_done(&p->config_text);
    agx_manifest_done(&p->manifest);
    agx_image_config_done(&p->config);
    agx_imageref_done(&p->ref);
    agx_image_unref(p->found);
    agx_error_free(p->unknown);
    free(p->layers);
    free(p->image);
}

static void pull_free(struct agx_singleflight *w)
{
    struct pull *p = container_of(w, struct pull, flight);

    if (p->errand)
        p->errand->pull = NULL;
    agx_credentials_lookup_cancel(p->lookup);
    pull_drop_engine(p);
    pull_drop_layers(p);
    agx_registry_close(p->registry);
    agx_ingest_free(p->ingest);
    pull_done(p);
    uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

void pull_later(struct pull *p, uv_timer_cb step)
{
    (void)uv_timer_start(&p->timer, step, 0, 0);
}

/* ---- the end ---- */

struct ending {
    struct agx_image *image;
    const struct agx_error *error;
};

static void tell_end(struct agx_singleflight_waiter *want, void *context)
{
    const struct agx_puller_want *w = container_of(want, struct agx_puller_want, want);
    const struct ending *e = context;

    w->ops->done(want->user, e->error ? NULL : e->image, e->error ? agx_error_dup(e->error) : NULL);
}

void pull_finish(struct pull *p, struct agx_image *image, struct agx_error *error)
{
    if (error && p->unknown) { /* a refusal may be due to the credentials that we do not have */
        char why[500];

        (void)agx_error_wrap(&error, -(int)error->code, "without credentials (%s)",
                             agx_error_format(p->unknown, why, sizeof(why)));
    }
    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "pull image '%s'", p->image);
    agx_singleflight_end(&p->flight, tell_end, &(struct ending){ image, error });
    agx_error_free(error);
}

static void on_news(uv_timer_t *timer)
{
    pull_news(container_of(timer, struct pull, timer));
}

void pull_news_soon(struct pull *p)
{
    /* A pending step reports it too, or is the end. */
    if (!uv_is_active((uv_handle_t *)&p->timer))
        (void)uv_timer_start(&p->timer, on_news, agx_singleflight_due_ms(&p->flight), 0);
}

void pull_news(struct pull *p)
{
    if (agx_singleflight_is_due(&p->flight))
        agx_singleflight_tell(&p->flight, &p->progress);
    else
        pull_news_soon(p);
}

/* ---- the beginning ---- */

static void on_start(uv_timer_t *timer)
{
    struct pull *p = container_of(timer, struct pull, timer);
    struct agx_image *found = AGX_TAKE_PTR(p->found);

    if (found) {
        pull_finish(p, found, NULL);
        agx_image_unref(found);
    } else if (p->from_engine) {
        pull_start_engine(p);
    } else {
        pull_start_registry(p);
    }
}

/* Takes the key; `take_key` NULL: cannot be joined. */
static struct pull *pull_new(struct agx_puller *puller, const char *image, char **take_key)
{
    struct pull *p = agx_new(struct pull);

    p->puller = puller;
    p->image = strdup(image);
    if (!p->image)
        abort(); /* small, as with agx_new() */
    p->progress.image = p->image;
    p->manifest_text.max = p->config_text.max = AGX_JSON_MAX;
    (void)uv_timer_init(agx_loop_uv(puller->loop), &p->timer); /* never fails */
    pull_later(p, on_start);
    agx_singleflight_begin(&p->flight, &puller->pulls, take_key);
    return p;
}

static struct agx_puller_want *want_new(struct pull *p, const struct agx_puller_ops *ops,
                                        void *user)
{
    struct agx_puller_want *w = agx_new(struct agx_puller_want);

    *w =
        (struct agx_puller_want){ .want = { .progress = ops->progress, .user = user }, .ops = ops };
    agx_singleflight_join(&p->flight, &w->want);
    return w;
}

/* The text behind "docker-daemon:", or all of it. */
static const char *name_of(const char *image, bool *ret_from_engine)
{
    *ret_from_engine = strncmp(image, PULL_ENGINE, strlen(PULL_ENGINE)) == 0;
    return *ret_from_engine ? image + strlen(PULL_ENGINE) : image;
}

/* The current pull of this name, or a new one. */
static int pull_join(struct agx_puller *puller, const char *image, struct pull **ret_pull,
                     struct agx_error **err)
{
    _cleanup_(agx_imageref_done) struct agx_imageref ref = { 0 };
    _cleanup_free_ char *name = NULL, *key = NULL;
    struct agx_singleflight *found;
    bool from_engine;
    int r = agx_imageref_parse(&ref, agx_str_from(name_of(image, &from_engine)), err);

    if (r < 0)
        return r;
    if (ref.id && !from_engine)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "there is no image '%s', and registries do not find images by id",
                             image);
    name = agx_imageref_text(&ref);
    if (!name || asprintf(&key, "%s%s", from_engine ? PULL_ENGINE : "", name) < 0)
        abort(); /* small, as with agx_new() */
    found = agx_singleflight_find(&puller->pulls, key);
    if (found) {
        *ret_pull = container_of(found, struct pull, flight);
        return 0;
    }
    *ret_pull = pull_new(puller, image, &key);
    (*ret_pull)->from_engine = from_engine;
    (*ret_pull)->ref = ref;
    ref = (struct agx_imageref){ 0 };
    return 0;
}

int agx_puller_pull(struct agx_puller *puller, const char *ref, const struct agx_puller_ops *ops,
                    void *user, struct agx_puller_want **ret_want, struct agx_error **err)
{
    struct pull *p = NULL;
    int r;

    /* It has no source to ask. */
    if (strcmp(ref, "scratch") == 0)
        return agx_puller_ensure(puller, ref, ops, user, ret_want, err);
    r = pull_join(puller, ref, &p, err);
    if (r == 0)
        *ret_want = want_new(p, ops, user);
    return r;
}

int agx_puller_ensure(struct agx_puller *puller, const char *ref, const struct agx_puller_ops *ops,
                      void *user, struct agx_puller_want **ret_want, struct agx_error **err)
{
    struct agx_image *found = NULL;
    struct pull *p;
    bool from_engine;
    int r = agx_images_find(puller->images, agx_str_from(name_of(ref, &from_engine)), &found, NULL);

    if (r < 0)
        return agx_puller_pull(puller, ref, ops, user, ret_want, err);
    p = pull_new(puller, ref, NULL);
    p->found = found;
    *ret_want = want_new(p, ops, user);
    return 0;
}

void agx_puller_cancel(struct agx_puller_want *want)
{
    agx_singleflight_cancel(want ? &want->want : NULL);
}

/* ---- the puller ---- */

static char *pull_copy(const char *s)
{
    char *c = s ? strdup(s) : NULL;

    if (s && !c)
        abort(); /* small, as with agx_new() */
    return c;
}

static void copy_insecure(struct agx_puller *puller, const char *const *from)
{
    size_t n = 0;

    while (from && from[n])
        n++;
    puller->insecure = agx_alloc((n + 1) * sizeof(*puller->insecure));
    while (n-- > 0)
        puller->insecure[n] = pull_copy(from[n]);
}

static void copy_engine(struct agx_puller *puller, const struct agx_fetch_endpoint *from)
{
    puller->has_engine = true;
    puller->engine = (struct agx_fetch_endpoint){ .unix_socket = pull_copy(from->unix_socket),
                                                  .base = pull_copy(from->base),
                                                  .ca_file = pull_copy(from->ca_file),
                                                  .cert_file = pull_copy(from->cert_file),
                                                  .key_file = pull_copy(from->key_file),
                                                  .insecure = from->insecure };
}

static int check_insecure(const char *const *hosts, struct agx_error **err)
{
    for (; hosts && *hosts; hosts++) {
        _cleanup_free_ char *url = NULL;
        struct agx_weburl u;

        if (asprintf(&url, "http://%s", *hosts) < 0)
            abort(); /* small, as with agx_new() */
        if (!agx_weburl_parse(&u, agx_str_from(url)) || u.rest.len > 0)
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "insecure registry '%s' is neither a host nor a host and port",
                                 *hosts);
    }
    return 0;
}

int agx_puller_open(struct agx_loop *l, struct agx_images *images,
                    const struct agx_puller_config *config, struct agx_puller **ret_puller,
                    struct agx_error **err)
{
    struct agx_puller *puller;
    int r = check_insecure(config->insecure, err);

    if (r < 0)
        return r;
    puller = agx_new(struct agx_puller);
    puller->loop = l;
    puller->images = images;
    puller->pulls = (struct agx_singleflight_list){ .loop = l,
                                                    .progress_ms = AGX_PULL_PROGRESS_MS,
                                                    .free = pull_free };
    puller->has_env = config->env;
    if (config->env)
        puller->env = agx_credentials_env_dup(config->env);
    copy_insecure(puller, config->insecure);
    if (config->engine)
        copy_engine(puller, config->engine);
    puller->no_engine = pull_copy(config->no_engine);
    puller->layers_at_once = config->layers_at_once;
    puller->tries = config->tries;
    puller->retry_ms = config->retry_ms;
    puller->connect_ms = config->connect_ms;
    puller->quiet_ms = config->quiet_ms;
    *ret_puller = puller;
    return 0;
}

struct agx_puller *agx_puller_close(struct agx_puller *puller)
{
    if (!puller)
        return NULL;
    agx_singleflight_close(&puller->pulls);
    agx_credentials_env_done(&puller->env);
    for (char **host = puller->insecure; *host; host++)
        free(*host);
    free(puller->insecure);
    free((char *)puller->engine.unix_socket);
    free((char *)puller->engine.base);
    free((char *)puller->engine.ca_file);
    free((char *)puller->engine.cert_file);
    free((char *)puller->engine.key_file);
    free(puller->no_engine);
    free(puller);
    return NULL;
}

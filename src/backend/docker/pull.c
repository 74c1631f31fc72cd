/*
 * pull.c: images that are requested.
 *
 *     LOOK --there--------------------------------------------> told
 *      |                                                         ^
 *      +--404--> CREDENTIALS --> PULL --ended--> LOOK_AGAIN -----+
 *
 * Every failure is reported at once. All requests for one image share one `pull`
 * (image/singleflight.h).
 */
#include "backend/docker/pull.h"

#include "backend/docker/api/auth.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "core/imageref.h"
#include "image/credentials.h"
#include "image/singleflight.h"

#include "base/banned.h"

enum pull_state { PULL_LOOK, PULL_CREDENTIALS, PULL_PULL, PULL_LOOK_AGAIN };

struct pull {
    struct agx_docker_puller *puller;
    struct agx_singleflight flight; /* its key is the canonical name */
    struct agx_imageref ref;
    char *image; /* as it was first requested */
    enum pull_state state;
    struct agx_docker_call *call;
    struct agx_credentials_lookup *lookup;
    struct agx_error *unknown; /* why there are no credentials; NULL: none are needed */
    struct agx_error *error;   /* in the stream */
    struct agx_docker_pull_progress layers;
};

struct agx_docker_want {
    struct agx_singleflight_waiter want;
    const struct agx_docker_ensure_ops *ops;
};

struct agx_docker_puller {
    struct agx_docker_engine *engine;
    struct agx_credentials_env env; /* owned */
    bool has_env;
    uint64_t quiet_ms;
    struct agx_singleflight_list pulls;
    struct agx_siphash_key seed;
};

static void pull_look(struct pull *p);

static void pull_free(struct pull *p)
{
    agx_docker_cancel(p->call);
    agx_credentials_lookup_cancel(p->lookup);
    agx_docker_pull_progress_done(&p->layers);
    agx_imageref_done(&p->ref);
    agx_error_free(p->unknown);
    agx_error_free(p->error);
    free(p->image);
    free(p);
}

static void on_unwanted(struct agx_singleflight *w)
{
    pull_free(container_of(w, struct pull, flight));
}

/* ---- the end ---- */

struct ending {
    const json_t *inspect;
    const struct agx_error *error;
};

static void tell_end(struct agx_singleflight_waiter *want, void *context)
{
    const struct agx_docker_want *w = container_of(want, struct agx_docker_want, want);
    const struct ending *e = context;
    struct agx_docker_image image;
    struct agx_error *why = e->error ? agx_error_dup(e->error) : NULL;
    int r = e->error ? -1 : 0;

    agx_docker_image_init(&image);
    if (r == 0 && (r = agx_docker_image_parse(&image, e->inspect, &why)) < 0)
        (void)agx_error_wrap(&why, r, "look at image '%s'",
                             container_of(want->flight, struct pull, flight)->image);
    w->ops->done(want->user, r < 0 ? NULL : &image, why);
    agx_docker_image_done(&image);
}

/* Reports to all requests; takes `error`. The pull is gone afterwards. */
static void pull_finish(struct pull *p, const json_t *inspect, struct agx_error *error)
{
    agx_singleflight_end(&p->flight, tell_end, &(struct ending){ inspect, error });
    agx_error_free(error);
}

/* A refusal may be due to the credentials that we do not have. */
static void finish_pull(struct pull *p, struct agx_error *error)
{
    char why[500];

    if (p->unknown)
        (void)agx_error_wrap(&error, -(int)error->code, "without credentials (%s)",
                             agx_error_format(p->unknown, why, sizeof(why)));
    pull_finish(p, NULL, error);
}

/* ---- progress ---- */

static void tell_progress(struct pull *p)
{
    struct agx_pull now = { .image = p->image };

    agx_docker_pull_progress_sum(&p->layers, &now);
    agx_singleflight_tell(&p->flight, &now);
}

/* ---- the pull ---- */

/* Messages of a registry that have only one meaning. */
static enum agx_code code_of(const char *message)
{
    static const struct {
        const char *words;
        enum agx_code code;
    } known[] = {
        { "manifest unknown", AGX_NOT_FOUND },
        { "not found", AGX_NOT_FOUND },
        { "does not exist", AGX_NOT_FOUND },
        { "unauthorized", AGX_PERMISSION_DENIED },
        { "denied", AGX_PERMISSION_DENIED },
        { "no space left", AGX_RESOURCE_EXHAUSTED },
        { "no matching manifest", AGX_FAILED_PRECONDITION },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(known); i++)
        if (strstr(message, known[i].words))
            return known[i].code;
    return AGX_UNAVAILABLE;
}

static void on_line(void *user, json_t *line)
{
    struct pull *p = user;
    const json_t *detail = json_object_get(line, "errorDetail");
    const char *message = json_string_value(json_object_get(detail, "message"));

    if (!message)
        message = json_string_value(json_object_get(line, "error"));
    if (message && !p->error)
        (void)agx_error_set(&p->error, code_of(message), "pull image '%s': %.*s", p->image,
                            agx_text_cut(agx_str_from(message), AGX_FAILURE_TEXT_MAX), message);
    if (agx_docker_pull_progress_note(&p->layers, line) && agx_singleflight_is_due(&p->flight))
        tell_progress(p);
}

static void on_pulled(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct pull *p = user;

    (void)answer;
    p->call = NULL;
    agx_error_propagate(&error, &p->error);
    if (error) {
        finish_pull(p, error);
        return;
    }
    p->state = PULL_LOOK_AGAIN;
    pull_look(p);
}

static void start_pull(struct pull *p, const char *auth)
{
    static const struct agx_docker_stream_ops ops = { .object = on_line, .done = on_pulled };
    _cleanup_free_ char *name = NULL, *what = NULL, *path = NULL;
    struct agx_error *error = NULL;

    if (asprintf(&name, "%s/%s", p->ref.registry, p->ref.path) < 0 ||
        asprintf(&what, "pull image '%s'", p->image) < 0)
        abort(); /* small, as with agx_new() */
    path = agx_docker_path("/images/create?fromImage=%s&tag=%s", name,
                           p->ref.digest ? p->ref.digest : p->ref.tag);
    p->state = PULL_PULL;
    if (agx_docker_stream(p->puller->engine,
                          &(struct agx_docker_request){ .method = "POST",
                                                        .path = path,
                                                        .what = what,
                                                        .auth = auth,
                                                        .quiet_ms = p->puller->quiet_ms },
                          &ops, p, &p->call, &error) < 0)
        pull_finish(p, NULL, error);
    else
        tell_progress(p);
}

static void on_credentials(void *user, const struct agx_credentials *found, struct agx_error *error)
{
    struct pull *p = user;
    _cleanup_free_ char *auth = found ? agx_docker_auth(found) : NULL;

    p->lookup = NULL;
    p->unknown = error;
    start_pull(p, auth);
}

static void find_credentials(struct pull *p)
{
    struct agx_docker_puller *puller = p->puller;

    if (!puller->has_env) {
        start_pull(p, NULL);
        return;
    }
    p->state = PULL_CREDENTIALS;
    p->lookup = agx_credentials_lookup_start(
        agx_docker_engine_loop(puller->engine),
        &(struct agx_credentials_lookup_params){ .env = &puller->env,
                                                 .registry = p->ref.registry,
                                                 .helper_ms = AGX_CREDENTIALS_HELPER_MS },
        on_credentials, p);
}

/* ---- the look ---- */

static void on_looked(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct pull *p = user;

    p->call = NULL;
    if (!error) {
        pull_finish(p, answer->json, NULL);
    } else if (answer->status != 404 || p->state == PULL_LOOK_AGAIN || p->ref.id) {
        pull_finish(p, NULL, error);
    } else {
        agx_error_free(error);
        find_credentials(p);
    }
}

static int start_look(struct pull *p, struct agx_error **err)
{
    _cleanup_free_ char *path = agx_docker_path("/images/%s/json", p->image), *what = NULL;

    if (asprintf(&what, "look at image '%s'", p->image) < 0)
        abort(); /* small, as with agx_new() */
    return agx_docker_call(
        p->puller->engine,
        &(struct agx_docker_request){ .method = "GET", .path = path, .what = what }, on_looked, p,
        &p->call, err);
}

static void pull_look(struct pull *p)
{
    struct agx_error *error = NULL;

    if (start_look(p, &error) < 0)
        pull_finish(p, NULL, error);
}

/* ---- who wants ---- */

/* A new pull whose look is in progress. Takes the name and its canonical form on success. */
static int pull_new(struct agx_docker_puller *puller, const char *image, struct agx_imageref *ref,
                    char **take_key, struct pull **ret_pull, struct agx_error **err)
{
    struct pull *p = agx_new(struct pull);
    int r;

    p->puller = puller;
    p->image = strdup(image);
    if (!p->image)
        abort(); /* small, as with agx_new() */
    p->ref = *ref;
    agx_docker_pull_progress_init(&p->layers, puller->seed);
    r = start_look(p, err);
    *ref = (struct agx_imageref){ 0 };
    if (r < 0) {
        pull_free(p);
        return r;
    }
    agx_singleflight_begin(&p->flight, &puller->pulls, take_key);
    *ret_pull = p;
    return 0;
}

int agx_docker_ensure(struct agx_docker_puller *puller, const char *image,
                      const struct agx_docker_ensure_ops *ops, void *user,
                      struct agx_docker_want **ret_want, struct agx_error **err)
{
    _cleanup_(agx_imageref_done) struct agx_imageref ref = { 0 };
    _cleanup_free_ char *key = NULL;
    struct agx_docker_want *w;
    struct agx_singleflight *found;
    struct pull *p;
    int r = agx_imageref_parse(&ref, agx_str_from(image), err);

    if (r < 0)
        return r;
    key = agx_imageref_text(&ref);
    if (!key)
        abort(); /* small, as with agx_new() */
    found = agx_singleflight_find(&puller->pulls, key);
    if (!found) {
        r = pull_new(puller, image, &ref, &key, &p, err);
        if (r < 0)
            return r;
        found = &p->flight;
    }
    w = agx_new(struct agx_docker_want);
    *w =
        (struct agx_docker_want){ .want = { .progress = ops->progress, .user = user }, .ops = ops };
    agx_singleflight_join(found, &w->want);
    *ret_want = w;
    return 0;
}

void agx_docker_ensure_cancel(struct agx_docker_want *want)
{
    agx_singleflight_cancel(want ? &want->want : NULL);
}

/* ---- the puller ---- */

int agx_docker_puller_open(struct agx_docker_engine *e,
                           const struct agx_docker_puller_config *config,
                           struct agx_docker_puller **ret_puller, struct agx_error **err)
{
    struct agx_docker_puller *puller = agx_new(struct agx_docker_puller);
    int r = agx_random_bytes(&puller->seed, sizeof(puller->seed), err);

    if (r < 0) {
        free(puller);
        return r;
    }
    puller->engine = e;
    puller->pulls = (struct agx_singleflight_list){ .loop = agx_docker_engine_loop(e),
                                                    .progress_ms = AGX_DOCKER_PROGRESS_MS,
                                                    .free = on_unwanted };
    puller->quiet_ms = config->quiet_ms;
    puller->has_env = config->env;
    if (config->env)
        puller->env = agx_credentials_env_dup(&(struct agx_credentials_env){
            config->env->config, config->env->home, config->env->path, config->env->all });
    *ret_puller = puller;
    return 0;
}

struct agx_docker_puller *agx_docker_puller_close(struct agx_docker_puller *puller)
{
    if (!puller)
        return NULL;
    agx_singleflight_close(&puller->pulls);
    agx_credentials_env_done(&puller->env);
    free(puller);
    return NULL;
}

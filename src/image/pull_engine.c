/*
 * pull_engine.c: an image from a local Docker Engine: the output of `docker save`, as a stream into
 * an import. The image keeps its name there.
 */
#include "image/pull_internal.h"

#include "base/json.h"
#include "base/mem.h"
#include "core/text.h"

#include "base/banned.h"

static void on_imported(void *user, struct agx_image *const *images, size_t n,
                        struct agx_error *error)
{
    struct pull_errand *errand = user;
    struct pull *p = errand->pull;

    free(errand);
    if (!p) {
        agx_error_free(error);
        return;
    }
    p->errand = NULL;
    p->import = NULL;
    if (!error && n != 1)
        (void)agx_error_set(&error, AGX_DATA_LOSS, "the Docker Engine gave %zu images", n);
    pull_finish(p, error ? NULL : images[0], error);
}

static void on_progress(void *user, const struct agx_pull *progress)
{
    struct pull *p = ((struct pull_errand *)user)->pull;

    if (!p)
        return;
    p->progress = *progress;
    p->progress.image = p->image;
    pull_news(p);
}

static void on_ready(void *user)
{
    struct pull *p = ((struct pull_errand *)user)->pull;

    if (p && p->fetch_call)
        agx_fetch_resume(p->fetch_call);
}

static void on_piece(void *user, struct agx_str bytes)
{
    struct pull *p = user;
    struct agx_error *error = NULL;
    int r = agx_import_write(p->import, bytes, &error);

    if (r < 0) {
        pull_finish(p, NULL, error);
        return;
    }
    if (r > 0)
        agx_fetch_pause(p->fetch_call);
    p->progress.bytes_done += bytes.len;
    pull_news(p);
}

/* The engine's own message: {"message": "..."}. */
static struct agx_error *refusal(const struct agx_fetch_answer *answer)
{
    _cleanup_json_ json_t *doc = NULL;
    struct agx_error *error = NULL;
    struct agx_str words;

    (void)!agx_json_parse(answer->body, AGX_JSON_MAX, AGX_DEPTH_MAX, &doc, NULL);
    words = agx_text_printable(agx_str_from(json_string_value(json_object_get(doc, "message"))),
                               AGX_FAILURE_TEXT_MAX);
    (void)agx_error_set(&error, answer->status == 404 ? AGX_NOT_FOUND : AGX_UNAVAILABLE,
                        "the Docker Engine answers %u%s%.*s", answer->status,
                        words.len > 0 ? ": " : "", AGX_STR_ARG(words));
    return error;
}

static void on_answer(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    struct pull *p = user;

    p->fetch_call = NULL;
    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "ask the Docker Engine");
    else if (answer->status != 200)
        error = refusal(answer);
    if (error)
        pull_finish(p, NULL, error);
    else
        agx_import_end(p->import);
}

static int start_import(struct pull *p, struct agx_error **err)
{
    _cleanup_free_ char *name = p->ref.id ? NULL : agx_imageref_text(&p->ref);
    int r;

    p->errand = agx_new(struct pull_errand);
    p->errand->pull = p;
    r = agx_import_start(p->puller->images,
                         &(struct agx_import_params){ .name = agx_str_from(name),
                                                      .ready = on_ready,
                                                      .progress = on_progress,
                                                      .done = on_imported },
                         p->errand, &p->import, err);
    if (r < 0) {
        free(p->errand);
        p->errand = NULL;
    }
    return r;
}

static int start_fetch(struct pull *p, struct agx_error **err)
{
    struct agx_fetch_config config = AGX_FETCH_CONFIG_INIT;
    _cleanup_free_ char *name = agx_imageref_text(&p->ref), *path = NULL;
    int r;

    /* No character of a name needs escaping. */
    if (!name || asprintf(&path, "/images/%s/get", name) < 0)
        abort(); /* small, as with agx_new() */
    config.endpoint = p->puller->engine;
    r = agx_fetch_open(p->puller->loop, &config, &p->fetch, err);
    if (r < 0)
        return r;
    return agx_fetch_start(p->fetch,
                           &(struct agx_fetch_request){ .method = "GET",
                                                        .path = path,
                                                        .connect_ms = p->puller->connect_ms,
                                                        .quiet_ms = AGX_PULL_ENGINE_QUIET_MS,
                                                        .piece = on_piece,
                                                        .done = on_answer },
                           p, &p->fetch_call, err);
}

void pull_start_engine(struct pull *p)
{
    struct agx_error *error = NULL;

    if (!p->puller->has_engine)
        (void)agx_error_set(&error, AGX_FAILED_PRECONDITION, "there is no Docker Engine%s%s",
                            p->puller->no_engine ? ": " : "", agx_text(p->puller->no_engine));
    else if (start_import(p, &error) == 0)
        (void)!start_fetch(p, &error);
    if (error)
        pull_finish(p, NULL, error);
    else
        pull_news(p);
}

void pull_drop_engine(struct pull *p)
{
    if (p->import)
        agx_import_cancel(p->import);
    p->fetch = agx_fetch_close(p->fetch);
}

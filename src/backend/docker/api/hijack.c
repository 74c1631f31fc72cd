/*
 * hijack.c: attach and exec start: a duplex to the engine, whose output is separated by stream.
 *
 *     WAIT (for the version) --> duplex --open()--> bytes --> closed()
 *
 * Writes before there is a duplex are kept in `early`.
 */
#include "backend/docker/api/hijack.h"

#include "backend/docker/api/engine_internal.h"
#include "core/text.h"
#include "fetch/duplex.h"

#include <assert.h>

#include "base/banned.h"

struct agx_docker_hijack {
    struct docker_wait wait;
    const struct agx_docker_hijack_ops *ops;
    void *user;
    const char *method; /* a constant */
    char *path, *what;
    struct agx_buf body, early;
    uint64_t open_ms;
    size_t out_max;
    bool raw, ending, paused;
    struct agx_dockerstream frames;
    struct agx_duplex *duplex; /* NULL: it waits */
    bool *gone;                /* set when it is closed inside its own callback */
};

static struct agx_docker_hijack *hijack_of(struct docker_wait *w)
{
    return container_of(w, struct agx_docker_hijack, wait);
}

static void hijack_free(struct agx_docker_hijack *h)
{
    if (h->gone)
        *h->gone = true;
    agx_buf_done(&h->body);
    agx_buf_done(&h->early);
    free(h->path);
    free(h->what);
    free(h);
}

static void hijack_drop(struct docker_wait *w)
{
    struct agx_docker_hijack *h = hijack_of(w);

    h->duplex = agx_duplex_close(h->duplex);
    docker_wait_end(w);
    hijack_free(h);
}

/* Handles the end of the duplex; takes `error`. */
static void hijack_finish(struct agx_docker_hijack *h, struct agx_error *error)
{
    const struct agx_docker_hijack_ops *ops = h->ops;
    void *user = h->user;

    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "%s", h->what);
    docker_wait_end(&h->wait);
    hijack_free(h);
    ops->closed(user, error);
}

static void hijack_fail(struct docker_wait *w, struct agx_error *error)
{
    hijack_finish(hijack_of(w), error);
}

/* ---- the duplex's callbacks ---- */

static void on_open(void *user)
{
    struct agx_docker_hijack *h = user;

    h->ops->open(h->user);
}

static void on_refused(void *user, unsigned status, struct agx_str body)
{
    struct agx_docker_hijack *h = user;
    struct agx_error *error = NULL;

    h->duplex = NULL;
    if (status < 300)
        (void)agx_error_set(&error, AGX_DATA_LOSS,
                            "the Docker Engine did not hand its connection over (status %u)",
                            status);
    else
        (void)docker_refused(status, body, &error);
    hijack_finish(h, error);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct agx_docker_hijack *h = user;
    struct agx_error *why = NULL;

    h->duplex = NULL;
    if (error)
        (void)docker_unreached(h->wait.engine, &error, &why);
    else if (!h->raw && !agx_dockerstream_is_whole(&h->frames))
        (void)agx_error_set(&why, AGX_DATA_LOSS, "the Docker Engine's stream is cut short");
    hijack_finish(h, why);
}

static void on_drained(void *user)
{
    struct agx_docker_hijack *h = user;

    if (h->ops->drained)
        h->ops->drained(h->user);
}

/* The engine's stream is broken; takes `error`. */
static void hijack_spoil(struct agx_docker_hijack *h, struct agx_error *error)
{
    h->duplex = agx_duplex_close(h->duplex);
    hijack_finish(h, error);
}

/* Passes one piece to the user; false: the hijack is gone. */
static bool hijack_give(struct agx_docker_hijack *h, const struct agx_dockerstream_piece *piece)
{
    enum agx_dockerstream_kind stream = piece->stream;
    struct agx_error *error = NULL;
    bool gone = false;

    if (stream == AGX_DOCKERSTREAM_SYSTEM) {
        (void)agx_error_set(&error, AGX_INTERNAL, "%.*s",
                            agx_text_cut(piece->bytes, AGX_FAILURE_TEXT_MAX), piece->bytes.ptr);
        hijack_spoil(h, error);
        return false;
    }
    if (stream == AGX_DOCKERSTREAM_STDIN)
        stream = AGX_DOCKERSTREAM_STDOUT;
    h->gone = &gone;
    h->ops->data(h->user, stream, piece->bytes);
    if (!gone)
        h->gone = NULL;
    return !gone;
}

static size_t on_data(void *user, struct agx_str bytes)
{
    struct agx_docker_hijack *h = user;
    struct agx_dockerstream_piece piece = { AGX_DOCKERSTREAM_STDOUT, bytes };
    struct agx_error *error = NULL;
    size_t len = bytes.len;
    int r;

    if (h->raw) {
        (void)hijack_give(h, &piece);
        return len;
    }
    while (!h->paused && (r = agx_dockerstream_next(&h->frames, &bytes, &piece, &error)) != 0) {
        if (r < 0) {
            hijack_spoil(h, error);
            return len;
        }
        if (!hijack_give(h, &piece))
            return len;
    }
    return len - bytes.len;
}

static const struct agx_duplex_ops duplex_ops = { on_open, on_refused, on_data, on_drained,
                                                  on_closed };

/* ---- the start ---- */

/* Does what the user requested meanwhile. */
static int catch_up(struct agx_docker_hijack *h, struct agx_error **err)
{
    int r = agx_duplex_write(h->duplex, agx_buf_peek(&h->early), err);

    agx_buf_done(&h->early);
    if (r == 0 && h->ending)
        r = agx_duplex_end(h->duplex, err);
    agx_duplex_pause(h->duplex, h->paused);
    return r;
}

static int hijack_go(struct docker_wait *w, struct agx_error **err)
{
    struct agx_docker_hijack *h = hijack_of(w);
    static const char *const headers[] = { "Content-Type: application/json", NULL };
    _cleanup_free_ char *path = docker_versioned(w->engine, h->path);
    struct agx_duplex_request q = { .method = h->method,
                                    .path = path,
                                    .headers = headers,
                                    .protocol = "tcp",
                                    .body = agx_buf_peek(&h->body),
                                    .open_ms = h->open_ms,
                                    .out_max = h->out_max,
                                    .body_max = AGX_JSON_MAX };
    int r;

    if (!path)
        return agx_error_no_memory(err);
    r = agx_duplex_open(w->engine->fetch, &q, &duplex_ops, h, &h->duplex, err);
    agx_buf_done(&h->body);
    if (r == 0 && (r = catch_up(h, err)) < 0)
        h->duplex = agx_duplex_close(h->duplex);
    return r;
}

static const struct docker_wait_kind hijack_kind = { hijack_go, hijack_fail, hijack_drop };

int agx_docker_hijack(struct agx_docker_engine *e, const struct agx_docker_hijack_request *q,
                      const struct agx_docker_hijack_ops *ops, void *user,
                      struct agx_docker_hijack **ret_hijack, struct agx_error **err)
{
    const struct agx_docker_request *request = &q->request;
    struct agx_docker_hijack *h = agx_new(struct agx_docker_hijack);
    int r = 0;

    assert(request->method && request->what && ops->open && ops->data && ops->closed);
    h->wait.kind = &hijack_kind;
    h->wait.engine = e;
    h->ops = ops;
    h->user = user;
    h->method = request->method;
    h->path = docker_dup(request->path);
    h->what = docker_dup(request->what);
    h->open_ms = request->deadline_ms ? request->deadline_ms : e->config.deadline_ms;
    h->raw = q->raw;
    h->out_max = q->out_max ? q->out_max : AGX_DOCKER_HIJACK_OUT_MAX;
    h->early.max = h->out_max;
    h->body.max = AGX_DOCKER_BODY_MAX;
    if (!h->path)
        r = agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "%s: the request's path is too long",
                          h->what);
    if (r == 0 && request->body)
        r = agx_json_write(request->body, &h->body, err);
    if (r == 0)
        r = docker_wait_start(&h->wait, err);
    if (r < 0) {
        hijack_free(h);
        return r;
    }
    *ret_hijack = h;
    return 0;
}

/* ---- the user's calls ---- */

int agx_docker_hijack_write(struct agx_docker_hijack *h, struct agx_str bytes,
                            struct agx_error **err)
{
    if (h->duplex)
        return agx_duplex_write(h->duplex, bytes, err);
    if (h->ending)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "%s: our direction has ended", h->what);
    if (agx_buf_append(&h->early, bytes) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "%s: %zu bytes wait to be sent already",
                             h->what, h->early.len);
    return 0;
}

int agx_docker_hijack_end(struct agx_docker_hijack *h, struct agx_error **err)
{
    if (h->duplex)
        return agx_duplex_end(h->duplex, err);
    if (strncmp(h->wait.engine->endpoint.base, "https:", strlen("https:")) == 0)
        return agx_error_set(err, AGX_UNIMPLEMENTED, "%s: over TLS one direction cannot end alone",
                             h->what);
    h->ending = true;
    return 0;
}

void agx_docker_hijack_pause(struct agx_docker_hijack *h, bool paused)
{
    h->paused = paused;
    if (h->duplex)
        agx_duplex_pause(h->duplex, paused);
}

struct agx_docker_hijack *agx_docker_hijack_close(struct agx_docker_hijack *h)
{
    if (h)
        hijack_drop(&h->wait);
    return NULL;
}

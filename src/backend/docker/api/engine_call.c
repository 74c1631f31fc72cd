/*
 * engine_call.c: one call: waits for the version, sends the request, and reads the answer, whole or
 * object by object. Any end frees it; a callback that ends it early sets `gone`.
 */
#include "backend/docker/api/engine_internal.h"
#include "codec/jsonseq.h"

#include <assert.h>

#include "base/banned.h"

struct agx_docker_call {
    struct docker_wait wait;
    const char *method; /* a constant */
    char *path, *what, *auth;
    struct agx_buf body;
    agx_fetch_read_fn read;
    uint64_t deadline_ms, quiet_ms;
    uint64_t start_ms; /* loop time */
    bool is_stream;
    struct agx_docker_stream_ops ops; /* for a plain call only `done` */
    void *user;
    struct agx_jsonseq objects;
    struct agx_fetch_call *fetched; /* NULL while it waits */
    bool *gone;                     /* set when it is cancelled inside its own callback */
};

static struct agx_docker_call *call_of(struct docker_wait *w)
{
    return container_of(w, struct agx_docker_call, wait);
}

static void call_free(struct agx_docker_call *c)
{
    if (c->gone)
        *c->gone = true;
    agx_jsonseq_done(&c->objects);
    agx_buf_done(&c->body);
    free(c->path);
    free(c->what);
    free(c->auth);
    free(c);
}

static void engine_call_drop(struct docker_wait *w)
{
    struct agx_docker_call *c = call_of(w);

    agx_fetch_cancel(c->fetched);
    docker_wait_end(w);
    call_free(c);
}

/* The end: the call is freed before its callback. */
static void engine_call_finish(struct agx_docker_call *c, struct agx_docker_answer *answer,
                               struct agx_error *error)
{
    agx_docker_done_fn done = c->ops.done;
    void *user = c->user;

    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "%s", c->what);
    docker_wait_end(&c->wait);
    call_free(c);
    done(user, answer, error);
    json_decref(answer->json);
}

static void engine_call_fail(struct docker_wait *w, struct agx_error *error)
{
    engine_call_finish(call_of(w), &(struct agx_docker_answer){ 0 }, error);
}

/* Unreadable text of the engine: that must not look like our caller's bad argument. */
static int unreadable(struct agx_error *why, struct agx_error **err)
{
    enum agx_code code = why->code == AGX_INVALID_ARGUMENT ? AGX_DATA_LOSS : why->code;

    (void)agx_error_set(err, code, "the Docker Engine's answer: %s", why->message);
    agx_error_free(why);
    return -(int)code;
}

/* The body of a success; NULL in *ret_json: there is none, or its type is not JSON. */
static int read_body(struct agx_docker_call *c, const struct agx_fetch_answer *answer,
                     json_t **ret_json, struct agx_error **err)
{
    const char *type = agx_fetch_answer_header(answer, "Content-Type");
    struct agx_error *why = NULL;

    if (answer->body.len == 0 || !type ||
        !agx_str_starts(agx_str_from(type), AGX_STR("application/json")))
        return 0;
    if (agx_json_parse(answer->body, c->wait.engine->config.answer_max, AGX_DEPTH_MAX, ret_json,
                       &why) < 0)
        return unreadable(why, err);
    return 0;
}

static void on_done(void *user, const struct agx_fetch_answer *fetched, struct agx_error *error)
{
    struct agx_docker_call *c = user;
    struct agx_docker_answer answer = { .status = fetched->status, .fetched = fetched };
    struct agx_error *why = NULL;

    c->fetched = NULL;
    if (error)
        (void)docker_unreached(c->wait.engine, &error, &why);
    else if ((fetched->status < 200 || fetched->status > 299) && fetched->status != 304)
        (void)docker_refused(fetched->status, fetched->body, &why);
    else if (!c->is_stream)
        (void)!read_body(c, fetched, &answer.json, &why);
    else if (!agx_jsonseq_is_whole(&c->objects))
        (void)agx_error_set(&why, AGX_DATA_LOSS, "the Docker Engine's answer is cut short");
    engine_call_finish(c, &answer, why);
}

static void on_begun(void *user, const struct agx_fetch_answer *answer)
{
    struct agx_docker_call *c = user;

    (void)answer;
    if (c->ops.begun)
        c->ops.begun(c->user);
}

/* The rest of the stream cannot be read. */
static void engine_call_spoil(struct agx_docker_call *c, struct agx_error *why)
{
    struct agx_error *error = NULL;

    (void)unreadable(why, &error);
    agx_fetch_cancel(c->fetched);
    engine_call_finish(c, &(struct agx_docker_answer){ .status = 200 }, error);
}

/* Parses one object and passes it on; false: the call has ended, by its user or because it is
 * unreadable. */
static bool take_object(struct agx_docker_call *c, struct agx_str text)
{
    _cleanup_json_ json_t *object = NULL;
    struct agx_error *why = NULL;
    bool gone = false;

    if (agx_json_parse(text, text.len, AGX_DEPTH_MAX, &object, &why) < 0) {
        engine_call_spoil(c, why);
        return false;
    }
    c->gone = &gone;
    c->ops.object(c->user, object);
    if (!gone)
        c->gone = NULL;
    return !gone;
}

static void on_piece(void *user, struct agx_str bytes)
{
    struct agx_docker_call *c = user;
    struct agx_error *why = NULL;
    struct agx_str text;
    int r;

    while ((r = agx_jsonseq_next(&c->objects, &bytes, &text, &why)) > 0)
        if (!take_object(c, text))
            return;
    if (r < 0)
        engine_call_spoil(c, why);
}

/* fetch.h's read gets the user, not the call. */
static ssize_t on_read(void *user, void *buf, size_t size)
{
    struct agx_docker_call *c = user;

    return c->read(c->user, buf, size);
}

/* The rest of the deadline: waiting for the version counts too. */
static uint64_t time_left(const struct agx_docker_call *c)
{
    uint64_t passed = uv_now(agx_loop_uv(c->wait.engine->loop)) - c->start_ms;

    if (c->deadline_ms == 0)
        return 0;
    return passed < c->deadline_ms ? c->deadline_ms - passed : 1;
}

static int engine_call_go(struct docker_wait *w, struct agx_error **err)
{
    struct agx_docker_call *c = call_of(w);
    struct agx_docker_engine *e = w->engine;
    _cleanup_free_ char *path = docker_versioned(e, c->path);
    const char *headers[3] = { NULL };
    struct agx_fetch_request q = { .method = c->method,
                                   .path = path,
                                   .headers = headers,
                                   .body = agx_buf_peek(&c->body),
                                   .read = c->read ? on_read : NULL,
                                   .connect_ms = e->config.connect_ms,
                                   .deadline_ms = time_left(c),
                                   .quiet_ms = c->quiet_ms,
                                   .body_max = e->config.answer_max,
                                   .done = on_done };
    size_t n = 0;
    int r;

    if (!path)
        return agx_error_no_memory(err);
    if (c->body.len > 0)
        headers[n++] = "Content-Type: application/json";
    if (c->read)
        headers[n++] = "Content-Type: application/x-tar";
    if (c->auth)
        headers[n++] = c->auth;
    if (c->is_stream) {
        q.begun = on_begun;
        q.piece = on_piece;
    }
    r = agx_fetch_start(e->fetch, &q, c, &c->fetched, err);
    agx_buf_done(&c->body); /* libcurl has a copy */
    return r;
}

static const struct docker_wait_kind call_kind = { engine_call_go, engine_call_fail,
                                                   engine_call_drop };

static int engine_call_fill(struct agx_docker_call *c, const struct agx_docker_request *q,
                            struct agx_error **err)
{
    c->method = q->method;
    c->what = docker_dup(q->what);
    c->read = q->read;
    c->quiet_ms = q->quiet_ms;
    c->body = (struct agx_buf)AGX_BUF_INIT(AGX_DOCKER_BODY_MAX);
    agx_jsonseq_init(&c->objects, c->wait.engine->config.object_max);
    if (!q->path)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "%s: the request's path is longer than %zu bytes", q->what,
                             AGX_DOCKER_PATH_MAX);
    c->path = docker_dup(q->path);
    if (q->auth && asprintf(&c->auth, "X-Registry-Auth: %s", q->auth) < 0)
        abort(); /* small */
    return q->body ? agx_json_write(q->body, &c->body, err) : 0;
}

static int engine_call_start(struct agx_docker_engine *e, const struct agx_docker_request *q,
                             const struct agx_docker_stream_ops *ops, bool is_stream, void *user,
                             struct agx_docker_call **ret_call, struct agx_error **err)
{
    struct agx_docker_call *c = agx_new(struct agx_docker_call);
    int r;

    assert(q->method && q->what && ops->done && !(q->body && q->read));
    c->wait.kind = &call_kind;
    c->wait.engine = e;
    c->is_stream = is_stream;
    c->ops = *ops;
    c->user = user;
    uv_update_time(agx_loop_uv(e->loop));
    c->start_ms = uv_now(agx_loop_uv(e->loop));
    c->deadline_ms = q->deadline_ms || is_stream ? q->deadline_ms : e->config.deadline_ms;
    r = engine_call_fill(c, q, err);
    if (r == 0)
        r = docker_wait_start(&c->wait, err);
    if (r < 0) {
        call_free(c);
        return r;
    }
    if (ret_call)
        *ret_call = c;
    return 0;
}

int agx_docker_call(struct agx_docker_engine *e, const struct agx_docker_request *q,
                    agx_docker_done_fn done, void *user, struct agx_docker_call **ret_call,
                    struct agx_error **err)
{
    return engine_call_start(e, q, &(struct agx_docker_stream_ops){ .done = done }, false, user,
                             ret_call, err);
}

int agx_docker_stream(struct agx_docker_engine *e, const struct agx_docker_request *q,
                      const struct agx_docker_stream_ops *ops, void *user,
                      struct agx_docker_call **ret_call, struct agx_error **err)
{
    assert(ops->object);
    return engine_call_start(e, q, ops, true, user, ret_call, err);
}

void agx_docker_cancel(struct agx_docker_call *call)
{
    if (call)
        engine_call_drop(&call->wait);
}

void agx_docker_more(struct agx_docker_call *call)
{
    if (call->fetched)
        agx_fetch_more(call->fetched);
}

const char *agx_docker_answer_header(const struct agx_docker_answer *a, const char *name)
{
    return a->fetched ? agx_fetch_answer_header(a->fetched, name) : NULL;
}

/*
 * call.c: one request and its answer.
 *
 *     start --> libcurl --> ended: done()
 *                  |          ^
 *                  +-deadline-+            cancel, close: no done()
 *
 * An answer's body is collected in `got`; when it is wanted in pieces, `got` holds what came in the
 * current turn. A call is removed from libcurl and the fetch's list before done() runs, and freed
 * when its timer is closed.
 */
#include "fetch/fetch_internal.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

/* libcurl's own limit, for a call without one: it has no "unlimited". */
enum { CONNECT_MS_DEFAULT = 300000 };

struct agx_fetch_call {
    struct fetch_transfer transfer;
    struct agx_fetch_request request; /* functions and numbers; its strings are freed */
    void *user;
    char *name; /* "GET '/x'": for messages */
    struct curl_slist *headers;
    struct agx_buf got;
    size_t head_bytes;
    bool headed;             /* the head of the final answer (not 1xx) has come */
    bool in_pieces;          /* the answer is 2xx and wanted in pieces */
    bool begun_due;          /* request.begun() must be called */
    bool read_waits;         /* request.read() had nothing */
    bool paused;             /* the user has paused the answer */
    uint64_t due_ms;         /* end of the deadline in loop time; 0: none */
    uint64_t heard_ms;       /* when bytes last moved in either direction */
    uint64_t looked_ms;      /* the heard_ms after which the sockets were checked again */
    struct agx_error *error; /* why we ended it */
    uv_timer_t timer;
};

static struct agx_fetch_call *call_of(struct fetch_transfer *t)
{
    return container_of(t, struct agx_fetch_call, transfer);
}

static uint64_t now(const struct agx_fetch_call *c)
{
    return uv_now(agx_loop_uv(c->transfer.fetch->loop));
}

/* Frees everything that needs no handle of the loop. */
static void call_done(struct agx_fetch_call *c)
{
    if (c->transfer.easy)
        curl_easy_cleanup(c->transfer.easy);
    curl_slist_free_all(c->headers);
    agx_buf_done(&c->got);
    agx_error_free(c->error);
    free(c->name);
    free(c);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_fetch_call *c = container_of((uv_timer_t *)h, struct agx_fetch_call, timer);
    struct agx_fetch *f = c->transfer.fetch;

    call_done(c);
    fetch_released(f);
}

/* Removes it from libcurl and the list; the rest is freed with the timer. */
static void call_detach(struct agx_fetch_call *c)
{
    fetch_remove(&c->transfer);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static void call_drop(struct fetch_transfer *t)
{
    call_detach(call_of(t));
}

/* The answer so far; without a body when that goes in pieces. */
static struct agx_fetch_answer answer_of(const struct agx_fetch_call *c)
{
    long status = 0;

    (void)curl_easy_getinfo(c->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    return (struct agx_fetch_answer){ .status = (unsigned)status,
                                      .body = c->in_pieces ? (struct agx_str){ 0 }
                                                           : agx_buf_peek(&c->got),
                                      .curl = c->transfer.easy };
}

static void tell_done(struct agx_fetch_call *c)
{
    const struct agx_fetch_answer answer = answer_of(c);

    call_detach(c);
    c->request.done(c->user, &answer, AGX_TAKE_PTR(c->error));
}

static void call_ended(struct fetch_transfer *t, CURLcode result)
{
    struct agx_fetch_call *c = call_of(t);

    if (result != CURLE_OK && !c->error)
        (void)fetch_fail(&c->error, t, result, c->name);
    tell_done(c);
}

/* Passes on what came in the turn that has ended. The call may be gone after each of its
 * callbacks. */
static void news(struct fetch_transfer *t)
{
    struct agx_fetch_call *c = call_of(t);

    if (c->begun_due) {
        const struct agx_fetch_answer answer = answer_of(c);

        c->begun_due = false;
        if (c->got.len > 0)
            fetch_tell(t); /* comes back here, unless begun() ends it */
        if (c->request.begun)
            c->request.begun(c->user, &answer);
        return;
    }
    if (c->got.len > 0) {
        _cleanup_buf_ struct agx_buf piece = c->got;

        c->got = (struct agx_buf)AGX_BUF_INIT(piece.max);
        c->request.piece(c->user, agx_buf_peek(&piece));
    }
}

static const struct fetch_transfer_kind call_kind = { news, call_ended, call_drop };

/* Inside libcurl: done() will report this failure. */
static void call_fail(struct agx_fetch_call *c, enum agx_code code, const char *why, size_t limit)
{
    if (!c->error)
        (void)agx_error_set(&c->error, code, "%s: the answer's %s longer than %zu bytes", c->name,
                            why, limit);
}

/* A line of the head, or of a chunked body's trailer. */
static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    struct agx_fetch_call *c = user;
    long status = 0;

    (void)one;
    c->heard_ms = now(c);
    c->head_bytes += n;
    if (c->head_bytes > AGX_HTTP_HEAD_MAX) {
        call_fail(c, AGX_RESOURCE_EXHAUSTED, "headers are", AGX_HTTP_HEAD_MAX);
        return 0;
    }
    if (c->headed || (line[0] != '\r' && line[0] != '\n')) /* the last line is empty */
        return n;
    (void)curl_easy_getinfo(c->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return n;
    c->headed = true;
    if (status > 299 || !c->request.piece)
        return n;
    c->in_pieces = true;
    c->begun_due = true;
    c->got.max = AGX_FETCH_TURN_MAX;
    fetch_tell(&c->transfer);
    return n;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *user)
{
    struct agx_fetch_call *c = user;

    (void)one;
    c->heard_ms = now(c);
    if (agx_buf_append(&c->got, agx_str_bytes(bytes, n)) < 0) {
        call_fail(c, AGX_RESOURCE_EXHAUSTED, "body is", c->got.max);
        return n + 1; /* not n, even when n is 0 */
    }
    if (c->in_pieces)
        fetch_tell(&c->transfer);
    return n;
}

static size_t on_read(char *buf, size_t one, size_t size, void *user)
{
    struct agx_fetch_call *c = user;
    ssize_t n = c->request.read(c->user, buf, one * size);

    if (n == -AGX_UNAVAILABLE) {
        c->read_waits = true;
        return CURL_READFUNC_PAUSE;
    }
    if (n < 0) {
        if (!c->error)
            (void)agx_error_set(&c->error, (enum agx_code) - n, "%s: its source failed", c->name);
        return CURL_READFUNC_ABORT;
    }
    if (n > 0)
        c->heard_ms = now(c);
    return (size_t)n;
}

static void on_timer(uv_timer_t *timer);

/* The timer expires at the earlier of the two limits. */
static void call_arm(struct agx_fetch_call *c)
{
    uint64_t quiet = c->request.quiet_ms ? c->heard_ms + c->request.quiet_ms : 0;
    uint64_t due = c->due_ms && (!quiet || c->due_ms < quiet) ? c->due_ms : quiet;
    uint64_t at = now(c);

    if (due)
        (void)uv_timer_start(&c->timer, on_timer, due > at ? due - at : 0, 0);
}

/* We may be late ourselves: what is in the socket came in time. False: it was checked already. */
static bool look_again(struct agx_fetch_call *c)
{
    if (c->looked_ms == c->heard_ms)
        return false;
    c->looked_ms = c->heard_ms;
    (void)uv_timer_start(&c->timer, on_timer, 1, 0); /* the loop polls its sockets before */
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    struct agx_fetch_call *c = container_of(timer, struct agx_fetch_call, timer);
    uint64_t at = now(c);
    bool silent;

    if (c->paused)
        c->heard_ms = at;
    silent = c->request.quiet_ms && at >= c->heard_ms + c->request.quiet_ms;
    if (c->due_ms && at >= c->due_ms)
        (void)agx_error_set(&c->error, AGX_DEADLINE_EXCEEDED, "%s: no answer within %llu ms",
                            c->name, (unsigned long long)c->request.deadline_ms);
    else if (silent && look_again(c))
        return;
    else if (silent)
        (void)agx_error_set(&c->error, AGX_DEADLINE_EXCEEDED, "%s: silent for %llu ms", c->name,
                            (unsigned long long)c->request.quiet_ms);
    if (c->error)
        tell_done(c);
    else
        call_arm(c);
}

static int add_header(struct agx_fetch_call *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);

    if (!longer)
        return -AGX_RESOURCE_EXHAUSTED;
    c->headers = longer;
    return 0;
}

static int set_headers(struct agx_fetch_call *c, const struct agx_fetch_request *q)
{
    /* Engines judge a body without being asked first. */
    if (add_header(c, "Expect:") < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    /* Otherwise libcurl would send an empty body as a form. */
    if (q->body.len == 0 && !q->read && add_header(c, "Content-Type:") < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    for (const char *const *h = q->headers; h && *h; h++)
        if (add_header(c, *h) < 0)
            return -AGX_RESOURCE_EXHAUSTED;
    (void)curl_easy_setopt(c->transfer.easy, CURLOPT_HTTPHEADER, c->headers);
    return 0;
}

static int set_method(struct agx_fetch_call *c, const struct agx_fetch_request *q)
{
    CURL *easy = c->transfer.easy;
    static const long on = 1;

    if (q->read) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, on);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, c);
    } else if (strcmp(q->method, "HEAD") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, on);
    } else if (q->body.len > 0 || strcmp(q->method, "POST") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.len);
        if (curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, q->body.len ? q->body.ptr : "") !=
            CURLE_OK)
            return -AGX_RESOURCE_EXHAUSTED;
    }
    /* A kept connection may be dead, and libcurl would then repeat the request. */
    if (strcmp(q->method, "GET") != 0 && strcmp(q->method, "HEAD") != 0)
        (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, on);
    return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, q->method) == CURLE_OK
               ? 0
               : -AGX_RESOURCE_EXHAUSTED;
}

static int set_up(struct agx_fetch_call *c, const struct agx_fetch_request *q)
{
    CURL *easy = c->transfer.easy;

    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(q->connect_ms ? q->connect_ms : CONNECT_MS_DEFAULT));
    if (set_headers(c, q) < 0 || set_method(c, q) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    if (asprintf(&c->name, "%s '%.*s'", q->method, (int)strcspn(q->path, "?"), q->path) < 0) {
        c->name = NULL;
        return -AGX_RESOURCE_EXHAUSTED;
    }
    return 0;
}

static struct agx_fetch_call *call_new(const struct agx_fetch_request *q, void *user)
{
    struct agx_fetch_call *c = agx_new(struct agx_fetch_call);

    c->transfer.kind = &call_kind;
    c->request = *q;
    c->user = user;
    c->got.max = q->body_max ? q->body_max : AGX_JSON_MAX;
    return c;
}

int agx_fetch_start(struct agx_fetch *f, const struct agx_fetch_request *request, void *user,
                    struct agx_fetch_call **ret_call, struct agx_error **err)
{
    struct agx_fetch_call *c = call_new(request, user);
    int r;

    assert(request->method && request->path && request->done);
    assert(!request->read || request->body.len == 0);
    r = fetch_prepare(f, &c->transfer, request->path, err);
    if (r == 0 && set_up(c, request) < 0)
        r = agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "start a request: out of memory");
    if (r == 0)
        r = fetch_begin(&c->transfer, err);
    if (r < 0) {
        call_done(c);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(f->loop), &c->timer); /* never fails */
    f->n_open++;
    uv_update_time(agx_loop_uv(f->loop));
    c->heard_ms = now(c);
    c->due_ms = request->deadline_ms ? c->heard_ms + request->deadline_ms : 0;
    call_arm(c);
    if (ret_call)
        *ret_call = c;
    return 0;
}

void agx_fetch_cancel(struct agx_fetch_call *call)
{
    if (call)
        call_detach(call);
}

/* libcurl passes on what it kept from inside this call, and sets its timer: users are called in a
 * later turn. */
static void set_pauses(struct agx_fetch_call *c)
{
    struct agx_fetch *f = c->transfer.fetch;

    f->inside = true;
    (void)curl_easy_pause(c->transfer.easy,
                          (c->paused ? CURLPAUSE_RECV : CURLPAUSE_RECV_CONT) |
                              (c->read_waits ? CURLPAUSE_SEND : CURLPAUSE_SEND_CONT));
    f->inside = false;
}

void agx_fetch_more(struct agx_fetch_call *call)
{
    if (!call->read_waits)
        return;
    call->read_waits = false;
    set_pauses(call);
}

static void set_paused(struct agx_fetch_call *call, bool paused)
{
    assert(!call->transfer.fetch->inside);
    if (call->paused == paused)
        return;
    call->paused = paused;
    call->heard_ms = now(call);
    set_pauses(call);
}

void agx_fetch_pause(struct agx_fetch_call *call)
{
    set_paused(call, true);
}

void agx_fetch_resume(struct agx_fetch_call *call)
{
    set_paused(call, false);
}

const char *agx_fetch_answer_header(const struct agx_fetch_answer *answer, const char *name)
{
    struct curl_header *h = NULL;

    if (answer->status == 0 ||
        curl_easy_header(answer->curl, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}

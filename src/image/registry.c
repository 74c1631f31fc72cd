/*
 * registry.c: calls to a registry.
 *
 *     timer --> ASK --2xx, complete--------------------------> done
 *       ^        |----3xx: another address--> ASK
 *       |        |----401--> authenticate (registry_auth.c)--> ASK
 *       +--pause-|----broken, busy
 *                +----anything else--------------------------> done, failed
 *
 * Invariants:
 *  (1) for a call that has not ended, either its timer runs or one request is in progress;
 *  (2) `at` bytes of the body were passed on: the next request asks for the rest, and an answer
 *      that begins elsewhere restarts the body;
 *  (3) credentials are sent only to the registry's own server and to its token server;
 *  (4) a call is removed from the list before `done`, and freed when its timer is closed.
 */
#include "image/registry_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>

#include "base/banned.h"

/* Docker Hub's network name. */
#define HUB "docker.io"
#define HUB_SERVER "registry-1.docker.io"

/* A failure status, turned into an error. */
enum { REFUSAL_MAX = 64 << 10 };

static char *registry_copy(const char *s)
{
    char *c = s ? strdup(s) : NULL;

    if (s && !c)
        abort(); /* small, as with agx_new() */
    return c;
}

/* ---- the end of a call ---- */

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_registry_call *c = container_of((uv_timer_t *)h, struct agx_registry_call, timer);

    agx_buf_done(&c->got);
    free((char *)c->request.path);
    free((char *)c->request.accept);
    free(c->url);
    free(c);
}

static void registry_detach(struct agx_registry_call *c)
{
    agx_list_remove(&c->node);
    agx_fetch_cancel(c->fetch);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

void registry_call_end(struct agx_registry_call *c, struct agx_error *error)
{
    registry_detach(c);
    c->request.done(c->user, error ? (struct agx_str){ 0 } : agx_buf_peek(&c->got), error);
}

static void on_timer(uv_timer_t *timer)
{
    registry_call_ask(container_of(timer, struct agx_registry_call, timer));
}

void registry_call_retry(struct agx_registry_call *c, uint64_t wait_ms,
                         struct agx_error **take_error)
{
    unsigned doublings = AGX_MIN(c->failures, 10U);
    uint64_t pause = c->registry->retry_ms << doublings;

    if (++c->failures >= c->registry->tries) {
        registry_call_end(c, AGX_TAKE_PTR(*take_error));
        return;
    }
    *take_error = agx_error_free(*take_error);
    /* A redirect is only valid for a while. */
    free(c->url);
    c->url = NULL;
    c->redirects = 0;
    pause = AGX_MIN(AGX_MAX(pause, wait_ms), (uint64_t)AGX_PULL_RETRY_MAX_MS);
    (void)uv_timer_start(&c->timer, on_timer, pause, 0);
}

static void restart(struct agx_registry_call *c)
{
    if (c->at == 0)
        return;
    c->at = 0;
    agx_buf_clear(&c->got);
    if (c->request.restart)
        c->request.restart(c->user);
}

/* ---- the body ---- */

/* "bytes 100-199/200" begins where we are. */
static bool goes_on(const struct agx_registry_call *c, const char *range)
{
    struct agx_str s = agx_str_from(range), first;
    uint64_t from;

    if (!range || !agx_str_starts(s, AGX_STR("bytes ")))
        return false;
    s = agx_str_skip(s, strlen("bytes "));
    return agx_str_split(&s, '-', &first) && agx_parse_u64(first, UINT64_MAX, &from) &&
           from == c->at;
}

static void on_begun(void *user, const struct agx_fetch_answer *answer)
{
    struct agx_registry_call *c = user;

    if (answer->status == 206 && goes_on(c, agx_fetch_answer_header(answer, "Content-Range")))
        return;
    if (answer->status == 206) {
        struct agx_error *error = NULL;

        (void)agx_error_set(&error, AGX_DATA_LOSS,
                            "registry '%s' sends another part of '%s' than it was asked for",
                            c->registry->host, c->request.path);
        registry_call_end(c, error);
        return;
    }
    restart(c);
}

static int registry_take(struct agx_registry_call *c, struct agx_str bytes, struct agx_error **err)
{
    if (bytes.len > c->request.max_bytes - c->at)
        return agx_error_set(err, AGX_DATA_LOSS,
                             "registry '%s' sends more of '%s' than %" PRIu64 " bytes",
                             c->registry->host, c->request.path, c->request.max_bytes);
    c->at += bytes.len;
    c->failures = 0;
    if (c->request.piece)
        return c->request.piece(c->user, bytes, err);
    if (agx_buf_append(&c->got, bytes) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "read '%s': out of memory",
                             c->request.path);
    return 0;
}

static void on_piece(void *user, struct agx_str bytes)
{
    struct agx_registry_call *c = user;
    struct agx_error *error = NULL;
    int r = registry_take(c, bytes, &error);

    if (r < 0)
        registry_call_end(c, error);
    else if (r > 0)
        agx_fetch_pause(c->fetch);
}

/* ---- the answer ---- */

bool registry_trusts(const struct agx_registry *r, const struct agx_weburl *u)
{
    struct agx_weburl own;

    if (u->is_tls)
        return true;
    /* A server that is reached by TLS cannot make us give it up. */
    if (!agx_weburl_parse(&own, agx_str_from(r->root)) || own.is_tls)
        return false;
    if (agx_weburl_is_loopback(u->host) || agx_str_eq_nocase(u->server, own.server))
        return true;
    for (char **host = r->insecure; *host; host++)
        if (agx_str_eq_nocase(u->server, agx_str_from(*host)))
            return true;
    return false;
}

static const char *address_of(const struct agx_registry_call *c, char **ret_own)
{
    if (c->url)
        return c->url;
    if (asprintf(ret_own, "%s%s", c->registry->root, c->request.path) < 0)
        abort(); /* small, as with agx_new() */
    return *ret_own;
}

/* The registry redirects us. */
static int registry_follow(struct agx_registry_call *c, const char *location,
                           struct agx_error **err)
{
    _cleanup_free_ char *own = NULL, *url = NULL;
    struct agx_weburl from, to;

    if (++c->redirects > AGX_PULL_REDIRECTS)
        return agx_error_set(err, AGX_DATA_LOSS, "registry '%s' redirects us too often",
                             c->registry->host);
    if (!location || !agx_weburl_parse(&from, agx_str_from(address_of(c, &own))) ||
        !(url = agx_weburl_resolve(&from, agx_str_from(location))) ||
        !agx_weburl_parse(&to, agx_str_from(url)))
        return agx_error_set(err, AGX_DATA_LOSS, "registry '%s' redirects us to an invalid address",
                             c->registry->host);
    if (!registry_trusts(c->registry, &to))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "registry '%s' redirects us to '%.*s' without TLS", c->registry->host,
                             AGX_STR_ARG(to.server));
    free(c->url);
    c->url = AGX_TAKE_PTR(url);
    return 0;
}

static bool is_redirect(unsigned status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

/* How long the registry wants us to wait. */
static uint64_t wait_of(const struct agx_fetch_answer *answer)
{
    uint64_t seconds = 0;

    (void)agx_parse_u64(agx_str_from(agx_fetch_answer_header(answer, "Retry-After")),
                        AGX_PULL_RETRY_MAX_MS / 1000, &seconds);
    return seconds * 1000;
}

static void on_refused(struct agx_registry_call *c, const struct agx_fetch_answer *answer)
{
    struct agx_error *error = NULL;
    _cleanup_free_ char *who = NULL;

    if (is_redirect(answer->status)) {
        if (registry_follow(c, agx_fetch_answer_header(answer, "Location"), &error) < 0)
            registry_call_end(c, error);
        else
            registry_call_ask(c);
        return;
    }
    if (asprintf(&who, "registry '%s'", c->registry->host) < 0)
        abort(); /* small, as with agx_new() */
    (void)registry_refusal(&error, who, answer->status, answer->body);
    if (answer->status == 416 && c->at > 0) {
        restart(c);
        registry_call_retry(c, 0, &error);
    } else if (registry_may_retry(answer->status)) {
        registry_call_retry(c, wait_of(answer), &error);
    } else {
        registry_call_end(c, error);
    }
}

/* All that came was a success so far. */
static void on_whole(struct agx_registry_call *c)
{
    struct agx_error *error = NULL;

    if (!c->request.is_exact || c->at == c->request.max_bytes) {
        registry_call_end(c, NULL);
        return;
    }
    (void)agx_error_set(&error, AGX_UNAVAILABLE,
                        "registry '%s' sends %" PRIu64 " of the %" PRIu64 " bytes of '%s'",
                        c->registry->host, c->at, c->request.max_bytes, c->request.path);
    registry_call_retry(c, 0, &error);
}

static void on_answer(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    struct agx_registry_call *c = user;

    c->fetch = NULL;
    if (error && (error->code == AGX_UNAVAILABLE || error->code == AGX_DEADLINE_EXCEEDED))
        registry_call_retry(c, 0, &error);
    else if (error)
        registry_call_end(c, error);
    else if (answer->status >= 200 && answer->status <= 299)
        on_whole(c);
    else if (answer->status == 401 && !c->url)
        registry_call_authenticate(c, agx_fetch_answer_header(answer, "WWW-Authenticate"));
    else
        on_refused(c, answer);
}

/* ---- the question ---- */

/* The address is the registry's own server, the only one that may get our credentials. */
static bool is_own(const struct agx_registry_call *c)
{
    struct agx_weburl own, to;

    return !c->url || (agx_weburl_parse(&own, agx_str_from(c->registry->root)) &&
                       agx_weburl_parse(&to, agx_str_from(c->url)) && own.is_tls == to.is_tls &&
                       agx_str_eq_nocase(own.server, to.server));
}

void registry_call_ask(struct agx_registry_call *c)
{
    struct agx_registry *r = c->registry;
    _cleanup_free_ char *own = NULL, *accept = NULL, *range = NULL;
    const char *headers[4] = { 0 }, **next = headers;
    struct agx_error *error = NULL;

    if ((c->request.accept && asprintf(&accept, "Accept: %s", c->request.accept) < 0) ||
        (c->at > 0 && asprintf(&range, "Range: bytes=%" PRIu64 "-", c->at) < 0))
        abort(); /* small, as with agx_new() */
    if (accept)
        *next++ = accept;
    if (range)
        *next++ = range;
    if (r->authorization && is_own(c))
        *next = r->authorization;
    c->presented_no = r->authorization_no;
    if (agx_fetch_start(r->fetch,
                        &(struct agx_fetch_request){ .method = "GET",
                                                     .path = address_of(c, &own),
                                                     .headers = headers,
                                                     .connect_ms = r->connect_ms,
                                                     .quiet_ms = r->quiet_ms,
                                                     .body_max = REFUSAL_MAX,
                                                     .begun = on_begun,
                                                     .piece = on_piece,
                                                     .done = on_answer },
                        c, &c->fetch, &error) < 0)
        registry_call_end(c, error);
}

void agx_registry_get(struct agx_registry *r, const struct agx_registry_request *request,
                      void *user, struct agx_registry_call **ret_call)
{
    struct agx_registry_call *c = agx_new(struct agx_registry_call);

    assert(request->path && request->done && !request->piece == !request->restart);
    c->registry = r;
    c->request = *request;
    c->request.path = registry_copy(request->path);
    c->request.accept = registry_copy(request->accept);
    c->user = user;
    c->got.max = request->piece ? 0 : request->max_bytes;
    (void)uv_timer_init(agx_loop_uv(r->loop), &c->timer); /* never fails */
    (void)uv_timer_start(&c->timer, on_timer, 0, 0);
    agx_list_push_front(&r->calls, &c->node);
    if (ret_call)
        *ret_call = c;
}

void agx_registry_cancel(struct agx_registry_call *call)
{
    if (call)
        registry_detach(call);
}

void agx_registry_resume(struct agx_registry_call *call)
{
    if (call->fetch)
        agx_fetch_resume(call->fetch);
}

/* ---- the registry ---- */

static bool is_insecure(const struct agx_registry *r)
{
    for (char **host = r->insecure; *host; host++)
        if (strcmp(*host, r->host) == 0)
            return true;
    return false;
}

static int set_root(struct agx_registry *r, struct agx_error **err)
{
    const char *server = strcmp(r->host, HUB) == 0 ? HUB_SERVER : r->host;
    struct agx_weburl u;

    if (asprintf(&r->root, "https://%s/v2/%s/", server, r->repository) < 0)
        abort(); /* small, as with agx_new() */
    if (!agx_weburl_parse(&u, agx_str_from(r->root)) || !agx_str_eq(u.server, agx_str_from(server)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "registry '%s' is not a host", r->host);
    if (agx_weburl_is_loopback(u.host) || is_insecure(r)) {
        free(r->root);
        if (asprintf(&r->root, "http://%s/v2/%s/", server, r->repository) < 0)
            abort(); /* small, as with agx_new() */
    }
    return 0;
}

static void copy_config(struct agx_registry *r, const struct agx_registry_config *config)
{
    size_t n = 0;

    r->host = registry_copy(config->host);
    r->repository = registry_copy(config->repository);
    if (config->credentials) {
        r->user = registry_copy(config->credentials->user);
        r->secret = registry_copy(config->credentials->secret);
    }
    while (config->insecure && config->insecure[n])
        n++;
    r->insecure = agx_alloc((n + 1) * sizeof(*r->insecure));
    while (n-- > 0)
        r->insecure[n] = registry_copy(config->insecure[n]);
    r->tries = config->tries;
    r->retry_ms = config->retry_ms;
    r->connect_ms = config->connect_ms;
    r->quiet_ms = config->quiet_ms;
}

int agx_registry_open(struct agx_loop *l, const struct agx_registry_config *config,
                      struct agx_registry **ret_registry, struct agx_error **err)
{
    struct agx_fetch_config fetch = AGX_FETCH_CONFIG_INIT;
    struct agx_registry *r = agx_new(struct agx_registry);
    int n;

    assert(config->tries > 0);
    r->loop = l;
    copy_config(r, config);
    fetch.endpoint.base = "";
    n = set_root(r, err);
    if (n == 0)
        n = agx_fetch_open(l, &fetch, &r->fetch, err);
    if (n < 0)
        agx_registry_close(r);
    else
        *ret_registry = r;
    return n;
}

static void wipe(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
}

struct agx_registry *agx_registry_close(struct agx_registry *r)
{
    struct agx_registry_call *c;

    if (!r)
        return NULL;
    while ((c = AGX_LIST_FIRST(&r->calls, struct agx_registry_call, node)))
        registry_detach(c);
    agx_fetch_close(r->fetch);
    for (char **host = r->insecure; *host; host++)
        free(*host);
    free(r->insecure);
    free(r->host);
    free(r->repository);
    free(r->root);
    free(r->user);
    wipe(r->secret);
    wipe(r->authorization);
    free(r);
    return NULL;
}

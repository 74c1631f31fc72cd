/*
 * fetch.c: libcurl's multi interface on our loop: its sockets, its timer, and the rule for when its
 * functions may be called.
 *
 * libcurl calls back from inside its own functions, where none of them may be called. So its
 * callbacks only keep what came (fetch_tell). Everything that our users see happens in
 * fetch_settle(), after libcurl has returned; there they may start, cancel and close freely.
 *
 * Invariants:
 *  (1) f->inside is set exactly while a function of libcurl runs;
 *  (2) users are called only from fetch_settle() and from our timers, except `read`;
 *  (3) after any callback the fetch may be closing: f stays in memory until the handles on the loop
 *      are closed, which is never in the same turn.
 */
#include "fetch/fetch_internal.h"

#include "base/mem.h"
#include "loop/uverr.h"

#include <assert.h>

#include "base/banned.h"

/* A socket of libcurl on the loop. */
struct watch {
    struct agx_fetch *fetch;
    curl_socket_t fd;
    uv_poll_t poll;
};

void fetch_released(struct agx_fetch *f)
{
    if (--f->n_open > 0)
        return;
    free(f->unix_socket);
    free(f->base);
    free(f->ca_file);
    free(f->cert_file);
    free(f->key_file);
    free(f);
    curl_global_cleanup();
}

void fetch_tell(struct fetch_transfer *t)
{
    if (!agx_list_has(&t->told))
        agx_list_push_back(&t->fetch->told, &t->told);
}

/* The next transfer that libcurl has finished; false: none. */
static bool next_ended(struct agx_fetch *f, struct fetch_transfer **ret_t, CURLcode *ret_result)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(f->multi, &left))) {
        if (m->msg != CURLMSG_DONE)
            continue;
        *ret_result = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)ret_t);
        return true;
    }
    return false;
}

void fetch_settle(struct agx_fetch *f)
{
    struct fetch_transfer *t;
    CURLcode result;

    assert(!f->inside);
    /* First the data, then the end: an answer's last bytes and its end often come together. */
    while (!f->closing) {
        t = AGX_LIST_TAKE(&f->told, struct fetch_transfer, told);
        if (t)
            t->kind->news(t);
        else if (next_ended(f, &t, &result))
            t->kind->ended(t, result);
        else
            return;
    }
}

static void fetch_act(struct agx_fetch *f, curl_socket_t fd, int events)
{
    int running;

    f->inside = true;
    (void)curl_multi_socket_action(f->multi, fd, events, &running);
    f->inside = false;
    fetch_settle(f);
}

static void on_timer(uv_timer_t *timer)
{
    fetch_act(container_of(timer, struct agx_fetch, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wish(CURLM *multi, long timeout_ms, void *user)
{
    struct agx_fetch *f = user;

    (void)multi;
    if (timeout_ms < 0)
        (void)uv_timer_stop(&f->timer);
    else
        (void)uv_timer_start(&f->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = container_of(poll, struct watch, poll);
    int action = 0;

    if (status < 0)
        action = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        action |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        action |= CURL_CSELECT_OUT;
    fetch_act(w->fetch, w->fd, action);
}

static void on_watch_closed(uv_handle_t *h)
{
    struct watch *w = container_of((uv_poll_t *)h, struct watch, poll);

    fetch_released(w->fetch);
    free(w);
}

static struct watch *watch_new(struct agx_fetch *f, curl_socket_t fd)
{
    struct watch *w = agx_new(struct watch);

    w->fetch = f;
    w->fd = fd;
    if (uv_poll_init(agx_loop_uv(f->loop), &w->poll, fd) < 0) {
        free(w);
        return NULL;
    }
    f->n_open++;
    (void)curl_multi_assign(f->multi, fd, w);
    return w;
}

/* libcurl asks for these events on the socket. -1 makes it abort the transfers. */
static int on_socket_wish(CURL *easy, curl_socket_t fd, int what, void *user, void *assigned)
{
    struct watch *w = assigned;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            (void)curl_multi_assign(w->fetch->multi, fd, NULL);
            uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        }
        return 0;
    }
    if (!w && !(w = watch_new(user, fd)))
        return -1;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    return uv_poll_start(&w->poll, events, on_poll) < 0 ? -1 : 0;
}

static int fetch_copy(char **slot, const char *value)
{
    if (!value)
        return 0;
    *slot = strdup(value);
    return *slot ? 0 : -AGX_RESOURCE_EXHAUSTED;
}

static int copy_where(struct agx_fetch *f, const struct agx_fetch_endpoint *w)
{
    f->insecure = w->insecure;
    if (fetch_copy(&f->unix_socket, w->unix_socket) < 0 || fetch_copy(&f->base, w->base) < 0 ||
        fetch_copy(&f->ca_file, w->ca_file) < 0 || fetch_copy(&f->cert_file, w->cert_file) < 0 ||
        fetch_copy(&f->key_file, w->key_file) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return 0;
}

static void set_up_multi(struct agx_fetch *f, const struct agx_fetch_config *c)
{
    (void)curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
    (void)curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    (void)curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, on_timer_wish);
    (void)curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
    (void)curl_multi_setopt(f->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)c->connections_max);
    (void)curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)c->idle_max);
}

int agx_fetch_open(struct agx_loop *l, const struct agx_fetch_config *config,
                   struct agx_fetch **ret_fetch, struct agx_error **err)
{
    struct agx_fetch *f = agx_new(struct agx_fetch);
    int r;

    agx_loop_assert(l);
    assert(config->endpoint.base && config->connections_max > 0 && config->idle_max > 0);
    f->loop = l;
    f->n_open = 1;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(f);
        return agx_error_set(err, AGX_INTERNAL, "start libcurl");
    }
    if (copy_where(f, &config->endpoint) < 0 || !(f->multi = curl_multi_init())) {
        fetch_released(f);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "open an HTTP client: out of memory");
    }
    r = uv_timer_init(agx_loop_uv(l), &f->timer);
    if (r < 0) {
        (void)curl_multi_cleanup(f->multi);
        fetch_released(f);
        return agx_uverr_set(err, r, "open an HTTP client");
    }
    set_up_multi(f, config);
    *ret_fetch = f;
    return 0;
}

static void on_timer_closed(uv_handle_t *h)
{
    fetch_released(container_of((uv_timer_t *)h, struct agx_fetch, timer));
}

struct agx_fetch *agx_fetch_close(struct agx_fetch *f)
{
    struct fetch_transfer *t;

    if (!f)
        return NULL;
    agx_loop_assert(f->loop);
    assert(!f->inside && !f->closing);
    while ((t = AGX_LIST_FIRST(&f->transfers, struct fetch_transfer, node)))
        t->kind->drop(t);
    f->closing = true;
    (void)curl_multi_cleanup(f->multi); /* ends every watch too */
    uv_close((uv_handle_t *)&f->timer, on_timer_closed);
    return NULL;
}

/* Sets the options of every request. */
static CURLcode set_common(struct agx_fetch *f, CURL *easy)
{
    static const long on = 1, off = 0;
    CURLcode c = CURLE_OK;

    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, on);
    /* Otherwise a cancelled call would wait for the thread that resolves its name. */
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, on);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, on);
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, off);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, on);
    if (f->insecure) {
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, off);
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, off);
    }
    if (c == CURLE_OK)
        c = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (c == CURLE_OK)
        c = curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (c == CURLE_OK)
        c = curl_easy_setopt(easy, CURLOPT_USERAGENT, "agentix/" AGX_VERSION);
    if (c == CURLE_OK && f->unix_socket)
        c = curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, f->unix_socket);
    if (c == CURLE_OK && f->ca_file)
        c = curl_easy_setopt(easy, CURLOPT_CAINFO, f->ca_file);
    if (c == CURLE_OK && f->cert_file)
        c = curl_easy_setopt(easy, CURLOPT_SSLCERT, f->cert_file);
    if (c == CURLE_OK && f->key_file)
        c = curl_easy_setopt(easy, CURLOPT_SSLKEY, f->key_file);
    return c;
}

static CURLcode set_url(struct agx_fetch *f, CURL *easy, const char *path)
{
    char *url = NULL;
    CURLcode c;

    if (asprintf(&url, "%s%s", f->base, path) < 0)
        return CURLE_OUT_OF_MEMORY;
    c = curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    return c;
}

int fetch_prepare(struct agx_fetch *f, struct fetch_transfer *t, const char *path,
                  struct agx_error **err)
{
    CURLcode c;
    int r;

    agx_loop_assert(f->loop);
    assert(!f->inside && !f->closing);
    t->fetch = f;
    t->easy = curl_easy_init();
    if (!t->easy)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "start a request: out of memory");
    (void)curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->text);
    c = set_common(f, t->easy);
    if (c == CURLE_OK)
        c = set_url(f, t->easy, path);
    if (c == CURLE_OK)
        return 0;
    r = fetch_fail(err, t, c, "start a request");
    curl_easy_cleanup(AGX_TAKE_PTR(t->easy));
    return r;
}

int fetch_begin(struct fetch_transfer *t, struct agx_error **err)
{
    struct agx_fetch *f = t->fetch;
    CURLMcode m = curl_multi_add_handle(f->multi, t->easy);

    if (m != CURLM_OK)
        return agx_error_set(err, m == CURLM_OUT_OF_MEMORY ? AGX_RESOURCE_EXHAUSTED : AGX_INTERNAL,
                             "start a request: %s", curl_multi_strerror(m));
    agx_list_push_front(&f->transfers, &t->node);
    return 0;
}

void fetch_remove(struct fetch_transfer *t)
{
    struct agx_fetch *f = t->fetch;

    assert(!f->inside);
    agx_list_remove(&t->told);
    agx_list_remove(&t->node);
    (void)curl_multi_remove_handle(f->multi, t->easy);
}

static enum agx_code code_of(CURLcode result)
{
    switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
        return AGX_DEADLINE_EXCEEDED;
    case CURLE_OUT_OF_MEMORY:
        return AGX_RESOURCE_EXHAUSTED;
    case CURLE_URL_MALFORMAT:
        return AGX_INVALID_ARGUMENT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
        return AGX_FAILED_PRECONDITION;
    case CURLE_UNSUPPORTED_PROTOCOL: /* an answer that is not HTTP/1 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP2:
        return AGX_DATA_LOSS;
    default: /* no connection, or it broke */
        return AGX_UNAVAILABLE;
    }
}

int fetch_fail(struct agx_error **err, const struct fetch_transfer *t, CURLcode result,
               const char *what)
{
    struct agx_error *e = NULL;
    long sys_errno = 0;
    int r = agx_error_set(&e, code_of(result), "%s: %s", what,
                          t->text[0] ? t->text : curl_easy_strerror(result));

    if (result == CURLE_COULDNT_CONNECT)
        (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &sys_errno);
    if (e->code == AGX_UNAVAILABLE) /* not the shared error for no memory */
        e->sys_errno = (int)sys_errno;
    agx_error_propagate(err, &e);
    return r;
}

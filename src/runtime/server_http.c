/*
 * server_http.c: HTTP requests to agentix-server, and their access rules: /health needs no token,
 * everything else does, and Engine.IO lets a few sessions begin without one (server_internal.h).
 * Without a token, server_access.c decides. All decisions use only a request's head, before its
 * body arrives.
 */
#include "runtime/server_internal.h"

#include "base/banned.h"

#include <stdio.h>

bool agx_server_is_token(const struct agx_server *s, struct agx_str text)
{
    uint8_t digest[AGX_SHA256_SIZE];

    agx_sha256(text, digest);
    return agx_str_eq_secret(agx_str_bytes(digest, sizeof(digest)),
                             agx_str_bytes(s->config->token_digest, sizeof(digest)));
}

bool agx_server_has_token(const struct agx_server *s, const struct agx_http_head *head)
{
    struct agx_str value;

    if (!s->config->has_token)
        return true;
    if (!agx_http_header_get(head, AGX_STR("authorization"), &value) || value.len < 7 ||
        !agx_str_eq_nocase((struct agx_str){ value.ptr, 7 }, AGX_STR("bearer ")))
        return false;
    return agx_server_is_token(s, agx_str_trim(agx_str_skip(value, 7)));
}

static bool is_eio_path(struct agx_str path)
{
    return agx_str_eq(path, AGX_STR("/socket.io")) || agx_str_starts(path, AGX_STR("/socket.io/"));
}

static void answer_health(struct agx_server *s, struct agx_exchange *x)
{
    static const struct agx_http_header allow = { { "Allow", 5 }, { "GET", 3 } };
    struct agx_http_response a = { .type = AGX_STR("application/json") };
    char body[160];

    if (!agx_str_eq(x->head.method, AGX_STR("GET"))) {
        a.status = 405;
        a.headers = &allow;
        a.header_count = 1;
        a.body = AGX_STR("{\"detail\":\"Method Not Allowed\"}");
        agx_exchange_answer(x, &a);
        return;
    }
    (void)snprintf(body, sizeof(body),
                   "{\"status\":\"ok\",\"version\":\"%s\",\"worker\":\"%s\",\"calls\":%zu}",
                   AGX_VERSION, agx_worker_is_ready(s->worker) ? "ready" : "starting",
                   agx_router_running(s->router));
    a.status = 200;
    a.body = agx_str_from(body);
    agx_exchange_answer(x, &a);
}

static void answer_redirect(struct agx_exchange *x)
{
    static const struct agx_http_header location = { { "Location", 8 }, { "/health", 7 } };
    struct agx_http_response a = { .status = 307,
                                   .type = AGX_STR("application/json"),
                                   .body = AGX_STR("{\"detail\":\"Temporary Redirect\"}"),
                                   .headers = &location,
                                   .header_count = 1 };

    agx_exchange_answer(x, &a);
}

static void answer_unauthorized(struct agx_exchange *x)
{
    static const struct agx_http_header challenge = { { "WWW-Authenticate", 16 }, { "Bearer", 6 } };
    struct agx_http_response a = { .status = 401,
                                   .type = AGX_STR("application/json"),
                                   .body = AGX_STR("{\"detail\":\"missing or wrong token\"}"),
                                   .headers = &challenge,
                                   .header_count = 1 };

    agx_exchange_answer(x, &a);
}

static void answer_no_place(struct agx_exchange *x)
{
    agx_exchange_answer_detail(x, 503, "too many sessions of this address have not sent CONNECT");
}

/* Without a token a client may still begin an Engine.IO session, or continue one whose id it
 * knows. */
static bool may_pass(const struct agx_server *s, const struct agx_exchange *x)
{
    if (agx_server_has_token(s, &x->head))
        return true;
    return is_eio_path(x->head.path) &&
           (s->n_unproven < AGX_UNPROVEN_MAX || agx_eio_server_find(s->eio, &x->head));
}

/* Is the request short enough for a client that has not proven the token? */
static bool is_short(const struct agx_server *s, const struct agx_exchange *x)
{
    struct agx_eio_session *session = agx_eio_server_find(s->eio, &x->head);
    struct agx_sio_conn *peer = session ? agx_eio_session_user(session) : NULL;

    if (agx_server_has_token(s, &x->head) || (peer && peer->proven))
        return true;
    return x->head.body == AGX_HTTP_NO_BODY ||
           (x->head.body == AGX_HTTP_LENGTH && x->head.content_length <= AGX_UNPROVEN_BYTES);
}

/* Does the request begin an Engine.IO session? */
static bool begins_session(const struct agx_exchange *x)
{
    struct agx_str sid;

    return is_eio_path(x->head.path) && agx_str_eq(x->head.method, AGX_STR("GET")) &&
           !agx_http_query_get(x->head.query, AGX_STR("sid"), &sid);
}

/* May this address have one more session without CONNECT? */
static bool has_place(const struct agx_server *s, const struct agx_exchange *x)
{
    bool proven = agx_server_has_token(s, &x->head);
    size_t n = 0, max = (proven ? AGX_EIO_SESSIONS_MAX : AGX_UNPROVEN_MAX) / AGX_SILENT_PARTS;

    AGX_LIST_FOR_EACH (struct agx_sio_conn, p, &s->peers, node)
        n += p->net == x->net && p->proven == proven && !p->client && !p->in_log;
    return n < max;
}

static bool is_health(struct agx_str path)
{
    return agx_str_eq(path, AGX_STR("/health")) || agx_str_eq(path, AGX_STR("/health/"));
}

/* Decides before the body, so that no body is sent in vain. */
static void on_head(void *user, struct agx_exchange *x)
{
    const char *refusal = agx_server_access_refusal(user, x);

    x->readable_by = agx_server_access_named(user, &x->head);
    if (refusal)
        agx_exchange_answer_detail(x, 403, refusal);
    else if (!is_health(x->head.path) && !may_pass(user, x))
        answer_unauthorized(x);
    else if (begins_session(x) && !has_place(user, x))
        answer_no_place(x);
    else if (!is_short(user, x))
        agx_exchange_answer_detail(x, 413, "too long without a token");
}

static void on_request(void *user, struct agx_exchange *x)
{
    struct agx_server *s = user;

    if (agx_str_eq(x->head.path, AGX_STR("/health")))
        answer_health(s, x);
    else if (agx_str_eq(x->head.path, AGX_STR("/health/")))
        answer_redirect(x);
    else if (!may_pass(s, x))
        answer_unauthorized(x);
    else if (begins_session(x) && !has_place(s, x))
        answer_no_place(x); /* others of its address began while its body arrived */
    else if (is_eio_path(x->head.path))
        agx_eio_server_request(s->eio, x);
    else
        agx_exchange_answer_detail(x, 404, "Not Found");
}

static void on_oversize(void *user, struct agx_exchange *x)
{
    struct agx_server *s = user;

    if (is_eio_path(x->head.path))
        agx_eio_server_oversize(s->eio, x);
}

static void on_gone(void *user, struct agx_exchange *x)
{
    if (x->user)
        agx_eio_server_gone(((struct agx_server *)user)->eio, x);
}

const struct agx_http_server_ops agx_server_http_ops = {
    .head = on_head,
    .request = on_request,
    .oversize = on_oversize,
    .gone = on_gone,
};

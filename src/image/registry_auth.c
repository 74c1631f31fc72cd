/*
 * registry_auth.c: authenticates to a registry: by name and password, or by a token that another
 * server issues for them (or without them, for public content).
 *
 * An authorization belongs to the registry, not to the call: when several calls are refused one by
 * one, the first gets a new one, and the others use it.
 */
#include "base/json.h"
#include "codec/base64.h"
#include "image/challenge.h"
#include "image/registry_internal.h"

#include "base/banned.h"

/* How often one call may authenticate: the token of a long pull expires meanwhile. */
enum { SHOW_TRIES_MAX = 3, TOKEN_BYTES_MAX = 64 << 10, QUERY_MAX = 16 << 10 };

#define OUT_OF_MEMORY "show a registry who we are: out of memory"

/* Takes the header; later requests use it. */
static void set_authorization(struct agx_registry *r, char *header)
{
    if (r->authorization)
        explicit_bzero(r->authorization, strlen(r->authorization));
    free(r->authorization);
    r->authorization = header;
    r->authorization_no++;
}

/* "Authorization: Basic ..." from our name and password, owned; NULL without memory. */
static char *basic_of(const struct agx_registry *r)
{
    _cleanup_buf_ struct agx_buf pair = AGX_BUF_INIT(2 * AGX_CREDENTIALS_MAX);
    struct agx_buf header = AGX_BUF_INIT(4 * AGX_CREDENTIALS_MAX);
    char *text = NULL;

    if (agx_buf_printf(&pair, "%s:%s", r->user, r->secret) == 0 &&
        agx_buf_append(&header, AGX_STR("Authorization: Basic ")) == 0 &&
        agx_base64_encode(&header, agx_buf_peek(&pair), true) == 0)
        text = agx_buf_take_cstr(&header);
    if (pair.len > 0)
        explicit_bzero(pair.data, pair.len);
    agx_buf_done(&header);
    return text;
}

/* ---- a name and a password ---- */

static int show_basic(struct agx_registry_call *c, struct agx_error **err)
{
    struct agx_registry *r = c->registry;
    char *header;

    if (!r->secret)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "registry '%s' wants credentials, and there are none for it", r->host);
    if (!r->user)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "registry '%s' wants a password, and there is a token only", r->host);
    if (r->authorization)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "registry '%s' does not accept the credentials of '%s'", r->host,
                             r->user);
    header = basic_of(r);
    if (!header)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, OUT_OF_MEMORY);
    set_authorization(r, header);
    registry_call_ask(c);
    return 0;
}

/* ---- a token ---- */

/* Printable, so that it cannot end a header. */
static bool is_token(const char *s)
{
    for (; s && *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return s;
}

static int read_token(struct agx_registry *r, struct agx_str body, struct agx_error **err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *token;
    char *header = NULL;

    (void)!agx_json_parse(body, TOKEN_BYTES_MAX, AGX_DEPTH_MAX, &doc, NULL);
    token = json_string_value(json_object_get(doc, "token"));
    if (!token)
        token = json_string_value(json_object_get(doc, "access_token"));
    if (!is_token(token) || !*token)
        return agx_error_set(err, AGX_DATA_LOSS, "the token for registry '%s' is malformed",
                             r->host);
    if (asprintf(&header, "Authorization: Bearer %s", token) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, OUT_OF_MEMORY);
    set_authorization(r, header);
    return 0;
}

static void on_token(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    struct agx_registry_call *c = user;
    _cleanup_free_ char *who = NULL;
    bool again;

    c->fetch = NULL;
    if (asprintf(&who, "the server of tokens for registry '%s'", c->registry->host) < 0)
        abort(); /* small, as with agx_new() */
    again = error ? error->code == AGX_UNAVAILABLE || error->code == AGX_DEADLINE_EXCEEDED
                  : registry_may_retry(answer->status);
    if (!error && answer->status == 200) {
        if (read_token(c->registry, answer->body, &error) == 0)
            registry_call_ask(c);
        else
            registry_call_end(c, error);
        return;
    }
    if (!error)
        (void)registry_refusal(&error, who, answer->status, answer->body);
    if (again)
        registry_call_retry(c, 0, &error);
    else
        registry_call_end(c, error);
}

static int add_field(struct agx_buf *out, const char *name, const char *value)
{
    int r = agx_buf_printf(out, "%s%s=", out->len > 0 ? "&" : "", name);

    return r < 0 ? r : agx_weburl_escape(out, agx_str_from(value));
}

/* The parameters for the token server, as a query or a form. */
static int fields_of(const struct agx_registry *r, const struct agx_challenge *ch,
                     struct agx_buf *out)
{
    _cleanup_free_ char *scope = NULL;
    int n = 0;

    if (!ch->scope && asprintf(&scope, "repository:%s:pull", r->repository) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    if (ch->service)
        n = add_field(out, "service", ch->service);
    if (n == 0)
        n = add_field(out, "scope", ch->scope ? ch->scope : scope);
    if (n == 0 && r->user)
        n = add_field(out, "account", r->user);
    if (n == 0 && r->secret && !r->user) {
        n = add_field(out, "grant_type", "refresh_token");
        n = n < 0 ? n : add_field(out, "client_id", "agentix");
        n = n < 0 ? n : add_field(out, "refresh_token", r->secret);
    }
    return n;
}

/* A GET, with name and password if we have them; or a POST of the token that replaces us. */
static int send_request(struct agx_registry_call *c, const char *realm, struct agx_str fields,
                        struct agx_error **err)
{
    struct agx_registry *r = c->registry;
    bool is_post = r->secret && !r->user;
    _cleanup_free_ char *url = NULL, *basic = r->user ? basic_of(r) : NULL;
    const char *headers[] = { is_post ? "Content-Type: application/x-www-form-urlencoded" : basic,
                              NULL };

    if ((r->user && !basic) ||
        (!is_post && asprintf(&url, "%s%c%.*s", realm, strchr(realm, '?') ? '&' : '?',
                              AGX_STR_ARG(fields)) < 0))
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, OUT_OF_MEMORY);
    return agx_fetch_start(
        r->fetch,
        &(struct agx_fetch_request){ .method = is_post ? "POST" : "GET",
                                     .path = is_post ? realm : url,
                                     .headers = headers,
                                     .body = is_post ? fields : (struct agx_str){ 0 },
                                     .connect_ms = r->connect_ms,
                                     .deadline_ms = AGX_PULL_TOKEN_MS,
                                     .body_max = TOKEN_BYTES_MAX,
                                     .done = on_token },
        c, &c->fetch, err);
}

static int ask_token(struct agx_registry_call *c, const struct agx_challenge *ch,
                     struct agx_error **err)
{
    struct agx_buf fields = AGX_BUF_INIT(QUERY_MAX + 4 * AGX_CREDENTIALS_MAX);
    struct agx_registry *r = c->registry;
    struct agx_weburl u;
    int n;

    if (!ch->realm || !agx_weburl_parse(&u, agx_str_from(ch->realm)))
        return agx_error_set(err, AGX_DATA_LOSS,
                             "registry '%s' wants a token and does not say from where", r->host);
    if (!registry_trusts(r, &u))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "registry '%s' wants a token of '%.*s' without TLS", r->host,
                             AGX_STR_ARG(u.server));
    n = fields_of(r, ch, &fields);
    if (n < 0)
        (void)agx_error_set(err, AGX_RESOURCE_EXHAUSTED, OUT_OF_MEMORY);
    else
        n = send_request(c, ch->realm, agx_buf_peek(&fields), err);
    if (fields.len > 0)
        explicit_bzero(fields.data, fields.len);
    agx_buf_done(&fields);
    return n;
}

/* ---- the challenge ---- */

static int authenticate(struct agx_registry_call *c, const char *header, struct agx_error **err)
{
    _cleanup_(agx_challenge_done) struct agx_challenge ch = { 0 };
    int r = header ? agx_challenge_parse(&ch, agx_str_from(header), err) : 0;

    if (r < 0)
        return agx_error_wrap(err, r, "registry '%s'", c->registry->host);
    if (++c->presented > SHOW_TRIES_MAX)
        return agx_error_set(err, AGX_PERMISSION_DENIED, "registry '%s' does not let us read '%s'",
                             c->registry->host, c->registry->repository);
    switch (ch.kind) {
    case AGX_CHALLENGE_BEARER:
        return ask_token(c, &ch, err);
    case AGX_CHALLENGE_BASIC:
        return show_basic(c, err);
    case AGX_CHALLENGE_NONE:
        break;
    }
    return agx_error_set(err, AGX_PERMISSION_DENIED,
                         "registry '%s' requires a kind of authentication that we do not support",
                         c->registry->host);
}

void registry_call_authenticate(struct agx_registry_call *c, const char *header)
{
    struct agx_error *error = NULL;

    /* Another call has got a new one meanwhile. */
    if (c->presented_no != c->registry->authorization_no && c->presented < SHOW_TRIES_MAX) {
        c->presented++;
        registry_call_ask(c);
        return;
    }
    if (authenticate(c, header, &error) < 0)
        registry_call_end(c, error);
}

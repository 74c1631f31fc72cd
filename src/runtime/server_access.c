/*
 * server_access.c: access rules without a token. Two kinds of strangers can reach a loopback port:
 * other users of this machine, and web pages in a browser on this machine. The kernel identifies
 * the users; the browser identifies the pages in Origin, or, when a name of theirs resolves to this
 * machine (DNS rebinding), in Host.
 */
#include "runtime/server_internal.h"

#include "base/log.h"
#include "runtime/sockowner.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum { QUOTED_MAX = 200 }; /* of a header, in the log */

/* Listening for other machines requires --insecure or a token. */
static bool asks_for_users(const struct agx_server_config *config)
{
    return config->host && !config->has_token && !config->callers.insecure;
}

int agx_server_access_open(struct agx_server *s, struct agx_error **err)
{
    int r = asks_for_users(s->config) ? agx_sockowner_open(&s->owner_fd, err) : 0;

    if (r < 0)
        return agx_error_wrap(err, r,
                              "cannot tell the users of this machine apart (give --token-file, "
                              "--insecure, or --socket alone)");
    return 0;
}

enum agx_server_from agx_server_access_from(struct agx_server *s, int fd,
                                            const struct agx_addr *peer)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uid_t uid;

    if (peer->sa.ss_family == AF_UNIX)
        return AGX_FROM_UNIX;
    if (s->owner_fd < 0)
        return AGX_FROM_TCP;
    if (agx_sockowner_find(s->owner_fd, fd, &uid, &err) < 0) {
        AGX_LOG(AGX_LOG_WARN, "client.unknown", AGX_F_ERR(err));
        return AGX_FROM_UNKNOWN_USER;
    }
    return uid == 0 || uid == geteuid() ? AGX_FROM_TCP : AGX_FROM_OTHER_USER;
}

uint64_t agx_server_access_net(const struct agx_addr *peer)
{
    const struct sockaddr_in *v4 = (const void *)&peer->sa;
    const struct sockaddr_in6 *v6 = (const void *)&peer->sa;
    uint64_t half;
    uint32_t last;

    if (peer->sa.ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr);
    if (peer->sa.ss_family != AF_INET6)
        return UINT64_MAX;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        memcpy(&last, v6->sin6_addr.s6_addr + 12, sizeof(last));
        return ntohl(last);
    }
    memcpy(&half, v6->sin6_addr.s6_addr, sizeof(half));
    return be64toh(half);
}

/* The only header of that name. 0: none; -1: several. */
static int only_header(const struct agx_http_head *head, struct agx_str name,
                       struct agx_str *ret_value)
{
    int n = 0;

    for (size_t i = 0; i < head->header_count; i++) {
        if (!agx_str_eq_nocase(head->headers[i].name, name))
            continue;
        *ret_value = head->headers[i].value;
        n++;
    }
    return n > 1 ? -1 : n;
}

static bool read_host(const struct agx_http_head *head, struct agx_authority *ret)
{
    struct agx_str text;

    return only_header(head, AGX_STR("host"), &text) == 1 && agx_authority_parse(text, ret);
}

static bool is_named(const struct agx_server_access *callers, const struct agx_origin *origin)
{
    for (size_t i = 0; i < callers->n_origins; i++) {
        if (agx_origin_eq(&callers->origins[i], origin))
            return true;
    }
    return false;
}

struct agx_str agx_server_access_named(const struct agx_server *s, const struct agx_http_head *head)
{
    struct agx_origin origin;
    struct agx_str text;

    if (only_header(head, AGX_STR("origin"), &text) == 1 && agx_origin_parse(text, &origin) &&
        is_named(&s->config->callers, &origin))
        return text;
    return AGX_STR("");
}

/* No Origin: not a browser, or a request that changes nothing and whose answer no page sees. */
static bool may_origin(const struct agx_server *s, const struct agx_http_head *head)
{
    struct agx_str text;
    struct agx_origin origin;
    struct agx_authority host;
    int n = only_header(head, AGX_STR("origin"), &text);

    if (n == 0)
        return true;
    return n == 1 && agx_origin_parse(text, &origin) &&
           (is_named(&s->config->callers, &origin) ||
            (read_host(head, &host) && agx_origin_is_own(&origin, &host)));
}

static bool may_host(const struct agx_server_access *callers, const struct agx_http_head *head)
{
    struct agx_authority host;

    if (!read_host(head, &host))
        return false;
    for (size_t i = 0; i < callers->n_hosts; i++) {
        if (agx_authority_eq_host(&callers->hosts[i], &host))
            return true;
    }
    return agx_authority_is_loopback(&host);
}

static const char *refusal(const struct agx_server *s, const struct agx_exchange *x)
{
    const struct agx_server_access *callers = &s->config->callers;

    if (!may_origin(s, &x->head))
        return "a web page of another origin may not call; start agentix-server with --origin to "
               "name those that may";
    if (callers->insecure || x->from == AGX_FROM_UNIX)
        return NULL;
    if (!may_host(callers, &x->head))
        return "the Host header is not a loopback address or localhost; start agentix-server "
               "with --host-name to name others";
    if (x->from == AGX_FROM_OTHER_USER)
        return "another user of this machine may not call without a token; start agentix-server "
               "with --token-file, or --insecure";
    if (x->from == AGX_FROM_UNKNOWN_USER)
        return "the kernel does not know which user of this machine calls; start agentix-server "
               "with --token-file, or --insecure";
    return NULL;
}

const char *agx_server_access_refusal(const struct agx_server *s, const struct agx_exchange *x)
{
    struct agx_str origin = AGX_STR(""), host = AGX_STR("");
    const char *why;

    if (s->config->has_token)
        return NULL;
    why = refusal(s, x);
    if (!why)
        return NULL;
    (void)agx_http_header_get(&x->head, AGX_STR("origin"), &origin);
    (void)agx_http_header_get(&x->head, AGX_STR("host"), &host);
    origin.len = AGX_MIN(origin.len, (size_t)QUOTED_MAX);
    host.len = AGX_MIN(host.len, (size_t)QUOTED_MAX);
    AGX_LOG(AGX_LOG_WARN, "client.refused", AGX_F_STR("why", why), AGX_F_TEXT("origin", origin),
            AGX_F_TEXT("host", host));
    return why;
}

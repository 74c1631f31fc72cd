/* duplex_request.c: writes the request that turns a connection into a stream. */
#include "base/buf.h"
#include "codec/http1.h"
#include "fetch/duplex.h"
#include "fetch/fetch_internal.h"

#include "base/banned.h"

/* "http://host:1/proxy": its host, and the prefix of every path. */
static void split_base(const char *base, struct agx_str *ret_host, struct agx_str *ret_prefix)
{
    struct agx_str rest = agx_str_from(strstr(base, "://") + 3);
    size_t slash = agx_str_find(rest, '/');

    *ret_host = (struct agx_str){ rest.ptr, slash };
    *ret_prefix = agx_str_skip(rest, slash);
}

static int write_headers(struct agx_buf *b, const char *const *headers)
{
    for (; headers && *headers; headers++) {
        struct agx_str line = agx_str_from(*headers);
        size_t colon = agx_str_find(line, ':');
        struct agx_str value = agx_str_skip(line, colon < line.len ? colon + 1 : colon);

        if (agx_http_write_header(b, (struct agx_str){ line.ptr, colon }, agx_str_trim(value)) < 0)
            return -AGX_INVALID_ARGUMENT;
    }
    return 0;
}

int duplex_write_request(struct agx_buf *b, const char *base, const struct agx_duplex_request *q)
{
    _cleanup_buf_ struct agx_buf target = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);
    struct agx_str host, prefix;

    split_base(base, &host, &prefix);
    if (agx_buf_append(&target, prefix) < 0 || agx_buf_append(&target, agx_str_from(q->path)) < 0 ||
        agx_http_write_request(b, agx_str_from(q->method), agx_buf_peek(&target)) < 0 ||
        agx_http_write_header(b, AGX_STR("Host"), host) < 0 ||
        agx_http_write_header(b, AGX_STR("User-Agent"), AGX_STR("agentix/" AGX_VERSION)) < 0 ||
        agx_http_write_header(b, AGX_STR("Connection"), AGX_STR("Upgrade")) < 0 ||
        agx_http_write_header(b, AGX_STR("Upgrade"), agx_str_from(q->protocol)) < 0 ||
        write_headers(b, q->headers) < 0 || agx_http_write_length(b, q->body.len) < 0 ||
        agx_http_write_end(b) < 0 || agx_buf_append(b, q->body) < 0)
        return -AGX_INVALID_ARGUMENT;
    return 0;
}

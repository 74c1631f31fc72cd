/* http1_write.c: heads to send, and the parts of a target. */
#include "codec/http1.h"

#include "base/banned.h"

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    { 100, "Continue" },
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 204, "No Content" },
    { 307, "Temporary Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 408, "Request Timeout" },
    { 413, "Content Too Large" },
    { 417, "Expectation Failed" },
    { 426, "Upgrade Required" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 503, "Service Unavailable" },
    { 505, "HTTP Version Not Supported" },
};

const char *agx_http_reason(unsigned status)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Unknown";
}

static bool is_clean(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

int agx_http_write_status(struct agx_buf *out, unsigned status)
{
    return agx_buf_printf(out, "HTTP/1.1 %u %s\r\n", status, agx_http_reason(status));
}

int agx_http_write_request(struct agx_buf *out, struct agx_str method, struct agx_str target)
{
    if (!is_clean(method) || !is_clean(target) || agx_str_find(method, ' ') < method.len ||
        agx_str_find(target, ' ') < target.len || method.len == 0 || target.len == 0)
        return -AGX_INVALID_ARGUMENT;
    return agx_buf_printf(out, "%.*s %.*s HTTP/1.1\r\n", AGX_STR_ARG(method), AGX_STR_ARG(target));
}

int agx_http_write_header(struct agx_buf *out, struct agx_str name, struct agx_str value)
{
    if (!is_clean(name) || !is_clean(value) || agx_str_find(name, ':') < name.len || name.len == 0)
        return -AGX_INVALID_ARGUMENT;
    return agx_buf_printf(out, "%.*s: %.*s\r\n", AGX_STR_ARG(name), AGX_STR_ARG(value));
}

int agx_http_write_length(struct agx_buf *out, uint64_t content_length)
{
    return agx_buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)content_length);
}

int agx_http_write_end(struct agx_buf *out)
{
    return agx_buf_append(out, AGX_STR("\r\n"));
}

bool agx_http_query_next(struct agx_str *rest, struct agx_str *ret_name, struct agx_str *ret_value)
{
    struct agx_str part;

    while (agx_str_split(rest, '&', &part)) {
        size_t eq = agx_str_find(part, '=');

        if (part.len == 0)
            continue;
        *ret_name = (struct agx_str){ part.ptr, eq };
        *ret_value = eq < part.len ? agx_str_skip(part, eq + 1) : AGX_STR("");
        return true;
    }
    return false;
}

bool agx_http_query_get(struct agx_str query, struct agx_str name, struct agx_str *ret_value)
{
    struct agx_str n, v;

    while (agx_http_query_next(&query, &n, &v)) {
        if (agx_str_eq(n, name)) {
            *ret_value = v;
            return true;
        }
    }
    *ret_value = AGX_STR("");
    return false;
}

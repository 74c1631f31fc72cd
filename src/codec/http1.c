/*
 * http1.c: the head of a request or a response.
 *
 * The parser looks for the end of the head first, and only in bytes that it has not searched yet:
 * a peer that sends one byte at a time costs no more than one that sends all at once.
 */
#include "codec/http1_internal.h"

#include "base/banned.h"

void agx_http_init(struct agx_http *h, enum agx_http_role role, size_t head_max, uint64_t body_max)
{
    *h = (struct agx_http){ .role = role, .head_max = head_max, .body_max = body_max };
}

int agx_http_fail(struct agx_http *h, unsigned status, struct agx_error **err, const char *what)
{
    h->fault = status;
    return agx_error_set(
        err, status == 413 || status == 431 ? AGX_RESOURCE_EXHAUSTED : AGX_INVALID_ARGUMENT,
        "http: %s", what);
}

/* Length of the head with its empty line, 0 when that has not come yet. */
static size_t find_end(struct agx_http *h, struct agx_str in)
{
    /* The end may have begun in the last three bytes searched. */
    size_t from = h->scanned > 3 ? h->scanned - 3 : 0;
    const char *at;

    if (in.len - from < 4)
        return 0;
    at = memmem(in.ptr + from, in.len - from, "\r\n\r\n", 4);
    h->scanned = in.len;
    return at ? (size_t)(at - in.ptr) + 4 : 0;
}

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c > ' ' && c < 0x7f && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_token_char((unsigned char)s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

/* Bytes that a value may have: visible ones, blanks, tabs, and those from 0x80. */
static bool is_value(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Takes the next line, without its CRLF, off a head that is known to end in CRLF. */
static bool next_line(struct agx_str *rest, struct agx_str *ret_line)
{
    size_t lf = agx_str_find(*rest, '\n');

    if (lf == rest->len || lf == 0 || rest->ptr[lf - 1] != '\r')
        return false;
    *ret_line = (struct agx_str){ rest->ptr, lf - 1 };
    *rest = agx_str_skip(*rest, lf + 1);
    return true;
}

static int read_version(struct agx_http *h, struct agx_str v, unsigned *ret_minor,
                        struct agx_error **err)
{
    if (v.len != 8 || !agx_str_starts(v, AGX_STR("HTTP/")))
        return agx_http_fail(h, 400, err, "the first line has no HTTP version");
    if (!agx_str_starts(v, AGX_STR("HTTP/1.")) || (v.ptr[7] != '0' && v.ptr[7] != '1'))
        return agx_http_fail(h, 505, err, "the HTTP version is not 1.0 or 1.1");
    *ret_minor = (unsigned)(v.ptr[7] - '0');
    return 0;
}

/* "/path?query", "http://host/path?query", or "*" with OPTIONS. */
static int read_target(struct agx_http *h, struct agx_http_head *head, struct agx_error **err)
{
    struct agx_str t = head->target;
    size_t mark;

    for (size_t i = 0; i < t.len; i++) {
        if (t.ptr[i] <= ' ' || t.ptr[i] >= 0x7f || t.ptr[i] == '#')
            return agx_http_fail(h, 400, err, "the target has a byte that must be encoded");
    }
    if (agx_str_starts(t, AGX_STR("http://")) || agx_str_starts(t, AGX_STR("https://"))) {
        t = agx_str_skip(t, agx_str_find(t, ':') + 3);
        t = agx_str_skip(t, AGX_MIN(agx_str_find(t, '/'), agx_str_find(t, '?')));
    } else if (t.len == 0 || (t.ptr[0] != '/' && !agx_str_eq(t, AGX_STR("*")))) {
        return agx_http_fail(h, 400, err, "the target is not a path");
    } else if (t.ptr[0] == '*' && !agx_str_eq(head->method, AGX_STR("OPTIONS"))) {
        return agx_http_fail(h, 400, err, "the target '*' is for OPTIONS only");
    }
    mark = agx_str_find(t, '?');
    head->path = mark == 0 ? AGX_STR("/") : (struct agx_str){ t.ptr, mark };
    head->query = mark < t.len ? agx_str_skip(t, mark + 1) : AGX_STR("");
    return 0;
}

static int read_request_line(struct agx_http *h, struct agx_str line, struct agx_http_head *head,
                             struct agx_error **err)
{
    struct agx_str rest = line, version;
    int r;

    if (!agx_str_split(&rest, ' ', &head->method) || !rest.ptr ||
        !agx_str_split(&rest, ' ', &head->target) || !rest.ptr || !is_token(head->method))
        return agx_http_fail(h, 400, err, "the request line is malformed");
    version = rest;
    r = read_version(h, version, &head->minor, err);
    return r < 0 ? r : read_target(h, head, err);
}

static int read_status_line(struct agx_http *h, struct agx_str line, struct agx_http_head *head,
                            struct agx_error **err)
{
    struct agx_str rest = line, version, status;
    uint64_t code;
    int r;

    if (!agx_str_split(&rest, ' ', &version) || !rest.ptr)
        return agx_http_fail(h, 400, err, "the status line is malformed");
    r = read_version(h, version, &head->minor, err);
    if (r < 0)
        return r;
    (void)agx_str_split(&rest, ' ', &status); /* the reason after it may be missing */
    if (status.len != 3 || !agx_parse_u64(status, 599, &code) || code < 100)
        return agx_http_fail(h, 400, err, "the status is not a number from 100 to 599");
    if (rest.ptr && !is_value(rest))
        return agx_http_fail(h, 400, err, "the status line has a control byte");
    head->status = (unsigned)code;
    return 0;
}

static int read_header(struct agx_http *h, struct agx_str line, struct agx_http_head *head,
                       struct agx_error **err)
{
    size_t colon = agx_str_find(line, ':');
    struct agx_http_header *hd;

    if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
        return agx_http_fail(h, 400, err, "a header is folded over two lines");
    if (colon == line.len || !is_token((struct agx_str){ line.ptr, colon }))
        return agx_http_fail(h, 400, err, "a header's name is malformed");
    if (head->header_count == AGX_HTTP_HEADERS_MAX)
        return agx_http_fail(h, 431, err, "there are too many headers");
    hd = &head->headers[head->header_count++];
    hd->name = (struct agx_str){ line.ptr, colon };
    hd->value = agx_str_trim(agx_str_skip(line, colon + 1));
    if (!is_value(hd->value))
        return agx_http_fail(h, 400, err, "a header's value has a control byte");
    return 0;
}

static size_t header_times(const struct agx_http_head *head, struct agx_str name,
                           struct agx_str *ret_value)
{
    size_t n = 0;

    *ret_value = AGX_STR("");
    for (size_t i = 0; i < head->header_count; i++) {
        if (!agx_str_eq_nocase(head->headers[i].name, name))
            continue;
        if (n++ == 0)
            *ret_value = head->headers[i].value;
    }
    return n;
}

static int read_body_kind(struct agx_http *h, struct agx_http_head *head, struct agx_error **err)
{
    struct agx_str length, coding;
    size_t lengths = header_times(head, AGX_STR("content-length"), &length);
    size_t codings = header_times(head, AGX_STR("transfer-encoding"), &coding);

    if (lengths > 1)
        return agx_http_fail(h, 400, err, "Content-Length is given more than once");
    if (lengths && codings)
        return agx_http_fail(h, 400, err, "Content-Length and Transfer-Encoding are both given");
    if (codings > 1 || (codings && !agx_str_eq_nocase(coding, AGX_STR("chunked"))))
        return agx_http_fail(h, codings > 1 ? 400 : 501, err,
                             "Transfer-Encoding is not a single 'chunked'");
    if (codings && head->minor == 0)
        return agx_http_fail(h, 400, err, "Transfer-Encoding in HTTP/1.0");
    if (lengths && !agx_parse_u64(length, INT64_MAX, &head->content_length))
        return agx_http_fail(h, 400, err, "Content-Length is not a number");
    head->body = codings                      ? AGX_HTTP_CHUNKED
                 : head->content_length > 0   ? AGX_HTTP_LENGTH
                 : lengths                    ? AGX_HTTP_NO_BODY
                 : h->role == AGX_HTTP_CLIENT ? AGX_HTTP_UNTIL_CLOSE
                                              : AGX_HTTP_NO_BODY;
    if (h->role == AGX_HTTP_CLIENT &&
        (h->head_answer || head->status < 200 || head->status == 204 || head->status == 304))
        head->body = AGX_HTTP_NO_BODY;
    return 0;
}

static int finish_head(struct agx_http *h, struct agx_http_head *head, struct agx_error **err)
{
    struct agx_str value;
    int r = read_body_kind(h, head, err);

    if (r < 0)
        return r;
    if (h->role == AGX_HTTP_SERVER) {
        size_t hosts = header_times(head, AGX_STR("host"), &value);

        if (hosts > 1 || (hosts == 0 && head->minor == 1))
            return agx_http_fail(h, 400, err, "expected exactly one Host header");
        if (agx_http_header_get(head, AGX_STR("expect"), &value)) {
            if (!agx_str_eq_nocase(value, AGX_STR("100-continue")))
                return agx_http_fail(h, 417, err, "Expect is not '100-continue'");
            head->expect_continue = head->minor == 1 && head->body != AGX_HTTP_NO_BODY;
        }
    }
    head->upgrade = agx_http_header_has(head, AGX_STR("connection"), AGX_STR("upgrade"));
    if (head->minor == 1)
        head->keep_alive = !agx_http_header_has(head, AGX_STR("connection"), AGX_STR("close"));
    else
        head->keep_alive = agx_http_header_has(head, AGX_STR("connection"), AGX_STR("keep-alive"));
    if (head->body == AGX_HTTP_UNTIL_CLOSE)
        head->keep_alive = false;
    return agx_http_begin_body(h, head, err);
}

int agx_http_read_head(struct agx_http *h, struct agx_str in, size_t *ret_used,
                       struct agx_http_head *ret_head, struct agx_error **err)
{
    size_t end = find_end(h, in);
    struct agx_str rest = { in.ptr, end }, line;
    int r;

    if (end > h->head_max || (end == 0 && in.len >= h->head_max))
        return agx_http_fail(h, 431, err, "the head is too long");
    if (end == 0)
        return 0;
    h->scanned = 0;
    ret_head->header_count = 0;
    memset(ret_head, 0, offsetof(struct agx_http_head, headers));
    if (!next_line(&rest, &line))
        return agx_http_fail(h, 400, err, "a line does not end in CRLF");
    r = h->role == AGX_HTTP_SERVER ? read_request_line(h, line, ret_head, err)
                                   : read_status_line(h, line, ret_head, err);
    while (r == 0) {
        if (!next_line(&rest, &line))
            return agx_http_fail(h, 400, err, "a line does not end in CRLF");
        if (line.len == 0)
            break;
        r = read_header(h, line, ret_head, err);
    }
    if (r == 0)
        r = finish_head(h, ret_head, err);
    if (r < 0)
        return r;
    *ret_used = end;
    return 1;
}

bool agx_http_header_get(const struct agx_http_head *head, struct agx_str name,
                         struct agx_str *ret_value)
{
    return header_times(head, name, ret_value) > 0;
}

bool agx_http_header_has(const struct agx_http_head *head, struct agx_str name,
                         struct agx_str token)
{
    for (size_t i = 0; i < head->header_count; i++) {
        struct agx_str rest = head->headers[i].value, part;

        if (!agx_str_eq_nocase(head->headers[i].name, name))
            continue;
        while (agx_str_split(&rest, ',', &part)) {
            if (agx_str_eq_nocase(agx_str_trim(part), token))
                return true;
        }
    }
    return false;
}

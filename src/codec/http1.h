/*
 * http1.h: HTTP/1.1 heads and bodies without I/O. It is strict where lenient parsers have allowed
 * request smuggling.
 *
 * These are refused with 400: a bare CR or LF, NUL and other control bytes, folded lines, blanks
 * before a colon, a second Content-Length, Content-Length together with Transfer-Encoding, any
 * coding but a single `chunked`, a 1.1 request without exactly one Host. A head that is too long is
 * 431, a body that is too long is 413.
 *
 * One struct agx_http reads one direction of one connection, message after message:
 *
 *     agx_http_read_head()  until it gives 1; then
 *     agx_http_read_body()  until it gives AGX_HTTP_BODY_END; then the next head.
 */
#ifndef AGX_CODEC_HTTP1_H
#define AGX_CODEC_HTTP1_H

#include "base/buf.h"

enum {
    AGX_HTTP_HEADERS_MAX = 64, /* browsers and proxies send up to about 40 */
};

struct agx_http_header {
    struct agx_str name, value;
};

enum agx_http_body {
    AGX_HTTP_NO_BODY,
    AGX_HTTP_LENGTH,
    AGX_HTTP_CHUNKED,
    AGX_HTTP_UNTIL_CLOSE, /* answers only */
};

/* A head; all strings are views of the bytes that it was read from. */
struct agx_http_head {
    struct agx_str method, target; /* requests */
    struct agx_str path, query;    /* of the target, not decoded; query without '?' */
    unsigned status;               /* answers */
    unsigned minor;                /* HTTP/1.<minor>: 0 or 1 */
    enum agx_http_body body;
    uint64_t content_length; /* with AGX_HTTP_LENGTH */
    bool keep_alive;
    bool expect_continue; /* the client waits for "100 Continue" before it sends the body */
    bool upgrade;         /* "Connection: upgrade" */
    struct agx_http_header headers[AGX_HTTP_HEADERS_MAX];
    size_t header_count;
};

enum agx_http_role {
    AGX_HTTP_SERVER, /* reads requests */
    AGX_HTTP_CLIENT, /* reads answers */
};

struct agx_http {
    enum agx_http_role role;
    size_t head_max;
    uint64_t body_max;
    unsigned fault;   /* after an error: the status to answer with */
    bool head_answer; /* client: the next answer is one to HEAD, so it has no body */
    /* private */
    size_t scanned; /* bytes of the head that were already searched for its end */
    enum agx_http_body body;
    uint64_t left, total; /* bytes of this body or chunk still to come; bytes of the body so far */
    uint8_t chunk_state;
    uint8_t chunk_digits;
    size_t line_len; /* chunk extension or trailers so far */
};

void agx_http_init(struct agx_http *h, enum agx_http_role role, size_t head_max, uint64_t body_max);

/*
 * Looks for a whole head at the beginning of `in`. 1: *ret_head is set and *ret_used bytes belong
 * to it; 0: more bytes are needed, call again with the same bytes and more behind them; negative:
 * answer with h->fault and close.
 */
int agx_http_read_head(struct agx_http *h, struct agx_str in, size_t *ret_used,
                       struct agx_http_head *ret_head, struct agx_error **err) AGX_MUST_CHECK;

enum agx_http_progress { AGX_HTTP_BODY_MORE = 0, AGX_HTTP_BODY_PART = 1, AGX_HTTP_BODY_END = 2 };

/*
 * Takes *ret_used bytes of `in`. PART: *ret_part is a piece of the body, call again; MORE: feed
 * more bytes; END: the body is complete (also at once, for a head without one). Negative as above.
 */
int agx_http_read_body(struct agx_http *h, struct agx_str in, size_t *ret_used,
                       struct agx_str *ret_part, struct agx_error **err) AGX_MUST_CHECK;

/* The first header of that name (any case); false and an empty value if there is none. */
bool agx_http_header_get(const struct agx_http_head *head, struct agx_str name,
                         struct agx_str *ret_value);

/* Does a comma-separated header (also one of several lines) contain the token, in any case? */
bool agx_http_header_has(const struct agx_http_head *head, struct agx_str name,
                         struct agx_str token);

/* Next "name=value" of a query; *rest begins as the query. Not decoded. False at the end. */
bool agx_http_query_next(struct agx_str *rest, struct agx_str *ret_name, struct agx_str *ret_value);

/* First value of `name`, not decoded. */
bool agx_http_query_get(struct agx_str query, struct agx_str name, struct agx_str *ret_value);

/*
 * Writers: a first line, headers, an empty line. A value with a control byte is
 * -AGX_INVALID_ARGUMENT, so no caller can split a head.
 */
int agx_http_write_status(struct agx_buf *out, unsigned status) AGX_MUST_CHECK;
int agx_http_write_request(struct agx_buf *out, struct agx_str method,
                           struct agx_str target) AGX_MUST_CHECK;
int agx_http_write_header(struct agx_buf *out, struct agx_str name,
                          struct agx_str value) AGX_MUST_CHECK;
int agx_http_write_length(struct agx_buf *out, uint64_t content_length) AGX_MUST_CHECK;
int agx_http_write_end(struct agx_buf *out) AGX_MUST_CHECK;

/* "Not Found" for 404; "Unknown" for a status that is not in the table. */
const char *agx_http_reason(unsigned status);

#endif

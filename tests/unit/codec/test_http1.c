#include "codec/http1.h"
#include "tests/support/test.h"

enum { HEAD_MAX = 512, BODY_MAX = 1000 };

static void read_ok(enum agx_http_role role, struct agx_http *h, struct agx_str in,
                    struct agx_http_head *ret)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    size_t used = 0;
    char text[256];

    agx_http_init(h, role, HEAD_MAX, BODY_MAX);
    /* One byte more at a time: nothing is decided before the head is whole. */
    for (size_t n = 0; n < in.len; n++) {
        size_t end = in.len >= 4 && n < in.len ? n : in.len;
        int r = agx_http_read_head(h, (struct agx_str){ in.ptr, end }, &used, ret, &err);

        if (r < 0)
            FAIL("after %zu bytes: %s", end, agx_error_format(err, text, sizeof(text)));
        if (r == 1)
            return;
    }
    ASSERT_INT(1, agx_http_read_head(h, in, &used, ret, &err));
}

static void check_refused(enum agx_http_role role, struct agx_str in, unsigned status,
                          const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_http_head head;
    struct agx_http h;
    size_t used;

    agx_http_init(&h, role, HEAD_MAX, BODY_MAX);
    ASSERT_TRUE(agx_http_read_head(&h, in, &used, &head, &err) < 0);
    ASSERT_UINT(status, h.fault);
    ASSERT_MESSAGE(err, words);
}

TEST(http_request_head_gives_its_parts)
{
    struct agx_http_head head;
    struct agx_str value;
    struct agx_http h;

    read_ok(AGX_HTTP_SERVER, &h,
            AGX_STR("GET /socket.io/?transport=polling&EIO=4&t=1.5 HTTP/1.1\r\n"
                    "Host: localhost\r\nX-Empty:\r\nAccept:  \t text/plain \t\r\n\r\n"),
            &head);
    ASSERT_STR(AGX_STR("GET"), head.method);
    ASSERT_STR(AGX_STR("/socket.io/"), head.path);
    ASSERT_STR(AGX_STR("transport=polling&EIO=4&t=1.5"), head.query);
    ASSERT_UINT(1, head.minor);
    ASSERT_UINT(3, head.header_count);
    ASSERT_TRUE(head.keep_alive);
    ASSERT_FALSE(head.upgrade || head.expect_continue);
    ASSERT_INT(AGX_HTTP_NO_BODY, head.body);
    ASSERT_TRUE(agx_http_header_get(&head, AGX_STR("ACCEPT"), &value));
    ASSERT_STR(AGX_STR("text/plain"), value);
    ASSERT_TRUE(agx_http_header_get(&head, AGX_STR("x-empty"), &value));
    ASSERT_STR(AGX_STR(""), value);
    ASSERT_FALSE(agx_http_header_get(&head, AGX_STR("cookie"), &value));
    ASSERT_TRUE(agx_http_query_get(head.query, AGX_STR("EIO"), &value));
    ASSERT_STR(AGX_STR("4"), value);
    ASSERT_FALSE(agx_http_query_get(head.query, AGX_STR("sid"), &value));
}

TEST(http_target_in_its_other_forms_gives_the_path)
{
    struct agx_http_head head;
    struct agx_http h;

    read_ok(AGX_HTTP_SERVER, &h, AGX_STR("GET http://h:80/a?b HTTP/1.1\r\nHost: h\r\n\r\n"), &head);
    ASSERT_STR(AGX_STR("/a"), head.path);
    ASSERT_STR(AGX_STR("b"), head.query);
    read_ok(AGX_HTTP_SERVER, &h, AGX_STR("GET http://h?b HTTP/1.1\r\nHost: h\r\n\r\n"), &head);
    ASSERT_STR(AGX_STR("/"), head.path);
    read_ok(AGX_HTTP_SERVER, &h, AGX_STR("GET https://h HTTP/1.1\r\nHost: h\r\n\r\n"), &head);
    ASSERT_STR(AGX_STR("/"), head.path);
    read_ok(AGX_HTTP_SERVER, &h, AGX_STR("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), &head);
    ASSERT_STR(AGX_STR("*"), head.path);
}

TEST(http_keep_alive_follows_version_and_connection)
{
    static const struct {
        const char *text;
        bool keep_alive;
    } cases[] = {
        { "GET / HTTP/1.1\r\nHost: h\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nHost: h\r\nConnection: foo, Close\r\n\r\n", false },
        { "GET / HTTP/1.0\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_http_head head;
        struct agx_http h;

        read_ok(AGX_HTTP_SERVER, &h, agx_str_from(cases[i].text), &head);
        ASSERT_INT(cases[i].keep_alive, head.keep_alive);
    }
}

TEST(http_request_that_could_smuggle_another_is_refused)
{
#define R "POST / HTTP/1.1\r\nHost: h\r\n"
    static const struct {
        struct agx_str in;
        unsigned status;
        const char *words;
    } bad[] = {
        { AGX_STR(R "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400, "more than once" },
        { AGX_STR(R "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "both" },
        { AGX_STR(R "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501, "chunked" },
        { AGX_STR(R "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"), 400, "single" },
        { AGX_STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "1.0" },
        { AGX_STR(R "Content-Length: +1\r\n\r\n"), 400, "number" },
        { AGX_STR(R "Content-Length: 1, 1\r\n\r\n"), 400, "number" },
        { AGX_STR(R "Content-Length: 99999999999999999999\r\n\r\n"), 400, "number" },
        { AGX_STR(R "Content-Length:\r\n\r\n"), 400, "number" },
        { AGX_STR(R "Content-Length: 1001\r\n\r\n"), 413, "too long" },
        { AGX_STR(R "A: b\nC: d\r\n\r\n"), 400, "CRLF" },
        { AGX_STR(R "A: b\rC\r\n\r\n"), 400, "control" },
        { AGX_STR(R "A: b\0c\r\n\r\n"), 400, "control" },
        { AGX_STR(R "A: b\r\n c\r\n\r\n"), 400, "folded" },
        { AGX_STR(R "A : b\r\n\r\n"), 400, "name" },
        { AGX_STR(R ": b\r\n\r\n"), 400, "name" },
        { AGX_STR(R "nocolon\r\n\r\n"), 400, "name" },
        { AGX_STR(R "Host: i\r\n\r\n"), 400, "Host" },
        { AGX_STR("GET / HTTP/1.1\r\n\r\n"), 400, "Host" },
        { AGX_STR(R "Expect: tea\r\n\r\n"), 417, "Expect" },
        { AGX_STR("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505, "version" },
        { AGX_STR("GET / HTTQ/1.1\r\nHost: h\r\n\r\n"), 400, "version" },
        { AGX_STR("GET /\r\nHost: h\r\n\r\n"), 400, "request line" },
        { AGX_STR("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "version" },
        { AGX_STR("GET / HTTP/1.1 \r\nHost: h\r\n\r\n"), 400, "version" },
        { AGX_STR("G(T / HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "request line" },
        { AGX_STR("GET a HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "path" },
        { AGX_STR("GET * HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "OPTIONS" },
        { AGX_STR("GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "encoded" },
        { AGX_STR("GET /#a HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "encoded" },
        { AGX_STR("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400, "request line" },
    };
#undef R

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        check_refused(AGX_HTTP_SERVER, bad[i].in, bad[i].status, bad[i].words);
}

TEST(http_head_past_its_limits_is_431)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(4096);

    ASSERT_OK(agx_buf_append(&b, AGX_STR("GET / HTTP/1.1\r\nHost: h\r\nA: ")));
    while (b.len < HEAD_MAX)
        ASSERT_OK(agx_buf_push(&b, 'a'));
    check_refused(AGX_HTTP_SERVER, agx_buf_peek(&b), 431, "too long");
    b.len -= 4;
    ASSERT_OK(agx_buf_append(&b, AGX_STR("\r\n\r\n")));
    {
        struct agx_http_head head;
        struct agx_http h;

        read_ok(AGX_HTTP_SERVER, &h, agx_buf_peek(&b), &head);
    }
    agx_buf_clear(&b);
    ASSERT_OK(agx_buf_append(&b, AGX_STR("GET / HTTP/1.1\r\nHost: h\r\n")));
    for (unsigned i = 0; i < AGX_HTTP_HEADERS_MAX; i++)
        ASSERT_OK(agx_buf_append(&b, AGX_STR("A:\r\n")));
    ASSERT_OK(agx_buf_append(&b, AGX_STR("\r\n")));
    check_refused(AGX_HTTP_SERVER, agx_buf_peek(&b), 431, "too many");
}

/* Reads head and body fed `step` bytes at a time; the body is in *body, what follows in *rest. */
static int read_message(struct agx_http *h, struct agx_str in, size_t step, struct agx_buf *body,
                        struct agx_str *rest, struct agx_error **err)
{
    struct agx_http_head head;
    size_t used, at, end;
    int r = agx_http_read_head(h, in, &at, &head, err);

    if (r <= 0)
        return r;
    for (end = at;;) {
        struct agx_str part;

        r = agx_http_read_body(h, (struct agx_str){ in.ptr + at, end - at }, &used, &part, err);
        at += used;
        if (r == AGX_HTTP_BODY_PART)
            ASSERT_OK(agx_buf_append(body, part));
        if (r < 0 || r == AGX_HTTP_BODY_END)
            break;
        if (at == end && end == in.len)
            break;
        if (at == end)
            end = AGX_MIN(end + step, in.len);
    }
    *rest = agx_str_skip(in, at);
    return r;
}

static void check_body(struct agx_str in, const char *body, const char *rest)
{
    for (size_t step = 1; step < in.len; step++) {
        _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(4096);
        struct agx_str got_rest;
        struct agx_http h;

        agx_http_init(&h, AGX_HTTP_SERVER, HEAD_MAX, BODY_MAX);
        ASSERT_INT(AGX_HTTP_BODY_END, read_message(&h, in, step, &got, &got_rest, NULL));
        ASSERT_STR(agx_str_from(body), agx_buf_peek(&got));
        ASSERT_STR(agx_str_from(rest), got_rest);
    }
}

#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"

TEST(http_body_is_the_same_however_its_bytes_come_and_the_next_request_stays)
{
    check_body(AGX_STR("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET"), "hello",
               "GET");
    check_body(AGX_STR("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\nGET"), "", "GET");
    check_body(AGX_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET"), "", "GET");
    check_body(AGX_STR(CHUNKED "5\r\nhello\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\nGET"),
               "hello0123456789", "GET");
    check_body(AGX_STR(CHUNKED "1\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nGET"), "a", "GET");
}

TEST(http_chunked_body_that_is_malformed_or_too_long_is_refused)
{
    static const struct {
        struct agx_str in;
        unsigned status;
    } bad[] = {
        { AGX_STR(CHUNKED "\r\n"), 400 },
        { AGX_STR(CHUNKED "x\r\n"), 400 },
        { AGX_STR(CHUNKED "5 \r\nhello\r\n"), 400 },
        { AGX_STR(CHUNKED "5\nhello\r\n"), 400 },
        { AGX_STR(CHUNKED "5\r\nhelloX\r\n"), 400 },
        { AGX_STR(CHUNKED "5\r\nhello\rX"), 400 },
        { AGX_STR(CHUNKED "0\r\n\rX"), 400 },
        { AGX_STR(CHUNKED "0\r\nA\nB\r\n\r\n"), 400 },
        { AGX_STR(CHUNKED "00000000000000001\r\n"), 400 },
        { AGX_STR(CHUNKED "3e9\r\n"), 413 },
        { AGX_STR(CHUNKED "ffffffffffffffff\r\n"), 413 },
        { AGX_STR(CHUNKED "1\r\na\r\n3e8\r\n"), 413 },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(4096);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_str rest;
        struct agx_http h;

        agx_http_init(&h, AGX_HTTP_SERVER, HEAD_MAX, BODY_MAX);
        ASSERT_TRUE(read_message(&h, bad[i].in, 1, &got, &rest, &err) < 0);
        ASSERT_UINT(bad[i].status, h.fault);
        ASSERT_MESSAGE(err, "http");
    }
}

TEST(http_endless_extensions_and_trailers_are_refused)
{
    static const struct agx_str begins[] = { AGX_STR(CHUNKED "1;"), AGX_STR(CHUNKED "0\r\nA: ") };

    for (size_t i = 0; i < AGX_ARRAY_LEN(begins); i++) {
        _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(1 << 16), got = AGX_BUF_INIT(10);
        struct agx_str rest;
        struct agx_http h;

        ASSERT_OK(agx_buf_append(&in, begins[i]));
        while (in.len < 10000)
            ASSERT_OK(agx_buf_push(&in, 'a'));
        agx_http_init(&h, AGX_HTTP_SERVER, HEAD_MAX, BODY_MAX);
        ASSERT_CODE(AGX_INVALID_ARGUMENT,
                    read_message(&h, agx_buf_peek(&in), 1000, &got, &rest, NULL));
        ASSERT_UINT(400, h.fault);
    }
}

TEST(http_expect_continue_is_told_only_with_a_body)
{
    struct agx_http_head head;
    struct agx_http h;

    read_ok(AGX_HTTP_SERVER, &h,
            AGX_STR("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                    "Content-Length: 1\r\n\r\n"),
            &head);
    ASSERT_TRUE(head.expect_continue);
    read_ok(AGX_HTTP_SERVER, &h,
            AGX_STR("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"), &head);
    ASSERT_FALSE(head.expect_continue);
}

TEST(http_answer_gives_status_and_the_right_body)
{
    static const struct {
        const char *text;
        unsigned status;
        enum agx_http_body body;
        bool keep_alive;
    } cases[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200, AGX_HTTP_LENGTH, true },
        { "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, AGX_HTTP_NO_BODY, true },
        { "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", 200, AGX_HTTP_CHUNKED, true },
        { "HTTP/1.1 200 OK\r\n\r\n", 200, AGX_HTTP_UNTIL_CLOSE, false },
        { "HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, AGX_HTTP_NO_BODY, true },
        { "HTTP/1.1 204 No Content\r\n\r\n", 204, AGX_HTTP_NO_BODY, true },
        { "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", 304, AGX_HTTP_NO_BODY, true },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_http_head head;
        struct agx_http h;

        read_ok(AGX_HTTP_CLIENT, &h, agx_str_from(cases[i].text), &head);
        ASSERT_UINT(cases[i].status, head.status);
        ASSERT_INT(cases[i].body, head.body);
        ASSERT_INT(cases[i].keep_alive, head.keep_alive);
    }
    check_refused(AGX_HTTP_CLIENT, AGX_STR("HTTP/1.1 20 OK\r\n\r\n"), 400, "status");
    check_refused(AGX_HTTP_CLIENT, AGX_STR("HTTP/1.1 600 OK\r\n\r\n"), 400, "status");
    check_refused(AGX_HTTP_CLIENT, AGX_STR("HTTP/1.1\r\n\r\n"), 400, "status line");
}

TEST(http_answer_to_head_has_no_body)
{
    struct agx_http_head head;
    struct agx_http h;
    size_t used;

    agx_http_init(&h, AGX_HTTP_CLIENT, HEAD_MAX, BODY_MAX);
    h.head_answer = true;
    ASSERT_INT(1, agx_http_read_head(&h, AGX_STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
                                     &used, &head, NULL));
    ASSERT_INT(AGX_HTTP_NO_BODY, head.body);
}

TEST(http_body_without_a_length_goes_on_for_as_long_as_bytes_come)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct agx_str rest;
    struct agx_http h;

    agx_http_init(&h, AGX_HTTP_CLIENT, HEAD_MAX, BODY_MAX);
    ASSERT_OK(read_message(&h, AGX_STR("HTTP/1.1 200 OK\r\n\r\nabc"), 1, &got, &rest, NULL));
    ASSERT_STR(AGX_STR("abc"), agx_buf_peek(&got));
}

TEST(http_query_next_passes_empty_parts)
{
    struct agx_str rest = AGX_STR("&a=1&&b&c=&=d&"), name, value;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);

    while (agx_http_query_next(&rest, &name, &value))
        ASSERT_OK(agx_buf_printf(&out, "%.*s:%.*s;", AGX_STR_ARG(name), AGX_STR_ARG(value)));
    ASSERT_STR(AGX_STR("a:1;b:;c:;:d;"), agx_buf_peek(&out));
}

TEST(http_writers_refuse_what_would_split_a_head)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);

    ASSERT_OK(agx_http_write_status(&out, 404));
    ASSERT_OK(agx_http_write_header(&out, AGX_STR("A"), AGX_STR("b c")));
    ASSERT_OK(agx_http_write_length(&out, 12));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_http_write_header(&out, AGX_STR("A"), AGX_STR("b\r\nC: d")));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_http_write_header(&out, AGX_STR("A:"), AGX_STR("b")));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_http_write_request(&out, AGX_STR("GET"), AGX_STR("/ HTTP/1.1\r\n")));
    ASSERT_OK(agx_http_write_end(&out));
    ASSERT_STR(AGX_STR("HTTP/1.1 404 Not Found\r\nA: b c\r\nContent-Length: 12\r\n\r\n"),
               agx_buf_peek(&out));
}

/*
 * fuzz_http1.c: the heads, bodies and verdict of a stream of pipelined messages do not depend on
 * the chunks; views stay inside the input; targets and queries can be split into their parts. The
 * first byte chooses the role and the chunks.
 */
#include "codec/http1.h"
#include "tests/support/fuzz.h"

enum { HEAD_MAX = 4096, BODY_MAX = 1 << 16 };

struct story {
    struct agx_buf text;
    unsigned fault;
};

static void tell(struct story *s, struct agx_str part)
{
    FUZZ_CHECK(agx_buf_printf(&s->text, "%zu:", part.len) == 0);
    FUZZ_CHECK(agx_buf_append(&s->text, part) == 0);
}

static void tell_head(struct story *s, const struct agx_http_head *head)
{
    struct agx_str rest = head->query, name, value;

    FUZZ_CHECK(agx_buf_printf(&s->text, "[%u %u %d %d%d%d]", head->status, head->minor, head->body,
                              head->keep_alive, head->upgrade, head->expect_continue) == 0);
    tell(s, head->method);
    tell(s, head->path);
    for (size_t i = 0; i < head->header_count; i++) {
        tell(s, head->headers[i].name);
        tell(s, head->headers[i].value);
    }
    while (agx_http_query_next(&rest, &name, &value)) {
        tell(s, name);
        tell(s, value);
    }
}

/* Reads from data[*at .. end]; true when it needs more bytes or has failed. */
static bool turn(struct story *s, struct agx_http *h, struct agx_str in, size_t *at, bool *in_body,
                 struct agx_buf *body)
{
    struct agx_error *err = NULL;
    struct agx_http_head head;
    struct agx_str part;
    size_t used = 0;
    int r;

    if (!*in_body) {
        r = agx_http_read_head(h, in, &used, &head, &err);
        if (r == 1) {
            tell_head(s, &head);
            *in_body = true;
        }
    } else {
        r = agx_http_read_body(h, in, &used, &part, &err);
        if (r == AGX_HTTP_BODY_PART)
            FUZZ_CHECK(agx_buf_append(body, part) == 0);
        if (r == AGX_HTTP_BODY_END) {
            tell(s, agx_buf_peek(body));
            agx_buf_clear(body);
            *in_body = false;
        }
    }
    FUZZ_CHECK(used <= in.len && (r < 0) == (err != NULL) && (r < 0) == (h->fault != 0));
    *at += used;
    s->fault = h->fault;
    err = agx_error_free(err);
    return r <= 0;
}

static void run(struct story *s, enum agx_http_role role, struct agx_str in, size_t step)
{
    _cleanup_buf_ struct agx_buf body = AGX_BUF_INIT(BODY_MAX);
    size_t at = 0, end = 0;
    bool in_body = false;
    struct agx_http h;

    agx_http_init(&h, role, HEAD_MAX, BODY_MAX);
    while (!s->fault) {
        if (turn(s, &h, (struct agx_str){ in.ptr + at, end - at }, &at, &in_body, &body)) {
            if (end == in.len)
                break;
            end = AGX_MIN(end + step, in.len);
        }
    }
    tell(s, agx_buf_peek(&body));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct story whole = { .text = AGX_BUF_INIT(SIZE_MAX / 8) }, pieces = whole;
    enum agx_http_role role;

    if (size < 1)
        return 0;
    role = data[0] & 1 ? AGX_HTTP_CLIENT : AGX_HTTP_SERVER;
    run(&whole, role, agx_str_bytes(data + 1, size - 1), size);
    run(&pieces, role, agx_str_bytes(data + 1, size - 1), (data[0] >> 1) % 32 + 1);
    FUZZ_CHECK(whole.fault == pieces.fault);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole.text), agx_buf_peek(&pieces.text)));
    agx_buf_done(&whole.text);
    agx_buf_done(&pieces.text);
    return 0;
}

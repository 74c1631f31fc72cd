/* jsonseq.c: cuts a stream of JSON objects apart. */
#include "codec/jsonseq.h"

#include "base/banned.h"

void agx_jsonseq_init(struct agx_jsonseq *q, size_t max)
{
    *q = (struct agx_jsonseq){ .held = AGX_BUF_INIT(max) };
}

void agx_jsonseq_done(struct agx_jsonseq *q)
{
    if (q)
        agx_buf_done(&q->held);
}

bool agx_jsonseq_is_whole(const struct agx_jsonseq *q)
{
    return !q->failed && q->depth == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One byte of an object; true when it is the last. */
static bool jsonseq_step(struct agx_jsonseq *q, char c)
{
    if (q->escaped) {
        q->escaped = false;
    } else if (q->in_string) {
        q->escaped = c == '\\';
        q->in_string = c != '"';
    } else if (c == '"') {
        q->in_string = true;
    } else if (c == '{' || c == '[') {
        q->depth++;
    } else if (c == '}' || c == ']') {
        return --q->depth == 0;
    }
    return false;
}

static int jsonseq_fail(struct agx_jsonseq *q, enum agx_code code, struct agx_error **err)
{
    q->failed = true;
    if (code == AGX_INVALID_ARGUMENT)
        return agx_error_set(err, code, "expected a JSON object");
    return agx_error_set(err, code, "a JSON object is longer than %zu bytes", q->held.max);
}

int agx_jsonseq_next(struct agx_jsonseq *q, struct agx_str *in, struct agx_str *ret_object,
                     struct agx_error **err)
{
    size_t n = 0;
    bool whole = false;

    if (q->given)
        agx_buf_clear(&q->held);
    q->given = false;
    if (q->failed)
        return jsonseq_fail(q, AGX_INVALID_ARGUMENT, err);
    while (q->depth == 0 && in->len > 0 && is_blank(in->ptr[0]))
        *in = agx_str_skip(*in, 1);
    if (in->len == 0)
        return 0;
    if (q->depth == 0 && in->ptr[0] != '{')
        return jsonseq_fail(q, AGX_INVALID_ARGUMENT, err);
    while (n < in->len && !whole)
        whole = jsonseq_step(q, in->ptr[n++]);
    if (n > q->held.max - q->held.len)
        return jsonseq_fail(q, AGX_RESOURCE_EXHAUSTED, err);
    *ret_object = (struct agx_str){ in->ptr, n };
    *in = agx_str_skip(*in, n);
    if (whole && q->held.len == 0)
        return 1;
    if (agx_buf_append(&q->held, *ret_object) < 0) {
        q->failed = true;
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "read a JSON object: out of memory");
    }
    *ret_object = agx_buf_peek(&q->held);
    q->given = whole;
    return whole;
}

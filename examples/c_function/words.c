/*
 * words.c: three C functions that any Agentix client can call: unary, stream and bidi.
 *
 *     cc -shared -fPIC -o libwords.so words.c
 *     AGENTIX_PATH=$PWD agentix-server ...
 *
 * A client then calls c:words::count, c:words::split and c:words::reverse.
 */
#include <agentix/function.h>

#include <stdlib.h>

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Takes the next word from the front of *rest. Returns an empty one after the last. */
static struct agx_fn_bytes next_word(struct agx_fn_bytes *rest)
{
    struct agx_fn_bytes word;

    while (rest->len > 0 && is_blank(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
    word.ptr = rest->ptr;
    word.len = 0;
    while (word.len < rest->len && !is_blank(word.ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

/* count(text) -> {"words": int, "bytes": int} */
static int count(struct agx_fn_call *call)
{
    struct agx_fn_bytes text = { NULL, 0 };
    int64_t words = 0;
    size_t bytes;

    if (agx_fn_arg_str(call, 0, &text) < 0)
        return AGX_FN_FAILED;
    bytes = text.len;
    while (next_word(&text).len > 0)
        words++;
    agx_fn_put_map(call, 2);
    agx_fn_put_cstr(call, "words");
    agx_fn_put_int(call, words);
    agx_fn_put_cstr(call, "bytes");
    agx_fn_put_int(call, (int64_t)bytes);
    return 0;
}

/* split(text, limit=-1): yields each word; fails after `limit` words. */
static int split(struct agx_fn_call *call)
{
    struct agx_fn_bytes text = { NULL, 0 }, word;
    int64_t limit = -1, n = 0;

    if (agx_fn_arg_str(call, 0, &text) < 0 || agx_fn_arg_int(call, 1, &limit) < 0)
        return AGX_FN_FAILED;
    while ((word = next_word(&text)).len > 0) {
        int r;

        if (n++ == limit)
            return agx_fn_fail(call, "ValueError", "more than %d words", (int)limit);
        agx_fn_put_str(call, word.ptr, word.len);
        r = agx_fn_emit(call); /* waits while the client grants no credit */
        if (r < 0)
            return r;
    }
    return 0;
}

/* reverse(): reads byte strings, sends each one reversed. */
static int reverse(struct agx_fn_call *call)
{
    struct agx_fn_value item;
    int r;

    while ((r = agx_fn_next(call, &item)) > 0) {
        char *out;

        if (item.type != AGX_FN_BIN)
            return agx_fn_fail(call, "TypeError", "reverse() takes bytes");
        out = (char *)malloc(item.as.bytes.len + 1);
        if (!out)
            return agx_fn_fail(call, "MemoryError", "no memory");
        for (size_t i = 0; i < item.as.bytes.len; i++)
            out[i] = item.as.bytes.ptr[item.as.bytes.len - 1 - i];
        agx_fn_put_bin(call, out, item.as.bytes.len);
        free(out);
        r = agx_fn_emit(call);
        if (r < 0)
            return r;
    }
    return r; /* 0: the client has ended its input; or cancelled */
}

static const struct agx_function functions[] = {
    { "count", AGX_FN_UNARY, 0, "text", count },
    { "split", AGX_FN_STREAM, 0, "text limit?", split },
    { "reverse", AGX_FN_BIDI, 0, "", reverse },
};
AGX_FUNCTIONS(functions);

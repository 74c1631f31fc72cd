/*
 * http1_body.c: bodies, by length or chunked.
 *
 *     SIZE -> [EXTENSION] -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE ...
 *                               |
 *                               +--(size 0)--> TRAILER_START -> TRAILER -> TRAILER_LF -> ...
 *                                                   +--> LAST_LF -> end
 *
 * Extensions and trailers are read up to a limit and dropped: they are not needed.
 */
#include "codec/http1_internal.h"

#include "base/banned.h"

enum {
    SIZE_DIGITS_MAX = 16,    /* of a 64-bit size */
    EXTENSION_MAX = 1 << 10, /* one size line; usually there are none */
    TRAILERS_MAX = 8 << 10,  /* all trailers together */
};

int agx_http_begin_body(struct agx_http *h, const struct agx_http_head *head,
                        struct agx_error **err)
{
    if (head->body == AGX_HTTP_LENGTH && head->content_length > h->body_max)
        return agx_http_fail(h, 413, err, "the body is too long");
    h->body = head->body;
    h->left = head->body == AGX_HTTP_LENGTH ? head->content_length : 0;
    h->total = 0;
    h->chunk_state = CHUNK_SIZE;
    h->chunk_digits = 0;
    h->line_len = 0;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One byte of a size line. */
static int read_size_byte(struct agx_http *h, char c, struct agx_error **err)
{
    int digit = hex_digit(c);

    if (digit >= 0) {
        if (++h->chunk_digits > SIZE_DIGITS_MAX)
            return agx_http_fail(h, 400, err, "a chunk's size has too many digits");
        h->left = h->left << 4 | (unsigned)digit;
        return 0;
    }
    if (h->chunk_digits == 0 || (c != '\r' && c != ';'))
        return agx_http_fail(h, 400, err, "a chunk's size is not a number");
    h->chunk_state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
    return 0;
}

static int end_size_line(struct agx_http *h, struct agx_error **err)
{
    h->line_len = 0;
    h->chunk_digits = 0;
    if (h->left > h->body_max - h->total)
        return agx_http_fail(h, 413, err, "the body is too long");
    h->chunk_state = h->left == 0 ? CHUNK_TRAILER_START : CHUNK_DATA;
    return 0;
}

/* A byte of an extension or trailer: any text up to CR. */
static int read_text_byte(struct agx_http *h, char c, size_t max, enum chunk_state after,
                          struct agx_error **err)
{
    if (++h->line_len > max)
        return agx_http_fail(h, 400, err, "chunk extensions or trailers are too long");
    if (c == '\r')
        h->chunk_state = after;
    else if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
        return agx_http_fail(h, 400, err, "a chunked body has a control byte in its text");
    return 0;
}

/* One byte that is not data. 1: the body has ended. */
static int read_chunk_byte(struct agx_http *h, char c, struct agx_error **err)
{
    bool lf = c == '\n';

    switch ((enum chunk_state)h->chunk_state) {
    case CHUNK_SIZE:
        return read_size_byte(h, c, err);
    case CHUNK_EXTENSION:
        return read_text_byte(h, c, EXTENSION_MAX, CHUNK_SIZE_LF, err);
    case CHUNK_SIZE_LF:
        if (lf)
            return end_size_line(h, err);
        break;
    case CHUNK_DATA_CR:
        h->chunk_state = CHUNK_DATA_LF;
        if (c == '\r')
            return 0;
        break;
    case CHUNK_DATA_LF:
        h->chunk_state = CHUNK_SIZE;
        if (lf)
            return 0;
        break;
    case CHUNK_TRAILER_START:
        h->chunk_state = c == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER;
        if (c == '\r')
            return 0;
        return read_text_byte(h, c, TRAILERS_MAX, CHUNK_TRAILER_LF, err);
    case CHUNK_TRAILER:
        return read_text_byte(h, c, TRAILERS_MAX, CHUNK_TRAILER_LF, err);
    case CHUNK_TRAILER_LF:
        h->chunk_state = CHUNK_TRAILER_START;
        if (lf)
            return 0;
        break;
    case CHUNK_LAST_LF:
        if (lf)
            return 1;
        break;
    case CHUNK_DATA:
        break;
    }
    return agx_http_fail(h, 400, err, "a line of a chunked body does not end in CRLF");
}

static int read_chunked(struct agx_http *h, struct agx_str in, size_t *ret_used,
                        struct agx_str *ret_part, struct agx_error **err)
{
    size_t i = 0;

    while (i < in.len) {
        int r;

        if (h->chunk_state == CHUNK_DATA) {
            size_t n = AGX_MIN(h->left, in.len - i);

            *ret_part = (struct agx_str){ in.ptr + i, n };
            *ret_used = i + n;
            h->left -= n;
            h->total += n;
            if (h->left == 0)
                h->chunk_state = CHUNK_DATA_CR;
            return AGX_HTTP_BODY_PART;
        }
        r = read_chunk_byte(h, in.ptr[i], err);
        i++;
        if (r < 0)
            return r;
        if (r == 1) {
            h->body = AGX_HTTP_NO_BODY;
            *ret_used = i;
            return AGX_HTTP_BODY_END;
        }
    }
    *ret_used = i;
    return AGX_HTTP_BODY_MORE;
}

static int read_until_close(struct agx_http *h, struct agx_str in, size_t *ret_used,
                            struct agx_str *ret_part, struct agx_error **err)
{
    if (in.len > h->body_max - h->total)
        return agx_http_fail(h, 413, err, "the body is too long");
    h->total += in.len;
    *ret_part = in;
    *ret_used = in.len;
    return in.len > 0 ? AGX_HTTP_BODY_PART : AGX_HTTP_BODY_MORE;
}

int agx_http_read_body(struct agx_http *h, struct agx_str in, size_t *ret_used,
                       struct agx_str *ret_part, struct agx_error **err)
{
    *ret_used = 0;
    *ret_part = (struct agx_str){ in.ptr, 0 };
    switch (h->body) {
    case AGX_HTTP_CHUNKED:
        return read_chunked(h, in, ret_used, ret_part, err);
    case AGX_HTTP_UNTIL_CLOSE:
        return read_until_close(h, in, ret_used, ret_part, err);
    case AGX_HTTP_LENGTH:
        if (h->left == 0)
            break;
        ret_part->len = AGX_MIN(h->left, in.len);
        *ret_used = ret_part->len;
        h->left -= ret_part->len;
        return ret_part->len > 0 ? AGX_HTTP_BODY_PART : AGX_HTTP_BODY_MORE;
    case AGX_HTTP_NO_BODY:
        break;
    }
    h->body = AGX_HTTP_NO_BODY;
    return AGX_HTTP_BODY_END;
}

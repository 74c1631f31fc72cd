/* field_writer.c: keys, numbers, lengths and bytes. */
#include "wire/field_writer.h"

#include "wire/field.h"

#include "base/banned.h"

#define SECOND_NS INT64_C(1000000000)

/* Bytes of a 64-bit varint, seven bits each. */
enum { VARINT_MAX = 10 };

void agx_field_writer_init(struct agx_field_writer *w, struct agx_buf *out)
{
    *w = (struct agx_field_writer){ out, out->len, false };
}

int agx_field_writer_end(struct agx_field_writer *w)
{
    if (!w->failed)
        return 0;
    w->out->len = w->start;
    return -AGX_RESOURCE_EXHAUSTED;
}

/* Makes room for `n` more bytes; without it nothing is written. */
static bool room(struct agx_field_writer *w, size_t n)
{
    w->failed = w->failed || agx_buf_reserve(w->out, n) < 0;
    return !w->failed;
}

/* The next two functions require a preceding room(). */
static void put_varint(struct agx_buf *out, uint64_t value)
{
    uint8_t *at = out->data + out->len;

    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    out->len = (size_t)(at - out->data);
}

static void put_key(struct agx_buf *out, uint32_t field, enum agx_field_type type)
{
    put_varint(out, (uint64_t)field << 3 | type);
}

void agx_field_write_number(struct agx_field_writer *w, uint32_t field, uint64_t value)
{
    if (value == 0 || !room(w, (size_t)2 * VARINT_MAX))
        return;
    put_key(w->out, field, AGX_FIELD_VARINT);
    put_varint(w->out, value);
}

void agx_field_write_text(struct agx_field_writer *w, uint32_t field, const char *text)
{
    struct agx_str s = agx_str_from(text);

    if (s.len == 0 || !room(w, (size_t)2 * VARINT_MAX + s.len))
        return;
    put_key(w->out, field, AGX_FIELD_BYTES);
    put_varint(w->out, s.len);
    memcpy(w->out->data + w->out->len, s.ptr, s.len);
    w->out->len += s.len;
}

void agx_field_write_time(struct agx_field_writer *w, uint32_t field, int64_t ns)
{
    enum { SECONDS = 1, NANOS = 2 };
    int64_t seconds = ns / SECOND_NS, nanos = ns % SECOND_NS;
    size_t opened = agx_field_write_open(w, field);

    if (nanos < 0) { /* nanos are positive, also before 1970 */
        seconds--;
        nanos += SECOND_NS;
    }
    agx_field_write_number(w, SECONDS, (uint64_t)seconds);
    agx_field_write_number(w, NANOS, (uint64_t)nanos);
    agx_field_write_close(w, opened);
}

/* Reserves one byte for the length, which is enough for most. */
size_t agx_field_write_open(struct agx_field_writer *w, uint32_t field)
{
    if (!room(w, (size_t)VARINT_MAX + 1))
        return 0;
    put_key(w->out, field, AGX_FIELD_BYTES);
    w->out->len++;
    return w->out->len;
}

void agx_field_write_close(struct agx_field_writer *w, size_t opened)
{
    size_t len = w->out->len - opened, more = 0;

    for (size_t rest = len; rest >= 0x80; rest >>= 7)
        more++;
    if (!room(w, more))
        return;
    if (more > 0)
        memmove(w->out->data + opened + more, w->out->data + opened, len);
    w->out->len = opened - 1;
    put_varint(w->out, len);
    w->out->len += len;
}

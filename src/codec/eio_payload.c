/* eio_payload.c: reads and writes polling bodies. */
#include "codec/eio_payload.h"

#include "base/banned.h"
#include "codec/base64.h"

enum { SEPARATOR = 0x1e };

int agx_eio_reader_init(struct agx_eio_reader *rd, struct agx_str body,
                        const struct agx_eio_limits *limits, struct agx_error **err)
{
    if (body.len > limits->bytes_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "Engine.IO payload of %zu bytes is over the limit of %zu", body.len,
                             limits->bytes_max);
    *rd = (struct agx_eio_reader){
        .rest = body.len > 0 ? body : (struct agx_str){ NULL, 0 },
        .packets_max = limits->packets_max,
        .bytes = AGX_BUF_INIT(body.len), /* base64 only shrinks */
    };
    return 0;
}

void agx_eio_reader_done(struct agx_eio_reader *rd)
{
    if (rd)
        agx_buf_done(&rd->bytes);
}

static int read_packet(struct agx_eio_reader *rd, struct agx_str text, struct agx_eio_packet *ret,
                       struct agx_error **err)
{
    int r;

    if (text.len == 0 || text.ptr[0] != 'b')
        return agx_eio_decode_text(text, ret, err);
    agx_buf_clear(&rd->bytes);
    r = agx_base64_decode(&rd->bytes, agx_str_skip(text, 1), err);
    if (r == 0)
        *ret = agx_eio_decode_binary(agx_buf_peek(&rd->bytes));
    return r;
}

int agx_eio_reader_next(struct agx_eio_reader *rd, struct agx_eio_packet *ret,
                        struct agx_error **err)
{
    struct agx_str text;
    int r;

    if (!agx_str_split(&rd->rest, SEPARATOR, &text))
        return 0;
    if (rd->packets >= rd->packets_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "Engine.IO payload has more than %zu packets", rd->packets_max);
    r = read_packet(rd, text, ret, err);
    if (r < 0)
        return agx_error_wrap(err, r, "packet %zu of a payload", rd->packets);
    rd->packets++;
    return 1;
}

void agx_eio_writer_init(struct agx_eio_writer *w, struct agx_buf *out,
                         const struct agx_eio_limits *limits)
{
    *w = (struct agx_eio_writer){ .out = out, .start = out->len, .limits = *limits };
}

/* Bytes of the packet in a body, or SIZE_MAX if the number does not fit into a size_t. */
static size_t packet_size(const struct agx_eio_packet *p)
{
    if (p->data.len > SIZE_MAX / 4)
        return SIZE_MAX;
    return 1 + (p->binary ? (p->data.len + 2) / 3 * 4 : p->data.len);
}

/* Bytes of the packets with a separator between them; SIZE_MAX if that is over `max`. */
static size_t unit_size(const struct agx_eio_packet *unit, size_t n, size_t max)
{
    size_t sum = n > 0 ? n - 1 : 0;

    for (size_t i = 0; i < n; i++) {
        size_t size = packet_size(&unit[i]);

        if (size > max || sum > max - size)
            return SIZE_MAX;
        sum += size;
    }
    return sum;
}

static int write_packet(struct agx_buf *out, const struct agx_eio_packet *p)
{
    int r;

    if (!p->binary)
        return agx_eio_encode(out, p);
    r = agx_buf_push(out, 'b');
    return r < 0 ? r : agx_base64_encode(out, p->data, /* pad= */ true);
}

int agx_eio_writer_add(struct agx_eio_writer *w, const struct agx_eio_packet *unit, size_t n,
                       struct agx_error **err)
{
    size_t size = unit_size(unit, n, w->limits.bytes_max), used = w->out->len - w->start;
    size_t undo = w->out->len;
    int r = 0;

    if (size == SIZE_MAX || n > w->limits.packets_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "%zu packets do not fit into one Engine.IO payload (%zu packets, "
                             "%zu bytes)",
                             n, w->limits.packets_max, w->limits.bytes_max);
    if (n > w->limits.packets_max - w->packets)
        return 0;
    if (used > 0 && (used >= w->limits.bytes_max || size > w->limits.bytes_max - used - 1))
        return 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (w->out->len > w->start)
            r = agx_buf_push(w->out, SEPARATOR);
        if (r == 0)
            r = write_packet(w->out, &unit[i]);
    }
    if (r < 0) {
        w->out->len = undo;
        return agx_error_set(err, (enum agx_code) - r, "no room for an Engine.IO payload");
    }
    w->packets += n;
    return 1;
}

/*
 * mp_writer.c: msgpack-c's packer over an agx_buf.
 *
 * Every value gets a new packer: that is two pointers, and since the compiler sees both, it turns
 * the packer's callback into a direct call.
 */
#include "codec/mp_writer.h"

#include <msgpack.h>

#include "base/banned.h"

static int mp_writer_append(void *user, const char *bytes, size_t len)
{
    struct agx_mp_writer *w = user;

    if (w->status < 0)
        return -1;
    w->status = agx_buf_append(w->out, agx_str_bytes(bytes, len));
    if (w->status < 0)
        w->refused = len;
    return w->status;
}

static inline msgpack_packer packer(struct agx_mp_writer *w)
{
    return (msgpack_packer){ .data = w, .callback = mp_writer_append };
}

/* False if msgpack has no form for that many bytes or elements; the writer has then failed. */
static bool fits(struct agx_mp_writer *w, size_t n)
{
    if (n <= UINT32_MAX)
        return w->status == 0;
    if (w->status == 0) {
        w->status = -AGX_OUT_OF_RANGE;
        w->refused = n;
    }
    return false;
}

void agx_mp_writer_init(struct agx_mp_writer *w, struct agx_buf *out)
{
    *w = (struct agx_mp_writer){ .out = out, .start = out->len };
}

int agx_mp_writer_end(struct agx_mp_writer *w, struct agx_error **err)
{
    size_t written = w->out->len - w->start;

    if (w->status == 0)
        return 0;
    w->out->len = w->start;
    if (w->status == -AGX_OUT_OF_RANGE)
        return agx_error_set(err, AGX_OUT_OF_RANGE,
                             "msgpack: a value of %zu bytes or elements has no msgpack form",
                             w->refused);
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                         "msgpack: no room for %zu more bytes after %zu in a buffer of at most %zu",
                         w->refused, written, w->out->max);
}

void agx_mp_write_nil(struct agx_mp_writer *w)
{
    msgpack_packer pk = packer(w);

    (void)msgpack_pack_nil(&pk);
}

void agx_mp_write_bool(struct agx_mp_writer *w, bool v)
{
    msgpack_packer pk = packer(w);

    (void)(v ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk));
}

void agx_mp_write_int(struct agx_mp_writer *w, int64_t v)
{
    msgpack_packer pk = packer(w);

    (void)msgpack_pack_int64(&pk, v);
}

void agx_mp_write_uint(struct agx_mp_writer *w, uint64_t v)
{
    msgpack_packer pk = packer(w);

    (void)msgpack_pack_uint64(&pk, v);
}

void agx_mp_write_float(struct agx_mp_writer *w, double v)
{
    msgpack_packer pk = packer(w);

    (void)msgpack_pack_double(&pk, v);
}

void agx_mp_write_str(struct agx_mp_writer *w, struct agx_str text)
{
    msgpack_packer pk = packer(w);

    if (!fits(w, text.len))
        return;
    (void)msgpack_pack_str(&pk, text.len);
    (void)mp_writer_append(w, text.ptr, text.len);
}

void agx_mp_write_bin(struct agx_mp_writer *w, struct agx_str bytes)
{
    msgpack_packer pk = packer(w);

    if (!fits(w, bytes.len))
        return;
    (void)msgpack_pack_bin(&pk, bytes.len);
    (void)mp_writer_append(w, bytes.ptr, bytes.len);
}

void agx_mp_write_array(struct agx_mp_writer *w, size_t count)
{
    msgpack_packer pk = packer(w);

    if (fits(w, count))
        (void)msgpack_pack_array(&pk, count);
}

void agx_mp_write_map(struct agx_mp_writer *w, size_t count)
{
    msgpack_packer pk = packer(w);

    if (fits(w, count))
        (void)msgpack_pack_map(&pk, count);
}

void agx_mp_write_ext_header(struct agx_mp_writer *w, int8_t type, size_t len)
{
    msgpack_packer pk = packer(w);

    if (fits(w, len))
        (void)msgpack_pack_ext(&pk, len, type);
}

void agx_mp_write_ext(struct agx_mp_writer *w, int8_t type, struct agx_str payload)
{
    agx_mp_write_ext_header(w, type, payload.len);
    (void)mp_writer_append(w, payload.ptr, payload.len);
}

void agx_mp_write_raw(struct agx_mp_writer *w, struct agx_str bytes)
{
    (void)mp_writer_append(w, bytes.ptr, bytes.len);
}

/*
 * fuzz_eio.c: a text packet that decodes encodes to the same text; a polling body that can be read
 * to its end can be written, and then reads the same; so does an open packet.
 */
#include "codec/eio_open.h"
#include "codec/eio_payload.h"
#include "tests/support/fuzz.h"

static void check_open(struct agx_str json)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(SIZE_MAX / 8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_eio_open o, again;

    if (agx_eio_open_decode(json, &o, &err) < 0) {
        FUZZ_CHECK(err && err->message[0]);
        return;
    }
    FUZZ_CHECK(agx_eio_open_encode(&text, &o) == 0);
    FUZZ_CHECK(agx_eio_open_decode(agx_buf_peek(&text), &again, NULL) == 0);
    FUZZ_CHECK(agx_str_eq(o.sid, again.sid) && o.upgrade_websocket == again.upgrade_websocket &&
               o.ping_interval_ms == again.ping_interval_ms &&
               o.ping_timeout_ms == again.ping_timeout_ms && o.max_payload == again.max_payload);
}

static void check_packet(struct agx_str in)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(SIZE_MAX / 8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_eio_packet p;

    if (agx_eio_decode_text(in, &p, &err) < 0) {
        FUZZ_CHECK(err && err->message[0]);
        return;
    }
    FUZZ_CHECK(agx_eio_encode(&text, &p) == 0);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&text), in));
    if (p.type == AGX_EIO_OPEN)
        check_open(p.data);
}

/* Reads `body` and writes it to `again`. True when it was well formed. */
static bool copy_payload(struct agx_str body, struct agx_buf *again)
{
    const struct agx_eio_limits limits = AGX_EIO_LIMITS_INIT;
    _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd = { .packets = 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_eio_writer w;
    struct agx_eio_packet p;
    int r = agx_eio_reader_init(&rd, body, &limits, &err);

    FUZZ_CHECK(r == 0);
    agx_eio_writer_init(&w, again, &limits);
    while ((r = agx_eio_reader_next(&rd, &p, &err)) > 0)
        FUZZ_CHECK(agx_eio_writer_add(&w, &p, 1, NULL) == 1);
    FUZZ_CHECK(rd.packets <= limits.packets_max && w.packets == rd.packets);
    FUZZ_CHECK(r == 0 || (err && err->message[0]));
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf once = AGX_BUF_INIT(SIZE_MAX / 8),
                                 twice = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_str in = agx_str_bytes(data, size);

    check_packet(in);
    if (copy_payload(in, &once)) {
        /* `once` may differ from `in` in the padding of base64, but no more after that */
        FUZZ_CHECK(copy_payload(agx_buf_peek(&once), &twice));
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&once), agx_buf_peek(&twice)));
    }
    return 0;
}

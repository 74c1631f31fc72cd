/*
 * fuzz_sio.c: the input is a polling body, so that one file holds a header and its attachments.
 * A decoded packet encodes to one that decodes to the same; the fast path for the common binary
 * event agrees with the general path; the assembler returns only complete messages.
 */
#include "codec/eio_payload.h"
#include "codec/sio_assembler.h"
#include "tests/support/fuzz.h"

static const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;

static void check_same(const struct agx_sio_packet *a, const struct agx_sio_packet *b)
{
    FUZZ_CHECK(a->type == b->type && a->has_id == b->has_id && a->id == b->id);
    FUZZ_CHECK(a->attachments == b->attachments);
    FUZZ_CHECK(agx_str_eq(a->nsp, b->nsp) && agx_str_eq(a->data, b->data));
}

static void check_header(struct agx_str text)
{
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(SIZE_MAX / 8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_sio_packet p, q;
    struct agx_str name;
    bool common = agx_sio_decode_binary_event(text, &name);

    if (agx_sio_decode(text, &limits, &p, &err) < 0) {
        FUZZ_CHECK(err && err->message[0] && !common);
        return;
    }
    FUZZ_CHECK(agx_sio_encode(&again, &p) == 0);
    FUZZ_CHECK(agx_sio_decode(agx_buf_peek(&again), &limits, &q, NULL) == 0);
    check_same(&p, &q);
    if (common) {
        FUZZ_CHECK(p.type == AGX_SIO_BINARY_EVENT && p.attachments == 1 && !p.has_id);
        agx_buf_clear(&again);
        FUZZ_CHECK(agx_sio_encode_binary_event(&again, name) == 0);
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&again), text));
    }
}

static void check_message(const struct agx_sio_message *m)
{
    _cleanup_buf_ struct agx_buf copy = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_sio_args it;
    struct agx_sio_arg arg;
    size_t whole = 0, args = 0;

    for (size_t i = 0; i < m->packet.attachments; i++) {
        FUZZ_CHECK(m->attachments[i].placed);
        /* the copy reads every byte, so that ASan sees a view that is void */
        FUZZ_CHECK(agx_buf_append(&copy, m->attachments[i].bytes) == 0);
    }
    agx_sio_args_init(&it, m);
    for (; agx_sio_args_next(&it, &arg); args++) {
        FUZZ_CHECK(arg.json.len > 0);
        whole += arg.attachment != NULL;
    }
    if (agx_sio_is_binary(m->packet.type))
        FUZZ_CHECK(whole <= m->packet.attachments);
    FUZZ_CHECK((m->sole != NULL) == (args == 1 && whole == 1 && m->packet.attachments == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct agx_eio_limits body = { .packets_max = 100, .bytes_max = SIZE_MAX / 8 };
    _cleanup_(agx_sio_assembler_done) struct agx_sio_assembler a;
    _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd;
    struct agx_sio_message m;
    struct agx_eio_packet p;

    agx_sio_assembler_init(&a, &limits);
    FUZZ_CHECK(agx_eio_reader_init(&rd, agx_str_bytes(data, size), &body, NULL) == 0);
    while (agx_eio_reader_next(&rd, &p, NULL) > 0) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int r;

        if (p.type != AGX_EIO_MESSAGE)
            continue;
        if (!p.binary)
            check_header(p.data);
        r = agx_sio_assembler_feed(&a, &p, &m, &err);
        FUZZ_CHECK(r >= 0 || (err && err->message[0]));
        if (r > 0)
            check_message(&m);
    }
    return 0;
}

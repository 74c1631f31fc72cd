/*
 * codec_bench.c: measures how much work each codec does per second, in one thread.
 *
 *     codec_bench NAME SECONDS    prints the rate of one kind of work
 *     codec_bench --bytes NAME    writes the bytes that the work reads or makes; the caller
 *                                 compares them with those of the peer's side (codec_peer.py)
 *
 * The message is a unary call as a client sends it: tgt.add(1, b=2).
 */
#include "base/buf.h"
#include "codec/eio.h"
#include "codec/mp_fields.h"
#include "codec/mp_writer.h"
#include "codec/sio.h"
#include "codec/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALL_ID "1cd4a3f05b6e4d7f8a9b0c1d2e3f4a5b"
#define PICKLE                                                                                     \
    "\x80\x04\x95\x0f\0\0\0\0\0\0\0\x8c\x03tgt\x94\x8c\x03"                                        \
    "add\x94\x93\x94."
#define HEADER "451-[\"unary\",{\"_placeholder\":true,\"num\":0}]"

enum {
    BATCH = 64,            /* pieces of work between two reads of the clock */
    UNMASK_SIZE = 1 << 20, /* so that pieces per second are MiB/s */
};

struct bench {
    struct agx_buf in, out;
    struct agx_mp_limits limits;
};

struct work {
    const char *name;
    int (*prepare)(struct bench *b); /* fills b->in, or b->out where work makes bytes */
    int (*once)(struct bench *b);    /* one piece of work: 0, or negative */
};

/* Builds the call as the server does for its worker: it copies the arguments as raw bytes. */
static int write_call(struct agx_buf *out)
{
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, out);
    agx_mp_write_map(&w, 6);
    agx_mp_write_str(&w, AGX_STR("callable_payload"));
    agx_mp_write_bin(&w, AGX_STR(PICKLE));
    agx_mp_write_str(&w, AGX_STR("display_name"));
    agx_mp_write_str(&w, AGX_STR("tgt::add"));
    agx_mp_write_str(&w, AGX_STR("shape"));
    agx_mp_write_str(&w, AGX_STR("unary"));
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, AGX_STR(CALL_ID));
    agx_mp_write_str(&w, AGX_STR("args"));
    agx_mp_write_raw(&w, AGX_STR("\x91\x01"));
    agx_mp_write_str(&w, AGX_STR("kwargs"));
    agx_mp_write_raw(&w, AGX_STR("\x81\xa1"
                                 "b\x02"));
    return agx_mp_writer_end(&w, NULL);
}

static int encode_call(struct bench *b)
{
    agx_buf_clear(&b->out);
    return write_call(&b->out);
}

static int prepare_call(struct bench *b)
{
    return write_call(&b->in);
}

/* Reads the call as the server does: it finds and checks every field, and decodes no argument. */
static int decode_call(struct bench *b)
{
    struct agx_mp_field fields[] = {
        { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
        { AGX_STR("callable_payload"), AGX_MP_BIT(AGX_MP_BIN) },
        { AGX_STR("display_name"), AGX_MP_BIT(AGX_MP_STR) },
        { AGX_STR("shape"), AGX_MP_BIT(AGX_MP_STR) },
        { AGX_STR("args"), AGX_MP_BIT(AGX_MP_ARRAY) },
        { AGX_STR("kwargs"), AGX_MP_BIT(AGX_MP_MAP) },
    };
    int r =
        agx_mp_read_fields(agx_buf_peek(&b->in), &b->limits, fields, AGX_ARRAY_LEN(fields), NULL);

    return r < 0 ? r : (fields[5].raw.len == 4 ? 0 : -AGX_INTERNAL);
}

static int encode_event(struct bench *b)
{
    agx_buf_clear(&b->out);
    if (agx_buf_push(&b->out, '0' + AGX_EIO_MESSAGE) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return agx_sio_encode_binary_event(&b->out, AGX_STR("unary"));
}

static int prepare_event(struct bench *b)
{
    return agx_buf_append(&b->in, AGX_STR(HEADER));
}

static int decode_event(struct bench *b)
{
    struct agx_eio_packet packet;
    struct agx_str name;
    int r = agx_eio_decode_text(agx_buf_peek(&b->in), &packet, NULL);

    if (r < 0)
        return r;
    return agx_sio_decode_binary_event(packet.data, &name) && name.len == 5 ? 0 : -AGX_INTERNAL;
}

static int prepare_unmask(struct bench *b)
{
    int r = agx_buf_reserve(&b->in, UNMASK_SIZE);

    if (r < 0)
        return r;
    memset(b->in.data, 'x', UNMASK_SIZE);
    b->in.len = UNMASK_SIZE;
    return 0;
}

static int unmask(struct bench *b)
{
    static const uint8_t key[AGX_WS_KEY_SIZE] = { 0x12, 0x34, 0x56, 0x78 };

    agx_ws_mask(b->in.data, b->in.len, key, 0);
    return 0;
}

static const struct work works[] = {
    { "msgpack_decode", prepare_call, decode_call },
    { "msgpack_encode", encode_call, encode_call },
    { "sio_event_decode", prepare_event, decode_event },
    { "sio_event_encode", encode_event, encode_event },
    { "ws_unmask", prepare_unmask, unmask },
};

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Pieces of work per second, over at least `seconds`; negative if the work fails. */
static double rate(const struct work *w, struct bench *b, double seconds)
{
    double start = now(), took = 0, pieces = 0;

    while (took < seconds) {
        for (int i = 0; i < BATCH; i++) {
            if (w->once(b) < 0)
                return -1;
        }
        pieces += BATCH;
        took = now() - start;
    }
    return pieces / took;
}

static int show_bytes(const struct bench *b)
{
    struct agx_str bytes = agx_buf_peek(b->in.len > 0 ? &b->in : &b->out);

    return fwrite(bytes.ptr, 1, bytes.len, stdout) == bytes.len ? 0 : 1;
}

static void bench_done(struct bench *b)
{
    agx_buf_done(&b->in);
    agx_buf_done(&b->out);
}

/* Without `seconds` it writes the bytes. */
static int run_work(const struct work *w, const char *seconds)
{
    _cleanup_(bench_done) struct bench b = { .in = AGX_BUF_INIT(2 * UNMASK_SIZE),
                                             .out = AGX_BUF_INIT(4096),
                                             .limits = AGX_MP_LIMITS_INIT };
    int r = w->prepare(&b);
    double pieces = -1;

    if (r == 0 && !seconds)
        return show_bytes(&b);
    if (r == 0)
        pieces = rate(w, &b, strtod(seconds, NULL));
    if (pieces < 0) {
        fprintf(stderr, "codec_bench: the work '%s' failed\n", w->name);
        return 1;
    }
    printf("%.6g\n", pieces);
    return 0;
}

int main(int argc, char **argv)
{
    bool bytes = argc == 3 && strcmp(argv[1], "--bytes") == 0;
    const char *name = argc == 3 ? argv[bytes ? 2 : 1] : "";

    for (size_t i = 0; i < AGX_ARRAY_LEN(works); i++) {
        if (strcmp(works[i].name, name) == 0)
            return run_work(&works[i], bytes ? NULL : argv[2]);
    }
    fprintf(stderr, "usage: codec_bench NAME SECONDS | --bytes NAME; NAME is one of:");
    for (size_t i = 0; i < AGX_ARRAY_LEN(works); i++)
        fprintf(stderr, " %s", works[i].name);
    fprintf(stderr, "\n");
    return 2;
}

/*
 * fuzz_initproto.c: a decoded message encodes to its original bytes, and reading its lists stays
 * within them; a frame after any bytes and padding is found.
 */
#include "codec/initproto_frame.h"
#include "tests/support/fuzz.h"

static const struct agx_siphash_key key = { 3, 5 };

static void check_packet(struct agx_str in)
{
    static uint8_t again[1 << 16];
    struct agx_init_rlimit limit;
    struct agx_init_msg m;
    const char *word;

    if (in.len > sizeof(again) || agx_init_decode(in, &m, NULL) < 0)
        return;
    FUZZ_CHECK(agx_init_encode(&m, again, sizeof(again)) == in.len);
    FUZZ_CHECK(memcmp(again, in.ptr, in.len) == 0);
    while ((word = agx_init_list_next(&m.argv)))
        FUZZ_CHECK(word > in.ptr && word + strlen(word) < in.ptr + in.len);
    FUZZ_CHECK(m.argv.bytes.len == 0);
    while ((word = agx_init_list_next(&m.env)))
        FUZZ_CHECK(strchr(word, '=') > word);
    while (agx_init_rlimit_next(&m.rlimits, &limit))
        FUZZ_CHECK(m.rlimits.count < AGX_INIT_RLIMITS_MAX);
}

static void check_frame(struct agx_str noise)
{
    static uint8_t stream[3 * AGX_INIT_FRAME_MAX];
    const struct agx_str packet = AGX_STR("packet");
    const uint8_t *at_stream = stream;
    struct agx_init_frame f;
    struct agx_str data;
    size_t at = 0, len, used;

    noise.len = AGX_MIN(noise.len, AGX_INIT_FRAME_MAX);
    len = noise.len + AGX_INIT_FRAME_PAD;
    if (noise.len > 0)
        memcpy(stream, noise.ptr, noise.len);
    memset(stream + noise.len, 0, AGX_INIT_FRAME_PAD);
    agx_init_frame_seal(&key, AGX_INIT_FROM_DAEMON, packet, &at, stream + len, &data);
    len += AGX_INIT_FRAME_HEAD;
    memcpy(stream + len, data.ptr, data.len);
    len += data.len;
    /* The noise may hold frames of its own: the fuzzer finds the key. None of them reaches ours. */
    do {
        FUZZ_CHECK(agx_init_frame_next(&key, AGX_INIT_FROM_DAEMON, agx_str_bytes(at_stream, len),
                                       &f, &used));
        FUZZ_CHECK(used > 0 && used <= len);
        at_stream += used;
        len -= used;
    } while (len > 0);
    FUZZ_CHECK(agx_str_eq(f.data, packet) && f.first && f.last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_packet(agx_str_bytes(data, size));
    check_frame(agx_str_bytes(data, size));
    return 0;
}

/*
 * fuzz_mp_reader.c: skipping a value and reading its tokens accept the same bytes. msgpack-c
 * accepts the same values with the same length, and refuses what we call malformed. A value that
 * is written again reads as itself, and the next write gives the same bytes.
 */
#include "codec/mp_fields.h"
#include "tests/support/fuzz.h"
#include "tests/support/mp.h"

enum { THEIR_DEPTH = 32 };

static const struct agx_mp_limits limits = {
    .size = SIZE_MAX, .length = 4096, .count = 4096, .depth = THEIR_DEPTH
};

/* Reads `in` with msgpack-c; -1, or the length of its first value. */
static ssize_t their_length(struct agx_str in, struct agx_mp_reader ours, bool compare)
{
    msgpack_unpacked u;
    size_t off = 0;
    bool ok;

    msgpack_unpacked_init(&u);
    ok = msgpack_unpack_next(&u, in.ptr, in.len, &off) == MSGPACK_UNPACK_SUCCESS;
    if (ok && compare)
        FUZZ_CHECK(agx_test_mp_same(&ours, &u.data));
    msgpack_unpacked_destroy(&u);
    return ok ? (ssize_t)off : -1;
}

/* The bytes of one value, written again from its tokens. */
static void copy(struct agx_str raw, struct agx_buf *out)
{
    struct agx_mp_reader r;
    struct agx_mp_writer w;

    FUZZ_CHECK(agx_mp_reader_init(&r, raw, &limits, NULL) == 0);
    agx_mp_writer_init(&w, out);
    FUZZ_CHECK(agx_test_mp_copy(&r, &w, NULL) == 0);
    FUZZ_CHECK(agx_mp_at_end(&r));
    FUZZ_CHECK(agx_mp_writer_end(&w, NULL) == 0);
}

static void check_accepted(struct agx_str in, struct agx_mp_reader start, struct agx_str raw)
{
    _cleanup_buf_ struct agx_buf once = AGX_BUF_INIT(SIZE_MAX / 8),
                                 twice = AGX_BUF_INIT(SIZE_MAX / 8);

    FUZZ_CHECK(their_length(in, start, true) == (ssize_t)raw.len);
    copy(raw, &once);
    copy(agx_buf_peek(&once), &twice);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&once), agx_buf_peek(&twice)));
}

static void check_refused(struct agx_str in, struct agx_mp_reader start,
                          const struct agx_error *err)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_mp_reader r = start;
    struct agx_mp_writer w;

    FUZZ_CHECK(err && strncmp(err->message, "msgpack: at offset ", 19) == 0);
    agx_mp_writer_init(&w, &out);
    FUZZ_CHECK(agx_test_mp_copy(&r, &w, NULL) == -(int)err->code);
    /* msgpack-c allocates what a container announces before it looks for the bytes: such input is
     * not for it. */
    if (err->code == AGX_INVALID_ARGUMENT && !strstr(err->message, "elements in") &&
        !strstr(err->message, "pairs in"))
        FUZZ_CHECK(their_length(in, start, false) < 0);
}

static void check_fields(struct agx_str in)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_field f[] = { { AGX_STR("a"), AGX_MP_BIT(AGX_MP_STR) },
                                { AGX_STR("b"), AGX_MP_ANY } };
    struct agx_mp_reader r;
    int k = agx_mp_read_fields(in, &limits, f, AGX_ARRAY_LEN(f), &err);

    FUZZ_CHECK((k == 0) == (err == NULL));
    FUZZ_CHECK(agx_mp_reader_init(&r, in, &limits, NULL) == 0);
    FUZZ_CHECK(k < 0 || (agx_mp_skip(&r, NULL) == 0 && agx_mp_at_end(&r)));
    for (size_t i = 0; i < AGX_ARRAY_LEN(f); i++)
        FUZZ_CHECK(!f[i].present || (f[i].raw.ptr > in.ptr && f[i].raw.len > 0 &&
                                     f[i].raw.ptr + f[i].raw.len <= in.ptr + in.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str in = agx_str_bytes(data, size), raw;
    struct agx_mp_reader r, start;

    FUZZ_CHECK(agx_mp_reader_init(&r, in, &limits, NULL) == 0);
    start = r;
    if (agx_mp_take_raw(&r, &raw, &err) == 0)
        check_accepted(in, start, raw);
    else
        check_refused(in, start, err);
    check_fields(in);
    return 0;
}

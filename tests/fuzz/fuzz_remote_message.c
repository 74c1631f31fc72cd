/*
 * fuzz_remote_message.c: for any payload of an event, every view lies inside it, raw values are
 * complete values, and the lists of resume:done end.
 */
#include "codec/remote_message.h"
#include "tests/support/fuzz.h"

static void check_view(struct agx_str in, struct agx_str view)
{
    if (view.len > 0)
        FUZZ_CHECK(view.ptr >= in.ptr && view.ptr + view.len <= in.ptr + in.len);
}

static void check_raw(struct agx_str in, struct agx_str raw)
{
    static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_reader r;

    check_view(in, raw);
    if (raw.len == 0)
        return;
    FUZZ_CHECK(agx_mp_reader_init(&r, raw, &limits, NULL) == 0);
    FUZZ_CHECK(agx_mp_skip(&r, NULL) == 0 && agx_mp_at_end(&r));
}

static void check_resume(struct agx_str in)
{
    struct agx_resume_done d;
    struct agx_str id;
    uint64_t seq, n = 0;

    if (agx_resume_done_read(in, &d, NULL) < 0)
        return;
    while (agx_resume_done_known(&d, &id, &seq, NULL) > 0) {
        check_view(in, id);
        FUZZ_CHECK(++n <= in.len);
    }
    while (agx_resume_done_unknown(&d, &id, NULL) > 0) {
        check_view(in, id);
        FUZZ_CHECK(++n <= in.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str in = agx_str_bytes(data, size);
    struct agx_remote_message m;

    check_resume(in);
    if (agx_remote_message_read(in, &m, NULL) < 0)
        return 0;
    check_view(in, m.call_id);
    check_raw(in, m.value);
    check_raw(in, m.error);
    FUZZ_CHECK(m.has_totals || (m.n == 0 && m.bytes == 0));
    return 0;
}

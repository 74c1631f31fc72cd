/*
 * fuzz_worker_frame.c: for any frame, every view lies inside it, raw values are complete values,
 * and the same bytes give the same answer.
 */
#include "codec/mp_reader.h"
#include "codec/worker_frame.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str in = agx_str_bytes(data, size);
    struct agx_worker_frame f, again;

    if (agx_worker_frame_parse(in, &f, NULL) < 0)
        return 0;
    FUZZ_CHECK(agx_worker_frame_parse(in, &again, NULL) == 0);
    FUZZ_CHECK(f.type == again.type && f.id == again.id && f.bad == again.bad);
    FUZZ_CHECK(f.kind <= AGX_REMOTE_BIDI && f.shape <= AGX_REMOTE_BIDI);
    check_view(in, f.callable);
    check_view(in, f.display_name);
    check_raw(in, f.callable_raw);
    check_raw(in, f.args);
    check_raw(in, f.kwargs);
    check_raw(in, f.item);
    if (f.type == AGX_WF_CALL && !f.bad)
        FUZZ_CHECK(f.callable_raw.len > 0);
    return 0;
}

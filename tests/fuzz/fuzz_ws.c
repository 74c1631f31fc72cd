/*
 * fuzz_ws.c: the events and the verdict do not depend on the chunks, or on whether bytes are copied
 * through the reader or received straight into its buffer. The first byte chooses the role and the
 * chunks.
 */
#include "codec/ws.h"
#include "tests/support/fuzz.h"

enum { MESSAGE_MAX = 1 << 16 };

/* Events as text that can be compared. */
struct story {
    struct agx_buf text;
    unsigned fault;
};

static void tell(struct story *s, const struct agx_ws_event *e)
{
    FUZZ_CHECK(e->data.len <= MESSAGE_MAX);
    FUZZ_CHECK(agx_buf_printf(&s->text, "%d %u %zu ", e->kind, e->code, e->data.len) == 0);
    FUZZ_CHECK(agx_buf_append(&s->text, e->data) == 0);
}

/* Chunks of 1 .. step bytes; with `direct`, those bytes that have a room go there. */
static void run(struct story *s, enum agx_ws_role role, const uint8_t *data, size_t size,
                size_t step, bool direct)
{
    struct agx_buf copy = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_ws_event e;
    struct agx_ws ws;
    size_t at = 0;

    agx_ws_init(&ws, role, MESSAGE_MAX);
    while (at < size && !s->fault) {
        struct agx_error *err = NULL;
        uint8_t *room = NULL, *p;
        size_t n = AGX_MIN(step, size - at), want = 0;
        int r;

        if (direct)
            agx_ws_want(&ws, &room, &want);
        if (want > 0) {
            n = AGX_MIN(want, n);
            memcpy(room, data + at, n);
            agx_ws_filled(&ws, n);
            at += n;
            n = 0;
        }
        agx_buf_clear(&copy);
        FUZZ_CHECK(agx_buf_reserve(&copy, 1) == 0);
        FUZZ_CHECK(agx_buf_append(&copy, agx_str_bytes(data + at, n)) == 0);
        at += n;
        p = copy.data;
        while ((r = agx_ws_read(&ws, &p, &n, &e, &err)) > 0)
            tell(s, &e);
        FUZZ_CHECK((r < 0) == (ws.fault != 0) && (r < 0) == (err != NULL));
        s->fault = ws.fault;
        err = agx_error_free(err);
    }
    agx_ws_done(&ws);
    agx_buf_done(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct story whole = { .text = AGX_BUF_INIT(SIZE_MAX / 8) }, pieces = whole, direct = whole;
    enum agx_ws_role role;

    if (size < 1)
        return 0;
    role = data[0] & 1 ? AGX_WS_CLIENT : AGX_WS_SERVER;
    run(&whole, role, data + 1, size - 1, size, false);
    run(&pieces, role, data + 1, size - 1, (data[0] >> 1) % 32 + 1, false);
    run(&direct, role, data + 1, size - 1, (data[0] >> 1) % 32 + 1, true);
    FUZZ_CHECK(whole.fault == pieces.fault && whole.fault == direct.fault);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole.text), agx_buf_peek(&pieces.text)));
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole.text), agx_buf_peek(&direct.text)));
    agx_buf_done(&whole.text);
    agx_buf_done(&pieces.text);
    agx_buf_done(&direct.text);
    return 0;
}

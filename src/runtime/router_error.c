/* router_error.c: errors that the server makes, as clients get them. */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "base/utf8.h"

/* What quotes others, or was cut to fit, may be no text: a client could not decode the answer. */
static void write_text(struct agx_mp_writer *w, struct agx_str s)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(3 * s.len);

    if (agx_utf8_valid(s)) {
        agx_mp_write_str(w, s);
        return;
    }
    while (s.len > 0) {
        size_t n = agx_utf8_sequence(s);
        struct agx_str c = n > 0 ? agx_str_bytes(s.ptr, n) : AGX_STR("\xef\xbf\xbd");

        if (agx_buf_append(&text, c) < 0)
            break;
        s = agx_str_skip(s, n > 0 ? n : 1);
    }
    agx_mp_write_str(w, agx_buf_peek(&text));
}

void agx_router_write_error(struct agx_mp_writer *w, struct agx_str type, const char *message,
                            int returncode)
{
    agx_mp_write_map(w, returncode == INT_MIN ? 4 : 5);
    agx_mp_write_str(w, AGX_STR("type"));
    agx_mp_write_str(w, type);
    agx_mp_write_str(w, AGX_STR("message"));
    write_text(w, agx_str_from(message));
    agx_mp_write_str(w, AGX_STR("traceback"));
    agx_mp_write_nil(w);
    agx_mp_write_str(w, AGX_STR("cancelled"));
    agx_mp_write_bool(w, agx_str_eq(type, AGX_STR("Cancelled")));
    if (returncode != INT_MIN) {
        agx_mp_write_str(w, AGX_STR("returncode"));
        agx_mp_write_int(w, returncode);
    }
}

void agx_router_refuse(struct agx_router *rt, struct agx_client *c, enum agx_remote_kind kind,
                       struct agx_str call_id, struct agx_str type, const char *message)
{
    struct agx_mp_writer w;
    struct agx_str payload;

    agx_buf_clear(&rt->scratch);
    agx_mp_writer_init(&w, &rt->scratch);
    agx_mp_write_map(&w, 2);
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, call_id);
    agx_mp_write_str(&w, AGX_STR("error"));
    agx_router_write_error(&w, type, message, INT_MIN);
    if (agx_mp_writer_end(&w, NULL) < 0 || !c->conn)
        return;
    payload = agx_buf_peek(&rt->scratch);
    rt->io.emit(rt->user, c->conn, agx_remote_error_event(kind), &payload, 1);
}

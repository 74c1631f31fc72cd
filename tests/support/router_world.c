/* router_world.c: see router_world.h. */
#include "tests/support/router_world.h"

#include "codec/credit.h"

int conn_one, conn_two;

static void on_emit(void *user, void *conn, enum agx_remote_event ev, const struct agx_str *parts,
                    size_t n)
{
    struct router_world *w = user;
    struct router_event *s = &w->seen[w->n_seen++];
    size_t len = 0;

    ASSERT_TRUE(w->n_seen < ROUTER_EVENTS);
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    *s = (struct router_event){ conn, ev, malloc(len + 1), 0 };
    for (size_t i = 0; i < n; i++) {
        memcpy(s->payload + s->len, parts[i].ptr, parts[i].len);
        s->len += parts[i].len;
    }
}

static size_t on_queued(void *user, void *conn)
{
    (void)conn;
    return ((struct router_world *)user)->queued;
}

static struct agx_buf *on_lane(void *user, enum agx_remote_lane lane)
{
    return &((struct router_world *)user)->lanes[lane];
}

void router_world_init(struct router_world *w, const struct agx_router_config *config)
{
    static const struct agx_router_io io = { on_emit, on_queued, on_lane };
    struct agx_router_config defaults = AGX_ROUTER_CONFIG_INIT;

    *w = (struct router_world){ .lanes = { AGX_BUF_INIT(1 << 20), AGX_BUF_INIT(1 << 20) } };
    w->rt = agx_router_new(config ? config : &defaults, &io, w);
}

void router_world_done(struct router_world *w)
{
    agx_router_free(w->rt);
    for (size_t i = 0; i < w->n_seen; i++)
        free(w->seen[i].payload);
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_done(&w->lanes[i]);
}

struct agx_client *router_join(struct router_world *w, bool proto1, void *conn)
{
    struct agx_client_hello hello = { .proto1 = proto1 };
    void *old;
    bool resumed;

    return agx_router_connect(w->rt, &hello, conn, &resumed, &old);
}

bool router_rejoin(struct router_world *w, const char *session, void *conn, struct agx_client **ret)
{
    struct agx_client_hello hello = { .proto1 = true, .session = agx_str_from(session) };
    void *old;
    bool resumed;

    *ret = agx_router_connect(w->rt, &hello, conn, &resumed, &old);
    return resumed;
}

void router_say(struct router_world *w, struct agx_client *c, const char *event,
                const char *call_id, const char *key1, uint64_t value1, const char *key2,
                uint64_t value2)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1 + (key1 != NULL) + (key2 != NULL));
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(call_id));
    if (key1) {
        agx_mp_write_str(&m, agx_str_from(key1));
        agx_mp_write_uint(&m, value1);
    }
    if (key2) {
        agx_mp_write_str(&m, agx_str_from(key2));
        agx_mp_write_uint(&m, value2);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

void router_call(struct router_world *w, struct agx_client *c, const char *event,
                 const char *call_id, uint64_t timeout_ms)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, timeout_ms > 0 ? 3 : 2);
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(call_id));
    agx_mp_write_str(&m, AGX_STR("target"));
    agx_mp_write_str(&m, AGX_STR("mod::fn"));
    if (timeout_ms > 0) {
        agx_mp_write_str(&m, AGX_STR("timeout_ms"));
        agx_mp_write_uint(&m, timeout_ms);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

void router_say_calls(struct router_world *w, struct agx_client *c, const char *event,
                      const char *call_id, uint64_t seq)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    bool resume = strcmp(event, "resume") == 0;
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1);
    agx_mp_write_str(&m, AGX_STR("calls"));
    agx_mp_write_array(&m, call_id == NULL ? 0 : resume ? 1 : 2);
    if (call_id) {
        if (resume)
            agx_mp_write_array(&m, 4);
        agx_mp_write_str(&m, agx_str_from(call_id));
        agx_mp_write_uint(&m, seq);
        if (resume) {
            agx_mp_write_uint(&m, AGX_CREDIT_ITEMS);
            agx_mp_write_uint(&m, AGX_CREDIT_BYTES);
        }
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

int router_frame2(struct router_world *w, const char *type, uint64_t id, const char *key1,
                  uint64_t value1, const char *key2, uint64_t value2)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 2 + (key1 != NULL) + (key2 != NULL));
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, agx_str_from(type));
    agx_mp_write_str(&m, AGX_STR("id"));
    agx_mp_write_uint(&m, id);
    if (key1) {
        agx_mp_write_str(&m, agx_str_from(key1));
        agx_mp_write_uint(&m, value1);
    }
    if (key2) {
        agx_mp_write_str(&m, agx_str_from(key2));
        agx_mp_write_uint(&m, value2);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    return agx_router_frame(w->rt, agx_buf_peek(&b), NULL);
}

int router_frame(struct router_world *w, const char *type, uint64_t id, const char *key,
                 uint64_t value)
{
    return router_frame2(w, type, id, key, value, NULL, 0);
}

size_t router_frames(struct router_world *w, enum agx_remote_lane lane, const char *type,
                     const char *key, uint64_t *ret)
{
    struct agx_str in = agx_buf_peek(&w->lanes[lane]), got;
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_frame_decoder d;
    size_t n = 0;

    agx_frame_decoder_init(&d, AGX_MESSAGE_MAX);
    while (agx_frame_decoder_next(&d, &in, &got, NULL) > 0) {
        struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) },
                                    { agx_str_from(key ? key : "id"), AGX_MP_ANY } };

        ASSERT_OK(agx_mp_read_fields(got, &limits, f, 2, NULL));
        if (!agx_str_eq(f[0].value.bytes, agx_str_from(type)))
            continue;
        n++;
        if (ret)
            *ret = f[1].value.u;
    }
    agx_frame_decoder_done(&d);
    return n;
}

const struct router_event *router_last(struct router_world *w)
{
    ASSERT_TRUE(w->n_seen > 0);
    return &w->seen[w->n_seen - 1];
}

struct agx_mp_field router_field(struct router_world *w, const char *key)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f = { agx_str_from(key), AGX_MP_ANY };

    ASSERT_OK(agx_mp_read_fields(agx_str_bytes(router_last(w)->payload, router_last(w)->len),
                                 &limits, &f, 1, NULL));
    return f;
}

void router_assert_error(struct router_world *w, enum agx_remote_event ev, const char *call_id,
                         const char *type)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_ANY } };

    ASSERT_INT(ev, router_last(w)->ev);
    ASSERT_STR(agx_str_from(call_id), router_field(w, "call_id").value.bytes);
    ASSERT_OK(agx_mp_read_fields(router_field(w, "error").raw, &limits, f, 1, NULL));
    ASSERT_STR(agx_str_from(type), f[0].value.bytes);
}

/* worker_frame.c: frames from agentix-server to a worker, read by a table of fields. */
#include "codec/worker_frame.h"

#include "codec/mp_reader.h"

#include "base/banned.h"

enum field {
    F_TYPE,
    F_ID,
    F_KIND,
    F_FLAGS,
    F_MAX,
    F_CALLABLE_PAYLOAD,
    F_TARGET,
    F_DISPLAY_NAME,
    F_SHAPE,
    F_CALL_ID,
    F_TIMEOUT_MS,
    F_ARGS,
    F_KWARGS,
    F_ITEM,
    F_N,
    F_BYTES,
    F_GRACE_MS,
    F_COUNT,
};

#define BIT(type) (1u << (type))
#define TEXT (BIT(AGX_MP_STR))
#define UINT (BIT(AGX_MP_UINT))
#define ANY (~0u)

static const struct {
    struct agx_str name;
    unsigned types;
    const char *bad;
} fields[F_COUNT] = {
    [F_TYPE] = { AGX_STR("type"), TEXT, "'type' is not text" },
    [F_ID] = { AGX_STR("id"), UINT, "'id' is not an unsigned integer" },
    [F_KIND] = { AGX_STR("kind"), TEXT, "'kind' is not text" },
    [F_FLAGS] = { AGX_STR("flags"), UINT, "'flags' is not an unsigned integer" },
    [F_MAX] = { AGX_STR("max"), UINT, "'max' is not an unsigned integer" },
    [F_CALLABLE_PAYLOAD] = { AGX_STR("callable_payload"), TEXT | BIT(AGX_MP_BIN),
                             "'callable_payload' is neither bytes nor text" },
    [F_TARGET] = { AGX_STR("target"), TEXT, "'target' is not text" },
    [F_DISPLAY_NAME] = { AGX_STR("display_name"), TEXT, "'display_name' is not text" },
    [F_SHAPE] = { AGX_STR("shape"), TEXT, "'shape' is not text" },
    [F_CALL_ID] = { AGX_STR("call_id"), TEXT, "'call_id' is not text" },
    [F_TIMEOUT_MS] = { AGX_STR("timeout_ms"), UINT | BIT(AGX_MP_NIL),
                       "'timeout_ms' is not an unsigned integer" },
    [F_ARGS] = { AGX_STR("args"), BIT(AGX_MP_ARRAY) | BIT(AGX_MP_NIL), "'args' is not an array" },
    [F_KWARGS] = { AGX_STR("kwargs"), BIT(AGX_MP_MAP) | BIT(AGX_MP_NIL), "'kwargs' is not a map" },
    [F_ITEM] = { AGX_STR("item"), ANY, NULL },
    [F_N] = { AGX_STR("n"), UINT, "'n' is not an unsigned integer" },
    [F_BYTES] = { AGX_STR("bytes"), UINT, "'bytes' is not an unsigned integer" },
    [F_GRACE_MS] = { AGX_STR("grace_ms"), UINT, "'grace_ms' is not an unsigned integer" },
};

/* Searches from where the last field was found: peers send fields in the table's order. */
static enum field find_field(struct agx_str name, unsigned from)
{
    for (unsigned k = 0, i = from; k < F_COUNT; k++, i++) {
        if (i >= F_COUNT)
            i -= F_COUNT;
        if (agx_str_eq(fields[i].name, name))
            return (enum field)i;
    }
    return F_COUNT;
}

static enum agx_worker_frame_type find_type(struct agx_str name)
{
    static const struct {
        struct agx_str name;
        enum agx_worker_frame_type type;
    } types[] = {
        { AGX_STR("call"), AGX_WF_CALL },
        { AGX_STR("bidi_in"), AGX_WF_BIDI_IN },
        { AGX_STR("bidi_end_in"), AGX_WF_BIDI_END_IN },
        { AGX_STR("credit"), AGX_WF_CREDIT },
        { AGX_STR("cancel"), AGX_WF_CANCEL },
        { AGX_STR("shutdown"), AGX_WF_SHUTDOWN },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(types); i++) {
        if (agx_str_eq(types[i].name, name))
            return types[i].type;
    }
    return AGX_WF_UNKNOWN;
}

static void store_name(struct agx_worker_frame *f, enum field field, struct agx_str text)
{
    enum agx_remote_kind kind;

    if (field == F_TYPE)
        f->type = find_type(text);
    else if (field == F_DISPLAY_NAME)
        f->display_name = text;
    else if (field == F_CALL_ID)
        f->call_id = text;
    else if (!agx_remote_kind_find(text, &kind))
        f->bad = field == F_KIND ? "unknown kind" : "unknown shape";
    else if (field == F_KIND)
        f->kind = kind;
    else
        f->shape = kind;
}

static void store_number(struct agx_worker_frame *f, enum field field, uint64_t u)
{
    switch (field) {
    case F_ID:
        f->id = u;
        break;
    case F_FLAGS:
        f->flags = (unsigned)u;
        break;
    case F_MAX:
        f->max = u;
        break;
    case F_TIMEOUT_MS:
        f->has_timeout = true;
        f->timeout_ms = u;
        break;
    case F_N:
        f->n = u;
        break;
    case F_BYTES:
        f->bytes = u;
        break;
    default:
        f->grace_ms = u;
    }
}

/* A value that is stored undecoded. */
static void store_raw(struct agx_worker_frame *f, enum field field, const struct agx_mp_token *t,
                      struct agx_str raw)
{
    if (field == F_CALLABLE_PAYLOAD || field == F_TARGET) {
        f->callable = t->bytes;
        f->callable_raw = raw;
        f->by_target = field == F_TARGET;
    } else if (field == F_ITEM) {
        f->item = raw;
    } else if (t->type != AGX_MP_NIL) {
        *(field == F_ARGS ? &f->args : &f->kwargs) = raw;
    }
}

static bool is_raw(enum field field)
{
    return field == F_CALLABLE_PAYLOAD || field == F_TARGET || field == F_ARGS ||
           field == F_KWARGS || field == F_ITEM;
}

static int read_value(struct agx_mp_reader *r, enum field field, struct agx_worker_frame *f,
                      struct agx_error **err)
{
    struct agx_mp_reader at = *r;
    struct agx_mp_token t = { 0 };
    struct agx_str raw;
    int k = agx_mp_take_raw(r, &raw, err);

    if (k == 0)
        k = agx_mp_next(&at, &t, err);
    if (k < 0)
        return k;
    if (!(fields[field].types & BIT(t.type)))
        f->bad = fields[field].bad;
    else if (is_raw(field))
        store_raw(f, field, &t, raw);
    else if (t.type == AGX_MP_STR)
        store_name(f, field, t.bytes);
    else if (t.type == AGX_MP_UINT)
        store_number(f, field, t.u);
    return 0;
}

/* `seen` has a bit for each received field. */
static void check_call(struct agx_worker_frame *f, unsigned seen)
{
    if (f->type != AGX_WF_CALL)
        return;
    if (!(seen & BIT(F_SHAPE)))
        f->shape = f->kind;
    if (!f->bad && f->callable_raw.len == 0)
        f->bad = "neither 'callable_payload' nor 'target'";
    if (!f->bad && !(seen & BIT(F_KIND)))
        f->bad = "no 'kind'";
}

/* One field. */
static int read_pair(struct agx_mp_reader *r, unsigned *from, unsigned *seen,
                     struct agx_worker_frame *f, struct agx_error **err)
{
    struct agx_mp_token key;
    enum field field;
    int k = agx_mp_next(r, &key, err);

    if (k < 0)
        return k;
    if (key.type != AGX_MP_STR && key.type != AGX_MP_BIN)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a frame has a key of type %s",
                             agx_mp_type_name(key.type));
    field = find_field(key.bytes, *from);
    if (field == F_COUNT)
        return agx_mp_skip(r, err);
    *from = field + 1u;
    if (*seen & BIT(field)) {
        f->bad = "a field was sent twice";
        return agx_mp_skip(r, err);
    }
    *seen |= BIT(field);
    return read_value(r, field, f, err);
}

int agx_worker_frame_parse(struct agx_str frame, struct agx_worker_frame *ret,
                           struct agx_error **err)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    unsigned from = 0, seen = 0;
    struct agx_mp_reader r;
    struct agx_mp_token map = { 0 };
    int k;

    limits.size = AGX_FRAME_MAX;
    *ret = (struct agx_worker_frame){ 0 };
    k = agx_mp_reader_init(&r, frame, &limits, err);
    if (k == 0)
        k = agx_mp_next(&r, &map, err);
    if (k < 0)
        return k;
    if (map.type != AGX_MP_MAP)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a frame is of type %s, not a map",
                             agx_mp_type_name(map.type));
    k = agx_mp_enter(&r, err);
    for (uint32_t i = 0; k == 0 && i < map.count; i++)
        k = read_pair(&r, &from, &seen, ret, err);
    if (k == 0)
        k = agx_mp_expect_end(&r, err);
    if (k == 0)
        check_call(ret, seen);
    return k;
}

/* eio_open.c: the open packet's JSON. */
#include "codec/eio_open.h"

#include "base/banned.h"
#include "base/limits.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

enum member { SID, UPGRADES, PING_TIMEOUT, PING_INTERVAL, MAX_PAYLOAD, MEMBERS };

static const struct agx_str names[MEMBERS] = {
    [SID] = { "sid", 3 },
    [UPGRADES] = { "upgrades", 8 },
    [PING_TIMEOUT] = { "pingTimeout", 11 },
    [PING_INTERVAL] = { "pingInterval", 12 },
    [MAX_PAYLOAD] = { "maxPayload", 10 },
};

int agx_eio_open_encode(struct agx_buf *out, const struct agx_eio_open *o)
{
    size_t start = out->len;
    int r = agx_buf_append(out, AGX_STR("{\"sid\":"));

    if (r == 0)
        r = agx_json_text_quote(out, o->sid);
    if (r == 0)
        r = agx_buf_printf(out, ",\"upgrades\":[%s],\"pingTimeout\":%u,\"pingInterval\":%u",
                           o->upgrade_websocket ? "\"websocket\"" : "", o->ping_timeout_ms,
                           o->ping_interval_ms);
    if (r == 0 && o->max_payload > 0)
        r = agx_buf_printf(out, ",\"maxPayload\":%llu", (unsigned long long)o->max_payload);
    if (r == 0)
        r = agx_buf_push(out, '}');
    if (r < 0)
        out->len = start;
    return r;
}

static int bad_member(enum member m, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "Engine.IO open packet has a bad '%s'",
                         names[m].ptr);
}

static bool is_url_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

static int read_sid(const struct agx_json_token *t, struct agx_str *ret, struct agx_error **err)
{
    struct agx_str sid;

    if (t->kind != AGX_JSON_STRING)
        return bad_member(SID, err);
    sid = agx_json_token_inner(t);
    if (sid.len == 0 || sid.len > AGX_EIO_SID_MAX)
        return bad_member(SID, err);
    for (size_t i = 0; i < sid.len; i++) {
        if (!is_url_char(sid.ptr[i]))
            return bad_member(SID, err);
    }
    *ret = sid;
    return 0;
}

static int read_upgrades(const struct agx_json_token *list, bool *ret, struct agx_error **err)
{
    struct agx_json_scan s;
    struct agx_json_token t;
    bool websocket = false;
    int r;

    if (list->kind != AGX_JSON_ARRAY)
        return bad_member(UPGRADES, err);
    agx_json_scan_init(&s, list->raw, 1);
    r = agx_json_scan_next(&s, &t, err);
    while (r == 0) {
        r = agx_json_scan_next(&s, &t, err);
        if (r == 0 && t.kind == AGX_JSON_ARRAY_END)
            break;
        if (r == 0 && t.kind != AGX_JSON_STRING)
            return bad_member(UPGRADES, err);
        if (r == 0 && agx_str_eq(agx_json_token_inner(&t), AGX_STR("websocket")))
            websocket = true;
    }
    if (r == 0)
        *ret = websocket;
    return r;
}

static int read_number(const struct agx_json_token *t, enum member m, uint64_t max, uint64_t *ret,
                       struct agx_error **err)
{
    if (t->kind != AGX_JSON_NUMBER || !agx_parse_u64(t->raw, max, ret) || *ret == 0)
        return bad_member(m, err);
    return 0;
}

static int read_member(enum member m, const struct agx_json_token *t, struct agx_eio_open *o,
                       struct agx_error **err)
{
    uint64_t n = 0;
    int r = 0;

    switch (m) {
    case SID:
        return read_sid(t, &o->sid, err);
    case UPGRADES:
        return read_upgrades(t, &o->upgrade_websocket, err);
    case PING_TIMEOUT:
        r = read_number(t, m, UINT32_MAX, &n, err);
        o->ping_timeout_ms = (uint32_t)n;
        return r;
    case PING_INTERVAL:
        r = read_number(t, m, UINT32_MAX, &n, err);
        o->ping_interval_ms = (uint32_t)n;
        return r;
    case MAX_PAYLOAD:
        return read_number(t, m, UINT64_MAX, &o->max_payload, err);
    case MEMBERS:
        break;
    }
    return 0; /* an unknown member */
}

static enum member find_member(const struct agx_json_token *key)
{
    enum member m = SID;

    while (m < MEMBERS && !agx_str_eq(names[m], agx_json_token_inner(key)))
        m++;
    return m;
}

/* Reads the members up to the closing brace; sets a bit of *seen for each known one. */
static int read_members(struct agx_json_scan *s, struct agx_eio_open *o, unsigned *seen,
                        struct agx_error **err)
{
    struct agx_json_token key = { 0 }, value = { 0 };

    for (;;) {
        enum member m;
        int r = agx_json_scan_next(s, &key, err);

        if (r == 0 && key.kind == AGX_JSON_OBJECT_END)
            return agx_json_scan_next(s, &key, err); /* the end of the text, or an error */
        if (r == 0)
            r = agx_json_scan_value(s, &value, err);
        if (r < 0)
            return r;
        m = find_member(&key);
        if (m < MEMBERS && *seen & 1u << m)
            return bad_member(m, err);
        *seen |= 1u << m;
        r = read_member(m, &value, o, err);
        if (r < 0)
            return r;
    }
}

int agx_eio_open_decode(struct agx_str json, struct agx_eio_open *ret, struct agx_error **err)
{
    struct agx_eio_open o = { .max_payload = 0 };
    struct agx_json_scan s;
    struct agx_json_token t = { 0 };
    unsigned seen = 0;
    int r;

    agx_json_scan_init(&s, json, AGX_DEPTH_MAX);
    r = agx_json_scan_next(&s, &t, err);
    if (r == 0 && t.kind != AGX_JSON_OBJECT)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "Engine.IO open packet is not an object");
    if (r == 0)
        r = read_members(&s, &o, &seen, err);
    if (r < 0)
        return agx_error_wrap(err, r, "read Engine.IO open packet");
    for (enum member m = SID; m < MAX_PAYLOAD; m++) {
        if (!(seen & 1u << m))
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "Engine.IO open packet lacks '%s'",
                                 names[m].ptr);
    }
    *ret = o;
    return 0;
}

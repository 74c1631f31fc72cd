/* hello.c: the two JSON maps of CONNECT. */
#include "client/hello.h"

#include "base/banned.h"
#include "base/limits.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

#include <inttypes.h>

static int put_member(struct agx_buf *out, const char *name, struct agx_str value)
{
    int r = value.len > 0 ? agx_buf_printf(out, ",\"%s\":", name) : 0;

    return r < 0 || value.len == 0 ? r : agx_json_text_quote(out, value);
}

int agx_hello_encode(struct agx_buf *out, struct agx_str token, struct agx_str session,
                     uint64_t max_message)
{
    size_t start = out->len;
    int r = agx_buf_append(out, AGX_STR("{\"agentix\":{\"proto\":1"));

    if (r == 0)
        r = put_member(out, "token", token);
    if (r == 0)
        r = put_member(out, "session", session);
    if (r == 0)
        r = agx_buf_printf(out, ",\"max_message\":%" PRIu64 "}}", max_message);
    if (r < 0)
        out->len = start;
    return r;
}

/* A session id is sent back to the server unchanged, so it must not need escaping. */
static bool is_plain(const struct agx_json_token *t)
{
    return t->kind == AGX_JSON_STRING && !t->escaped && t->raw.len > 2 &&
           t->raw.len - 2 <= AGX_HELLO_SESSION_MAX;
}

/* One member of `agentix`; false for one of the wrong type. */
static bool read_member(struct agx_str name, const struct agx_json_token *t, struct agx_hello *h,
                        uint64_t *proto)
{
    if (agx_str_eq(name, AGX_STR("proto")))
        return t->kind == AGX_JSON_NUMBER && agx_parse_u64(t->raw, UINT32_MAX, proto);
    if (agx_str_eq(name, AGX_STR("resume_ms")))
        return t->kind == AGX_JSON_NUMBER && agx_parse_u64(t->raw, UINT32_MAX, &h->resume_ms);
    if (agx_str_eq(name, AGX_STR("max_message")))
        return t->kind == AGX_JSON_NUMBER && agx_parse_u64(t->raw, UINT64_MAX, &h->max_message);
    if (agx_str_eq(name, AGX_STR("resumed"))) {
        h->resumed = t->kind == AGX_JSON_TRUE;
        return t->kind == AGX_JSON_TRUE || t->kind == AGX_JSON_FALSE;
    }
    if (agx_str_eq(name, AGX_STR("session"))) {
        h->session = is_plain(t) ? agx_json_token_inner(t) : AGX_STR("");
        return is_plain(t);
    }
    return true;
}

/* The value of member `name` in an object's text; false if missing. */
static bool find_object(struct agx_str json, struct agx_str name, struct agx_json_token *ret)
{
    struct agx_json_scan s;
    struct agx_json_token key;

    agx_json_scan_init(&s, json, AGX_DEPTH_MAX);
    if (agx_json_scan_next(&s, &key, NULL) < 0 || key.kind != AGX_JSON_OBJECT)
        return false;
    while (agx_json_scan_next(&s, &key, NULL) == 0 && key.kind == AGX_JSON_KEY) {
        if (agx_json_scan_value(&s, ret, NULL) < 0)
            return false;
        if (agx_str_eq(agx_json_token_inner(&key), name))
            return ret->kind == AGX_JSON_OBJECT;
    }
    return false;
}

int agx_hello_decode(struct agx_str json, struct agx_hello *ret, struct agx_error **err)
{
    struct agx_json_token ours, key, value;
    struct agx_json_scan s;
    uint64_t proto = 0;
    bool good;

    *ret = (struct agx_hello){ .session = AGX_STR("") };
    good = find_object(json, AGX_STR("agentix"), &ours);
    if (good) {
        agx_json_scan_init(&s, ours.raw, AGX_DEPTH_MAX);
        good = agx_json_scan_next(&s, &key, NULL) == 0;
    }
    while (good && agx_json_scan_next(&s, &key, NULL) == 0 && key.kind == AGX_JSON_KEY)
        good = agx_json_scan_value(&s, &value, NULL) == 0 &&
               read_member(agx_json_token_inner(&key), &value, ret, &proto);
    if (!good || proto != 1 || ret->session.len == 0 || ret->max_message == 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the server does not speak version 1 of the runtime protocol");
    return 0;
}

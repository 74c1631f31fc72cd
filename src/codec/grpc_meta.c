/* grpc_meta.c: gRPC's values in headers and trailers. */
#include "codec/grpc_meta.h"

#include "codec/base64.h"

#include "base/banned.h"

enum { TIMEOUT_DIGITS_MAX = 8, TIMEOUT_VALUE_MAX = 99999999 };

/* Coarsest first: if two units express the same time, the first needs fewer digits. */
static const struct unit {
    char letter;
    uint64_t ns;
} units[] = {
    { 'H', 3600000000000 }, { 'M', 60000000000 }, { 'S', 1000000000 },
    { 'm', 1000000 },       { 'u', 1000 },        { 'n', 1 },
};

static bool passes_unescaped(unsigned char c)
{
    return c >= 0x20 && c <= 0x7e && c != '%';
}

int agx_grpc_message_encode(struct agx_buf *out, struct agx_str text)
{
    static const char hex[16] = "0123456789ABCDEF";
    size_t size = 0;
    uint8_t *o;
    int r;

    if (text.len > SIZE_MAX / 3)
        return -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < text.len; i++)
        size += passes_unescaped((unsigned char)text.ptr[i]) ? 1 : 3;
    r = agx_buf_reserve(out, size);
    if (r < 0 || size == 0)
        return r;
    o = out->data + out->len;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (passes_unescaped(c)) {
            *o++ = c;
        } else {
            *o++ = '%';
            *o++ = (uint8_t)hex[c >> 4];
            *o++ = (uint8_t)hex[c & 15];
        }
    }
    out->len += size;
    return 0;
}

/* 0..15, or -1. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that `s` starts with in the form %XX, or -1. */
static int escaped_byte(struct agx_str s)
{
    int high, low;

    if (s.len < 3 || s.ptr[0] != '%')
        return -1;
    high = hex_digit(s.ptr[1]);
    low = hex_digit(s.ptr[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int agx_grpc_message_decode(struct agx_buf *out, struct agx_str value)
{
    int r = agx_buf_reserve(out, value.len); /* the text is never longer than its escaped form */

    if (r < 0)
        return r;
    while (value.len > 0) {
        int byte = escaped_byte(value);

        out->data[out->len++] = byte < 0 ? (uint8_t)value.ptr[0] : (uint8_t)byte;
        value = agx_str_skip(value, byte < 0 ? 1 : 3);
    }
    return 0;
}

static const struct unit *find_unit(char letter)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(units); i++) {
        if (units[i].letter == letter)
            return &units[i];
    }
    return NULL;
}

int agx_grpc_timeout_parse(struct agx_str value, uint64_t *ret_ns, struct agx_error **err)
{
    const struct unit *unit = value.len > 0 ? find_unit(value.ptr[value.len - 1]) : NULL;
    uint64_t n;

    /* The length is checked first: the error text must not contain a peer's long header. */
    if (value.len > TIMEOUT_DIGITS_MAX + 1)
        return agx_error_set(err, AGX_INTERNAL, "malformed grpc-timeout of %zu characters",
                             value.len);
    if (!unit || !agx_parse_u64((struct agx_str){ value.ptr, value.len - 1 }, UINT64_MAX, &n))
        return agx_error_set(err, AGX_INTERNAL, "malformed grpc-timeout '%.*s'",
                             AGX_STR_ARG(value));
    *ret_ns = n > UINT64_MAX / unit->ns ? UINT64_MAX : n * unit->ns;
    return 0;
}

int agx_grpc_timeout_format(struct agx_buf *out, uint64_t ns)
{
    const struct unit *best = &units[0]; /* hours express every time: UINT64_MAX is 5,124,096H */
    uint64_t best_n = 0, best_loss = UINT64_MAX;

    for (size_t i = 0; i < AGX_ARRAY_LEN(units); i++) {
        uint64_t over = ns % units[i].ns;
        uint64_t loss = over == 0 ? 0 : units[i].ns - over;
        uint64_t n = ns / units[i].ns + (over > 0);

        if (n <= TIMEOUT_VALUE_MAX && loss < best_loss) {
            best = &units[i];
            best_n = n;
            best_loss = loss;
        }
    }
    return agx_buf_printf(out, "%u%c", (unsigned)best_n, best->letter);
}

int agx_grpc_bin_encode(struct agx_buf *out, struct agx_str bytes)
{
    return agx_base64_encode(out, bytes, false);
}

int agx_grpc_bin_next(struct agx_str *rest, struct agx_buf *out, struct agx_error **err)
{
    struct agx_str part;
    int r;

    if (!agx_str_split(rest, ',', &part))
        return 0;
    r = agx_base64_decode(out, agx_str_trim(part), err);
    return r < 0 ? r : 1;
}

bool agx_grpc_key_is_valid(struct agx_str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
            return false;
    }
    return key.len > 0;
}

static bool ends_with(struct agx_str s, struct agx_str suffix)
{
    return s.len >= suffix.len && agx_str_eq(agx_str_skip(s, s.len - suffix.len), suffix);
}

bool agx_grpc_key_is_bin(struct agx_str key)
{
    return ends_with(key, AGX_STR("-bin"));
}

bool agx_grpc_key_is_reserved(struct agx_str key)
{
    return agx_str_starts(key, AGX_STR("grpc-"));
}

enum agx_code agx_grpc_status_parse(struct agx_str value)
{
    uint64_t n;

    return agx_parse_u64(value, AGX_UNAUTHENTICATED, &n) ? (enum agx_code)n : AGX_UNKNOWN;
}

const char *agx_grpc_status_text(enum agx_code code)
{
    static const char *const texts[] = { "0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                         "9", "10", "11", "12", "13", "14", "15", "16" };

    return (size_t)code < AGX_ARRAY_LEN(texts) ? texts[code] : texts[AGX_UNKNOWN];
}

bool agx_grpc_content_type_is_ok(struct agx_str value)
{
    struct agx_str type;

    if (!agx_str_split(&value, ';', &type))
        return false;
    type = agx_str_trim(type);
    return agx_str_eq_nocase(type, AGX_STR("application/grpc")) ||
           agx_str_eq_nocase(type, AGX_STR("application/grpc+proto"));
}

int agx_grpc_encoding_check(struct agx_str value, struct agx_error **err)
{
    if (value.len == 0 || agx_str_eq_nocase(value, AGX_STR("identity")))
        return 0;
    return agx_error_set(err, AGX_UNIMPLEMENTED, "no decompressor for grpc-encoding '%.*s'",
                         (int)AGX_MIN(value.len, (size_t)64), value.ptr);
}

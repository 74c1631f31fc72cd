/*
 * mp_ext.c: arrays and models inside msgpack.
 *
 * An array's header is checked before its numbers are multiplied: sizes never overflow, and the
 * number of bytes must be the one that dtype and shape require. A reader can therefore trust both.
 */
#include "codec/mp_ext.h"

#include "base/banned.h"

enum {
    TEXT_QUOTED_MAX = 64,  /* bytes of a refused header in its message */
    SHAPE_NUMBER_MAX = 21, /* a comma and 20 digits */
    UCS4 = 4,              /* bytes of one character of numpy's text */
    DATETIME_SIZE = 8,
    DTYPE_SIZE_MAX = 1 << 30 /* numpy's own bound is INT_MAX bytes for one element */
};

#define FAIL(err, what, text)                                                                      \
    agx_error_set(err, AGX_INVALID_ARGUMENT, "ndarray: " what " '%.*s'",                           \
                  (int)AGX_MIN((text).len, (size_t)TEXT_QUOTED_MAX), (text).ptr)

/* The sizes that each kind of number can have, one bit for each power of two: bit 3 is 8 bytes. */
static unsigned number_sizes(char kind)
{
    switch (kind) {
    case 'b':
        return 1u << 0;
    case 'i':
    case 'u':
        return 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3;
    case 'f':
        return 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;
    case 'c':
        return 1u << 3 | 1u << 4 | 1u << 5;
    default:
        return 0;
    }
}

static bool is_power_in(uint64_t n, unsigned sizes)
{
    return n > 0 && n <= 32 && (n & (n - 1)) == 0 && (sizes & (1u << __builtin_ctzll(n)));
}

/* "[ns]", "[25s]": the unit after the size of a date or a time span; may be empty. */
static bool is_time_unit(struct agx_str s)
{
    if (s.len == 0)
        return true;
    if (s.len < 3 || s.ptr[0] != '[' || s.ptr[s.len - 1] != ']')
        return false;
    for (size_t i = 1; i < s.len - 1; i++) {
        char c = s.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

/* Bytes of one element, or 0 for a dtype that we do not accept. */
static uint64_t element_size(struct agx_str dtype)
{
    struct agx_str digits;
    uint64_t n, size = 0;
    size_t end = 2;
    char order, kind;

    while (end < dtype.len && dtype.ptr[end] >= '0' && dtype.ptr[end] <= '9')
        end++;
    digits = end > 2 ? (struct agx_str){ dtype.ptr + 2, end - 2 } : (struct agx_str){ 0 };
    if (digits.len == 0 || digits.ptr[0] == '0' || !agx_parse_u64(digits, DTYPE_SIZE_MAX, &n))
        return 0;
    order = dtype.ptr[0];
    kind = dtype.ptr[1];
    if (kind == 'M' || kind == 'm')
        size = n == DATETIME_SIZE && is_time_unit(agx_str_skip(dtype, end)) ? n : 0;
    else if (end < dtype.len)
        return 0;
    else if (kind == 'U')
        size = n * UCS4;
    else if (kind == 'S' || is_power_in(n, number_sizes(kind)))
        size = n;
    /* '|' means that byte order does not matter, which is true only for single bytes. */
    if (order == '|' ? kind != 'S' && size != 1 : order != '<' && order != '>')
        return 0;
    return size;
}

/* The bytes that `a` must have. A dimension of 0 makes it 0, but the others are still checked. */
static int needed_size(const struct agx_mp_ndarray *a, uint64_t *ret, struct agx_error **err)
{
    uint64_t size = element_size(a->dtype);
    bool empty = false;

    if (size == 0)
        return FAIL(err, "unsupported dtype", a->dtype);
    for (unsigned i = 0; i < a->ndim; i++) {
        empty = empty || a->shape[i] == 0;
        if (a->shape[i] != 0 && size > PTRDIFF_MAX / a->shape[i])
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "ndarray: the shape is larger than memory");
        size *= a->shape[i] != 0 ? a->shape[i] : 1;
    }
    *ret = empty ? 0 : size;
    return 0;
}

static int check_array(const struct agx_mp_ndarray *a, struct agx_error **err)
{
    uint64_t need = 0;
    int r;

    if (a->ndim > AGX_MP_NDIM_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "ndarray: %u dimensions, the limit is %d",
                             a->ndim, AGX_MP_NDIM_MAX);
    r = needed_size(a, &need, err);
    if (r < 0)
        return r;
    if (need != a->data.len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "ndarray: got %zu bytes, dtype and shape require %llu", a->data.len,
                             (unsigned long long)need);
    return 0;
}

static int parse_shape(struct agx_str text, struct agx_mp_ndarray *ret, struct agx_error **err)
{
    struct agx_str rest = text, number;

    ret->ndim = 0;
    if (text.len == 0)
        return 0;
    while (agx_str_split(&rest, ',', &number)) {
        if (ret->ndim == AGX_MP_NDIM_MAX)
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "ndarray: more than %d dimensions",
                                 AGX_MP_NDIM_MAX);
        if ((number.len > 1 && number.ptr[0] == '0') ||
            !agx_parse_u64(number, PTRDIFF_MAX, &ret->shape[ret->ndim]))
            return FAIL(err, "malformed shape", text);
        ret->ndim++;
    }
    return 0;
}

int agx_mp_ndarray_parse(struct agx_str payload, struct agx_mp_ndarray *ret, struct agx_error **err)
{
    struct agx_str header = { payload.ptr, agx_str_find(payload, '\0') };
    size_t bar = header.len;
    int r;

    if (header.len == payload.len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "ndarray: no NUL ends the header");
    while (bar > 0 && header.ptr[bar - 1] != '|')
        bar--;
    if (bar == 0)
        return FAIL(err, "no '|' in the header", header);
    ret->dtype = (struct agx_str){ header.ptr, bar - 1 };
    ret->data = agx_str_skip(payload, header.len + 1);
    r = parse_shape(agx_str_skip(header, bar), ret, err);
    if (r < 0)
        return r;
    return check_array(ret, err);
}

/* The shape as text; `out` has room for AGX_MP_NDIM_MAX numbers. Returns its length. */
static size_t format_shape(const struct agx_mp_ndarray *a, char *out, size_t size)
{
    size_t len = 0;

    for (unsigned i = 0; i < a->ndim; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%llu", i > 0 ? "," : "",
                                (unsigned long long)a->shape[i]);
    return len;
}

int agx_mp_write_ndarray(struct agx_mp_writer *w, const struct agx_mp_ndarray *a,
                         struct agx_error **err)
{
    char text[AGX_MP_NDIM_MAX * SHAPE_NUMBER_MAX + 1];
    struct agx_str shape;
    int r = check_array(a, err);

    if (r < 0)
        return r;
    shape = agx_str_bytes(text, format_shape(a, text, sizeof(text)));
    agx_mp_write_ext_header(w, AGX_MP_EXT_NDARRAY, a->dtype.len + 1 + shape.len + 1 + a->data.len);
    agx_mp_write_raw(w, a->dtype);
    agx_mp_write_raw(w, AGX_STR("|"));
    agx_mp_write_raw(w, shape);
    agx_mp_write_raw(w, AGX_STR("\0"));
    agx_mp_write_raw(w, a->data);
    return 0;
}

int agx_mp_open_model(const struct agx_mp_reader *outer, struct agx_str payload,
                      struct agx_mp_reader *ret, struct agx_error **err)
{
    struct agx_mp_reader r = *outer, check;
    struct agx_mp_token map;
    int k;

    r.at = (const uint8_t *)payload.ptr;
    r.end = r.at + payload.len;
    k = agx_mp_enter(&r, err);
    if (k < 0)
        return k;
    check = r;
    k = agx_mp_skip(&check, err);
    if (k == 0)
        k = agx_mp_expect_end(&check, err);
    if (k < 0)
        return k;
    check = r;
    k = agx_mp_next(&check, &map, err);
    if (k == 0 && map.type != AGX_MP_MAP)
        k = agx_error_set(err, AGX_INVALID_ARGUMENT,
                          "msgpack: at offset %zu: the model is of type %s, not a map",
                          (size_t)(r.at - r.start), agx_mp_type_name(map.type));
    if (k == 0)
        *ret = r;
    return k;
}
